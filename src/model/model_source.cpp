#include "model/model_source.h"

#include <utility>

#include "base/error.h"
#include "base/mapped_source.h"
#include "base/printable.h"
#include "model/gguf_split.h"

namespace inlay {

PathModelSource::PathModelSource(std::string path, Access access) : path_(std::move(path)), access_(access) {}

std::shared_ptr<const ByteSource> PathModelSource::open(const std::string& path) const {
    if (access_ == Access::kMap) return std::make_shared<const MappedSource>(path);
    return std::make_shared<const FileSource>(path);
}

std::shared_ptr<const ByteSource> PathModelSource::open_first() {
    return open(path_);
}

std::shared_ptr<const ByteSource> PathModelSource::open_part(uint32_t index, uint32_t n_parts) {
    return open(split_path(path_, index, n_parts).value());
}

void PathModelSource::check_count(uint32_t n_parts) const {
    if (n_parts == 1 || split_path(path_, 0, n_parts)) return;
    const std::string count = std::to_string(n_parts);
    throw Error(INLAY_E_FORMAT, "key 'split.count' is " + count +
                                    ", but the file's name does not end like that of part " + "1 of " + count +
                                    ", so that the other parts can not be found");
}

std::string PathModelSource::name_of(uint32_t index, uint32_t n_parts) const {
    return "'" + printable(index == 0 ? path_ : split_path(path_, index, n_parts).value_or(path_), 1024) + "'";
}

GivenModelSource::GivenModelSource(std::vector<std::shared_ptr<const ByteSource>> parts) : parts_(std::move(parts)) {}

std::shared_ptr<const ByteSource> GivenModelSource::open_part(uint32_t index, uint32_t) {
    return parts_[index];
}

void GivenModelSource::check_count(uint32_t n_parts) const {
    if (n_parts != parts_.size())
        throw Error(INLAY_E_INVALID_ARGUMENT, "n_parts is " + std::to_string(parts_.size()) + ", but the model has " +
                                                  std::to_string(n_parts) + " (key 'split.count')");
}

std::string GivenModelSource::name_of(uint32_t index, uint32_t) const {
    return "part " + std::to_string(index) + " of the source";
}

}  // namespace inlay
