// Where a model comes from, part by part: a whole model is one part, a split one several.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/byte_source.h"

namespace inlay {

class ModelSource {
public:
    virtual ~ModelSource() = default;

    virtual std::shared_ptr<const ByteSource> open_first() = 0;
    // Part `index` > 0 of a model whose first part says that there are `n_parts`.
    virtual std::shared_ptr<const ByteSource> open_part(uint32_t index, uint32_t n_parts) = 0;
    // Throws when a model of `n_parts` can not come from here.
    virtual void check_count(uint32_t n_parts) const = 0;

    // What a sentence calls the part.
    virtual std::string name_of(uint32_t index, uint32_t n_parts) const = 0;
};

// Files. The path is that of the first part; the others lie beside it and are named after it.
class PathModelSource final : public ModelSource {
public:
    enum class Access : uint8_t { kRead, kMap };

    explicit PathModelSource(std::string path, Access access = Access::kRead);  // UTF-8

    std::shared_ptr<const ByteSource> open_first() override;
    std::shared_ptr<const ByteSource> open_part(uint32_t index, uint32_t n_parts) override;
    void check_count(uint32_t n_parts) const override;
    std::string name_of(uint32_t index, uint32_t n_parts) const override;

private:
    std::shared_ptr<const ByteSource> open(const std::string& path) const;

    std::string path_;
    Access access_;
};

// Parts that are there already.
class GivenModelSource final : public ModelSource {
public:
    explicit GivenModelSource(std::vector<std::shared_ptr<const ByteSource>> parts);  // at least one

    std::shared_ptr<const ByteSource> open_first() override { return parts_[0]; }
    std::shared_ptr<const ByteSource> open_part(uint32_t index, uint32_t n_parts) override;
    void check_count(uint32_t n_parts) const override;
    std::string name_of(uint32_t index, uint32_t n_parts) const override;

private:
    std::vector<std::shared_ptr<const ByteSource>> parts_;
};

}  // namespace inlay
