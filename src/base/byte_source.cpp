#include "base/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/printable.h"

namespace inlay {
namespace {

// One call transfers at most a bit less than 2 GiB on Linux; asking for a round gigabyte stays below it everywhere.
constexpr size_t kMaxTransfer = size_t{1} << 30;

[[noreturn]] void throw_io(const std::string& path, const std::string& what) {
    throw Error(INLAY_E_IO, "'" + printable(path, 1024) + "': " + what);
}

[[noreturn]] void throw_errno(const std::string& path, const char* action, int number) {
    throw_io(path, std::string(action) + ": " + std::generic_category().message(number));
}

int open_for_reading(const std::string& path) {
    int descriptor;
    do {
        // O_NONBLOCK: opening a named pipe must fail below, not wait for a writer. Regular files ignore it.
        descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    } while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

}  // namespace

void ByteSource::check_range(uint64_t offset, size_t n) const {
    if (offset > size() || n > size() - offset)
        throw Error(INLAY_E_IO, "reading " + std::to_string(n) + " bytes at offset " + std::to_string(offset) +
                                    " passes the end of the " + std::to_string(size()) + " bytes there are");
}

const std::byte* ByteSource::view(uint64_t offset, size_t n) const {
    check_range(offset, n);
    return nullptr;
}

FileSource::FileSource(std::string path) : path_(std::move(path)) {
    if (path_.find('\0') != std::string::npos)
        throw Error(INLAY_E_INVALID_ARGUMENT, "path '" + printable(path_, 1024) + "' contains a zero byte");
    descriptor_ = open_for_reading(path_);
    if (descriptor_ < 0) throw_errno(path_, "cannot open", errno);

    struct stat status {};
    if (::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode)) {
        size_ = static_cast<uint64_t>(status.st_size);
        return;
    }
    const bool is_directory = S_ISDIR(status.st_mode);
    ::close(descriptor_);  // the destructor does not run when a constructor throws
    throw_io(path_, is_directory ? "is a directory, not a file" : "is not a regular file");
}

FileSource::~FileSource() {
    ::close(descriptor_);
}

void FileSource::read_at(uint64_t offset, void* buffer, size_t n) const {
    check_range(offset, n);
    auto* out = static_cast<std::byte*>(buffer);
    while (n > 0) {
        const ssize_t got = ::pread(descriptor_, out, std::min(n, kMaxTransfer), static_cast<off_t>(offset));
        if (got < 0) {
            if (errno == EINTR) continue;
            throw_errno(path_, "cannot read", errno);
        }
        if (got == 0) throw_io(path_, "ends at byte " + std::to_string(offset) + "; it was longer when it was opened");
        out += got;
        offset += static_cast<uint64_t>(got);
        n -= static_cast<size_t>(got);
    }
}

void MemorySource::read_at(uint64_t offset, void* buffer, size_t n) const {
    check_range(offset, n);
    if (n > 0) std::memcpy(buffer, bytes_.data() + offset, n);
}

const std::byte* MemorySource::view(uint64_t offset, size_t n) const {
    check_range(offset, n);
    return bytes_.data() + offset;
}

}  // namespace inlay
