#include "model/architectures/architectures.h"

#include <string>

#include "base/error.h"
#include "base/printable.h"

namespace inlay {
namespace {

struct Architecture {
    std::string_view name;
    ModelSpec (*make_spec)(const GgufFile& file, const ByteSource& source);
};

constexpr Architecture kArchitectures[] = {
    {"gemma3", make_gemma3_spec},
    {"llama", make_llama_spec},
};

}  // namespace

ModelSpec make_model_spec(const GgufFile& file, const ByteSource& source) {
    const std::optional<std::string_view> name = file.string("general.architecture");
    if (!name) throw Error(INLAY_E_FORMAT, "key 'general.architecture' is missing");
    for (const Architecture& architecture : kArchitectures)
        if (architecture.name == *name) return architecture.make_spec(file, source);
    throw Error(INLAY_E_UNSUPPORTED, "key 'general.architecture': '" + printable(*name, 64) + "' is not supported");
}

}  // namespace inlay
