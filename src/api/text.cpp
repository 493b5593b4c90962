#include <span>
#include <string>
#include <vector>

#include "api/handles.h"
#include "api/token_argument.h"

using namespace inlay::api;
using inlay::Tokenizer;

namespace {

int32_t special_token_of(const Tokenizer& tokenizer, int32_t which) {
    switch (which) {
        case INLAY_SPECIAL_BOS:
            return tokenizer.bos();
        case INLAY_SPECIAL_EOS:
            return tokenizer.eos();
        case INLAY_SPECIAL_EOT:
            return tokenizer.eot();
        case INLAY_SPECIAL_UNK:
            return tokenizer.unk();
        case INLAY_SPECIAL_PAD:
            return tokenizer.pad();
        default:
            invalid("which is " + std::to_string(which) + ", which is no INLAY_SPECIAL_* value");
    }
}

// Ids of a padded output have no text.
std::string bytes_of(const Tokenizer& tokenizer, std::span<const int32_t> tokens, bool show_special) {
    std::string bytes;
    for (int32_t token : tokens)
        if (static_cast<size_t>(token) < tokenizer.n_tokens()) tokenizer.append_token_bytes(token, show_special, bytes);
    return bytes;
}

}  // namespace

int32_t inlay_tokenize(const inlay_engine* engine, const char* text, size_t text_size, uint32_t flags, int32_t* tokens,
                       size_t capacity, size_t* needed, inlay_error** error) {
    if (needed) *needed = 0;
    return guarded(error, [&] {
        require(needed, "needed");
        check_flags(flags, INLAY_TEXT_ADD_SPECIAL | INLAY_TEXT_PARSE_SPECIAL, "flags");
        const std::string_view bytes = text_argument(text, text_size, "text");
        const auto shared = require(engine, "engine").share("engine");
        const std::vector<int32_t> ids = shared->tokenizer().tokenize(bytes, (flags & INLAY_TEXT_ADD_SPECIAL) != 0,
                                                                      (flags & INLAY_TEXT_PARSE_SPECIAL) != 0);
        return write_buffer(error, ids.data(), ids.size(), tokens, capacity, *needed);
    });
}

int32_t inlay_detokenize(const inlay_engine* engine, const int32_t* tokens, size_t n_tokens, uint32_t flags,
                         char* buffer, size_t capacity, size_t* needed, inlay_error** error) {
    if (needed) *needed = 0;
    return guarded(error, [&] {
        require(needed, "needed");
        check_flags(flags, INLAY_TEXT_SHOW_SPECIAL, "flags");
        const auto shared = require(engine, "engine").share("engine");
        const std::span<const int32_t> ids = token_argument(tokens, n_tokens, shared->n_vocabulary());
        const std::string text = bytes_of(shared->tokenizer(), ids, (flags & INLAY_TEXT_SHOW_SPECIAL) != 0);
        return write_buffer(error, text.data(), text.size(), buffer, capacity, *needed);
    });
}

int32_t inlay_token_text(const inlay_engine* engine, int32_t token, uint32_t flags, char* buffer, size_t capacity,
                         size_t* needed, inlay_error** error) {
    if (needed) *needed = 0;
    return guarded(error, [&] {
        require(needed, "needed");
        check_flags(flags, INLAY_TEXT_SHOW_SPECIAL, "flags");
        const auto shared = require(engine, "engine").share("engine");
        check_token(token, "token", shared->n_vocabulary());
        const std::string text = bytes_of(shared->tokenizer(), {&token, 1}, (flags & INLAY_TEXT_SHOW_SPECIAL) != 0);
        return write_buffer(error, text.data(), text.size(), buffer, capacity, *needed);
    });
}

int32_t inlay_special_token(const inlay_engine* engine, int32_t which, int32_t* token, inlay_error** error) {
    if (token) *token = 0;
    return guarded(error, [&] {
        require(token, "token");
        *token = special_token_of(require(engine, "engine").share("engine")->tokenizer(), which);
        return INLAY_OK;
    });
}

int32_t inlay_token_is_end(const inlay_engine* engine, int32_t token) {
    const inlay::Engine* object = engine ? engine->get() : nullptr;
    if (!object || token < 0 || static_cast<size_t>(token) >= object->tokenizer().n_tokens()) return 0;
    return object->tokenizer().is_end_of_generation(token) ? 1 : 0;
}
