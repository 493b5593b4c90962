#include "model/hyperparameters.h"

#include "base/error.h"

namespace inlay {
namespace {

[[noreturn]] void missing(const std::string& key) {
    throw Error(INLAY_E_FORMAT, "key '" + key + "' is missing");
}

std::string number_text(double value) {
    std::string text = std::to_string(value);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
    return text;
}

}  // namespace

std::optional<uint32_t> Hyperparameters::optional_count(std::string_view name, uint32_t at_least,
                                                        uint32_t at_most) const {
    const std::string full = key(name);
    const std::optional<uint64_t> value = file_.unsigned_integer(full);
    if (!value) return std::nullopt;
    if (*value < at_least || *value > at_most)
        throw Error(INLAY_E_FORMAT, "key '" + full + "' is " + std::to_string(*value) + ", outside " +
                                        std::to_string(at_least) + " to " + std::to_string(at_most));
    return static_cast<uint32_t>(*value);
}

uint32_t Hyperparameters::count(std::string_view name, uint32_t at_least, uint32_t at_most) const {
    const std::optional<uint32_t> value = optional_count(name, at_least, at_most);
    if (!value) missing(key(name));
    return *value;
}

std::optional<double> Hyperparameters::optional_number(std::string_view name, double above, double at_most) const {
    const std::string full = key(name);
    const std::optional<double> value = file_.number(full);
    if (!value) return std::nullopt;
    if (!(*value > above && *value <= at_most))
        throw Error(INLAY_E_FORMAT, "key '" + full + "' is " + number_text(*value) + ", not above " +
                                        number_text(above) + " and at most " + number_text(at_most));
    return *value;
}

double Hyperparameters::number(std::string_view name, double above, double at_most) const {
    const std::optional<double> value = optional_number(name, above, at_most);
    if (!value) missing(key(name));
    return *value;
}

uint32_t TensorNames::optional(const std::string& name, uint64_t n_cols, uint64_t n_rows) const {
    const TensorInfo* tensor = file_.find_tensor(name);
    if (!tensor) return kNoTensor;
    if (tensor->dims[0] != n_cols || tensor->dims[1] != n_rows || tensor->dims[2] != 1 || tensor->dims[3] != 1)
        throw Error(INLAY_E_FORMAT, "tensor '" + name + "': shape is [" + std::to_string(tensor->dims[0]) + ", " +
                                        std::to_string(tensor->dims[1]) + "] where the model's numbers want [" +
                                        std::to_string(n_cols) + ", " + std::to_string(n_rows) + "]");
    return static_cast<uint32_t>(tensor - file_.tensors().data());
}

uint32_t TensorNames::required(const std::string& name, uint64_t n_cols, uint64_t n_rows) const {
    const uint32_t index = optional(name, n_cols, n_rows);
    if (index == kNoTensor) throw Error(INLAY_E_FORMAT, "tensor '" + name + "' is missing");
    return index;
}

}  // namespace inlay
