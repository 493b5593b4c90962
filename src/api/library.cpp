#include <string>

#include "api/boundary.h"

#define INLAY_STRINGIFY(x) #x
#define INLAY_VERSION_TEXT(major, minor, patch) \
    INLAY_STRINGIFY(major) "." INLAY_STRINGIFY(minor) "." INLAY_STRINGIFY(patch)

namespace {

struct StatusName {
    int32_t status;
    const char* name;
};
constexpr StatusName kStatusNames[] = {
    {INLAY_OK, "INLAY_OK"},
    {INLAY_END, "INLAY_END"},
    {INLAY_MORE, "INLAY_MORE"},
    {INLAY_E_INVALID_ARGUMENT, "INLAY_E_INVALID_ARGUMENT"},
    {INLAY_E_OUT_OF_MEMORY, "INLAY_E_OUT_OF_MEMORY"},
    {INLAY_E_IO, "INLAY_E_IO"},
    {INLAY_E_FORMAT, "INLAY_E_FORMAT"},
    {INLAY_E_UNSUPPORTED, "INLAY_E_UNSUPPORTED"},
    {INLAY_E_BUSY, "INLAY_E_BUSY"},
    {INLAY_E_CANCELLED, "INLAY_E_CANCELLED"},
    {INLAY_E_CACHE_FULL, "INLAY_E_CACHE_FULL"},
    {INLAY_E_CONTEXT_FULL, "INLAY_E_CONTEXT_FULL"},
    {INLAY_E_STATE, "INLAY_E_STATE"},
    {INLAY_E_INTERNAL, "INLAY_E_INTERNAL"},
    {INLAY_E_BUFFER_TOO_SMALL, "INLAY_E_BUFFER_TOO_SMALL"},
    {INLAY_E_MISMATCH, "INLAY_E_MISMATCH"},
};

}  // namespace

const char* inlay_version(void) {
    return INLAY_VERSION_TEXT(INLAY_VERSION_MAJOR, INLAY_VERSION_MINOR, INLAY_VERSION_PATCH);
}

int32_t inlay_check_abi(uint32_t major, uint32_t minor, inlay_error** error) {
    return inlay::api::guarded(error, [&] {
        const bool served = major == INLAY_VERSION_MAJOR &&
                            (INLAY_VERSION_MAJOR == 0 ? minor == INLAY_VERSION_MINOR : minor <= INLAY_VERSION_MINOR);
        if (!served)
            throw inlay::Error(INLAY_E_UNSUPPORTED, "the program was built for version " + std::to_string(major) + "." +
                                                        std::to_string(minor) + " and this library is " +
                                                        inlay_version());
        return INLAY_OK;
    });
}

const char* inlay_status_name(int32_t status) {
    for (const StatusName& entry : kStatusNames)
        if (entry.status == status) return entry.name;
    return "INLAY_UNKNOWN";
}
