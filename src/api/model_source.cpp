#include "api/model_source.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/boundary.h"
#include "base/byte_source.h"

namespace inlay::api {
namespace {

constexpr uint32_t kMaxParts = 65535;  // of a split GGUF

// One part, by the host's reader.
class HostReader final : public ByteSource {
public:
    HostReader(const inlay_model_source& source, uint32_t part)
        : read_(source.read), user_(source.user), part_(part), size_(source.part_sizes[part]) {}

    uint64_t size() const override { return size_; }
    bool serves_any_thread() const override { return false; }

    void read_at(uint64_t offset, void* buffer, size_t n) const override {
        check_range(offset, n);
        if (n == 0) return;
        const int32_t status = read_(user_, part_, offset, buffer, n);
        if (status != 0)
            throw Error(INLAY_E_IO, "source->read returned " + std::to_string(status) + " for " + std::to_string(n) +
                                        " bytes at offset " + std::to_string(offset) + " of part " +
                                        std::to_string(part_));
    }

private:
    inlay_read_callback read_;
    void* user_;
    uint32_t part_;
    uint64_t size_;
};

std::shared_ptr<const ByteSource> memory_part(const inlay_model_source& source, uint32_t part) {
    const std::string index = "[" + std::to_string(part) + "]";
    const uint64_t size = source.part_sizes[part];
    if (size > 0 && !source.blocks[part]) invalid("source->blocks" + index + " is NULL");
    if (size > SIZE_MAX - reinterpret_cast<uintptr_t>(source.blocks[part]))
        invalid("source->part_sizes" + index + " is " + std::to_string(size) +
                ", more than memory has behind the block");
    return std::make_shared<const MemorySource>(source.blocks[part], static_cast<size_t>(size));
}

}  // namespace

GivenModelSource model_source(const inlay_model_source& source) {
    if (source.n_parts == 0 || source.n_parts > kMaxParts)
        invalid("source->n_parts is " + std::to_string(source.n_parts) + ", outside 1 to " + std::to_string(kMaxParts));
    require(source.part_sizes, "source->part_sizes");
    if (!source.blocks == !source.read) invalid("either source->blocks or source->read must be set");
    std::vector<std::shared_ptr<const ByteSource>> parts;
    for (uint32_t part = 0; part < source.n_parts; ++part)
        parts.push_back(source.blocks ? memory_part(source, part) : std::make_shared<const HostReader>(source, part));
    return GivenModelSource(std::move(parts));
}

}  // namespace inlay::api
