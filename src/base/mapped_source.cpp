#include "base/mapped_source.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/printable.h"

namespace inlay {

MappedSource::MappedSource(std::string path) : file_(std::move(path)) {
    if (file_.size() == 0) return;  // nothing can not be mapped
    void* mapped = mmap(nullptr, file_.size(), PROT_READ, MAP_PRIVATE, file_.descriptor(), 0);
    if (mapped == MAP_FAILED) {
        if (errno == ENOMEM) throw std::bad_alloc();
        throw Error(INLAY_E_IO, "'" + printable(file_.path(), 1024) +
                                    "': cannot be mapped: " + std::generic_category().message(errno));
    }
    bytes_ = static_cast<const std::byte*>(mapped);
}

MappedSource::~MappedSource() {
    if (bytes_) munmap(const_cast<std::byte*>(bytes_), file_.size());
}

void MappedSource::read_at(uint64_t offset, void* buffer, size_t n) const {
    check_range(offset, n);
    if (n > 0) std::memcpy(buffer, bytes_ + offset, n);
}

const std::byte* MappedSource::view(uint64_t offset, size_t n) const {
    check_range(offset, n);
    return bytes_ + offset;
}

}  // namespace inlay
