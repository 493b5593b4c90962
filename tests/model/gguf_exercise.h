// Asks a parsed file everything it can answer. Whatever the file holds, answers are values or INLAY_E_FORMAT.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "base/error.h"
#include "model/gguf.h"

namespace inlay::test {

template <typename Question>
bool answered(const Question& question) {
    try {
        return question().has_value();
    } catch (const Error& error) {
        if (error.status() != INLAY_E_FORMAT) throw std::logic_error("another status than INLAY_E_FORMAT");
        return false;
    }
}

// Asks for the value as every type; throws std::logic_error unless at least one fits.
inline void exercise_key(const GgufFile& file, std::string_view key, uint64_t& sum) {
    bool any = answered([&] { return file.unsigned_integer(key); });
    any |= answered([&] { return file.integer(key); });
    any |= answered([&] { return file.number(key); });
    any |= answered([&] { return file.boolean(key); });
    any |= answered([&] { return file.string(key); });
    any |= answered([&] {
        const auto values = file.integers(key);
        for (size_t i = 0; values && i < values->size(); ++i) sum += static_cast<uint64_t>((*values)[i]);
        return values;
    });
    any |= answered([&] {
        const auto values = file.numbers(key);
        for (size_t i = 0; values && i < values->size(); ++i) sum += (*values)[i] > 0 ? 1 : 0;
        return values;
    });
    any |= answered([&] {
        const auto values = file.strings(key);
        for (size_t i = 0; values && i < values->size(); ++i)
            for (const char c : (*values)[i]) sum += static_cast<unsigned char>(c);
        return values;
    });
    if (!any) throw std::logic_error("a key that has no type");
}

// A sum over all answers, so that none is optimised away.
inline uint64_t exercise(const GgufFile& file, uint64_t file_size) {
    uint64_t sum = file.version() + file.alignment() + file.data_offset();
    for (size_t i = 0; i < file.metadata().size(); ++i) {
        exercise_key(file, file.metadata().key(i), sum);
        sum += file.metadata().text(i, 64).size();
    }
    for (const TensorInfo& tensor : file.tensors()) {
        if (tensor.offset > file_size || tensor.bytes > file_size - tensor.offset)
            throw std::logic_error("a tensor outside the file");
        if (file.find_tensor(tensor.name) != &tensor) throw std::logic_error("a tensor that is not found");
        sum += tensor.bytes;
    }
    return sum;
}

}  // namespace inlay::test
