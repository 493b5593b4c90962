// The C boundary. A function of the ABI is: validate, call, translate the exception into a status and an error object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "inlay/inlay.h"

namespace inlay::api {

// Sets *error (when not null) and returns the status. The error object needs no allocation for out of memory.
int32_t report(inlay_error** error, int32_t status, std::string_view sentence) noexcept;
// The exception being handled.
int32_t report_exception(inlay_error** error) noexcept;

// Runs the body of an ABI function; it returns a status or throws.
template <typename Body>
int32_t guarded(inlay_error** error, const Body& body) noexcept {
    if (error) *error = nullptr;
    try {
        return body();
    } catch (...) {
        return report_exception(error);
    }
}

[[noreturn]] inline void invalid(const std::string& sentence) {
    throw Error(INLAY_E_INVALID_ARGUMENT, sentence);
}

template <typename T>
T& require(T* pointer, const char* name) {
    if (!pointer) invalid(std::string(name) + " is NULL");
    return *pointer;
}

// Text with a length in bytes, or SIZE_MAX for NUL-terminated.
std::string_view text_argument(const char* text, size_t size, const char* name);

std::string path_argument(const char* path, size_t path_size);

void check_at_most(uint32_t value, uint32_t limit, const char* name);

// A field without a meaning yet: other values than zero are INLAY_E_UNSUPPORTED.
void check_reserved(uint32_t value, const char* name);

// Flags that this library does not know are INLAY_E_UNSUPPORTED.
void check_flags(uint32_t flags, uint32_t known, const char* name);

// The rule for buffers: fills, measures or refuses.
template <typename T>
int32_t write_buffer(inlay_error** error, const T* values, size_t n, T* buffer, size_t capacity, size_t& needed) {
    needed = n;
    if (!buffer) return INLAY_OK;
    if (capacity < n)
        return report(error, INLAY_E_BUFFER_TOO_SMALL,
                      "capacity is " + std::to_string(capacity) + " and " + std::to_string(n) + " are needed");
    for (size_t i = 0; i < n; ++i) buffer[i] = values[i];
    return INLAY_OK;
}

}  // namespace inlay::api
