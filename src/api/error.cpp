#include "api/error.h"

#include <new>
#include <string>

struct inlay_error {
    int32_t status;
    std::string sentence;
};

namespace inlay::api {
namespace {

// Short enough to live inside the string object, so that it takes no memory.
constexpr char kOutOfMemory[] = "out of memory";

}  // namespace

// Constructed on first use and never destroyed: a host may still hold it while the process ends.
inlay_error* out_of_memory_error() noexcept {
    alignas(inlay_error) static unsigned char storage[sizeof(inlay_error)];
    static inlay_error& error = *new (storage) inlay_error{INLAY_E_OUT_OF_MEMORY, kOutOfMemory};
    return &error;
}

inlay_error* make_error(int32_t status, std::string_view sentence) noexcept {
    try {
        return new inlay_error{status, std::string(sentence)};
    } catch (const std::bad_alloc&) {
        return out_of_memory_error();
    }
}

}  // namespace inlay::api

int32_t inlay_error_code(const inlay_error* error) {
    return error ? error->status : INLAY_OK;
}

const char* inlay_error_message(const inlay_error* error) {
    return error ? error->sentence.c_str() : "";
}

void inlay_error_release(inlay_error* error) {
    if (error != inlay::api::out_of_memory_error()) delete error;
}
