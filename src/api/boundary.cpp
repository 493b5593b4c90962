#include "api/boundary.h"

#include <cstring>
#include <new>
#include <stdexcept>

#include "api/error.h"

namespace inlay::api {

int32_t report(inlay_error** error, int32_t status, std::string_view sentence) noexcept {
    if (error) *error = make_error(status, sentence);
    return status;
}

int32_t report_exception(inlay_error** error) noexcept {
    try {
        throw;
    } catch (const Error& known) {
        return report(error, known.status(), known.sentence());
    } catch (const std::bad_alloc&) {
        if (error) *error = out_of_memory_error();
        return INLAY_E_OUT_OF_MEMORY;
    } catch (const std::length_error&) {
        return report(error, INLAY_E_OUT_OF_MEMORY, "out of memory: more was asked for than can exist");
    } catch (const std::exception& unknown) {
        return report(error, INLAY_E_INTERNAL, unknown.what());
    } catch (...) {
        return report(error, INLAY_E_INTERNAL, "an exception of unknown type");
    }
}

std::string_view text_argument(const char* text, size_t size, const char* name) {
    if (size == SIZE_MAX) return {&require(text, name), std::strlen(text)};
    if (!text && size > 0) invalid(std::string(name) + " is NULL but its size is " + std::to_string(size));
    return {text, size};
}

std::string path_argument(const char* path, size_t path_size) {
    const std::string_view text = text_argument(path, path_size, "path");
    if (text.empty()) invalid("path is empty");
    if (text.find('\0') != std::string_view::npos) invalid("path contains a NUL");
    return std::string(text);
}

void check_at_most(uint32_t value, uint32_t limit, const char* name) {
    if (value > limit) invalid(std::string(name) + " is " + std::to_string(value) + ", above " + std::to_string(limit));
}

void check_reserved(uint32_t value, const char* name) {
    if (value != 0)
        throw Error(INLAY_E_UNSUPPORTED, std::string(name) + " is " + std::to_string(value) + " and must be zero");
}

void check_flags(uint32_t flags, uint32_t known, const char* name) {
    if ((flags & ~known) != 0)
        throw Error(INLAY_E_UNSUPPORTED,
                    std::string(name) + " has bits that this version of the library does not know");
}

}  // namespace inlay::api
