// Token ids and texts that other programs computed (tests/data/README.md): strings.json holds the inputs as bytes, and
// one file a vocabulary what becomes of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "model/gguf.h"
#include "model/gguf_vocabulary.h"
#include "text/tokenizer.h"

namespace inlay::test {

inline std::string from_base64(const std::string& text) {
    std::string bytes;
    uint32_t bits = 0;
    int n_bits = 0;
    for (const char c : text) {
        uint32_t value = 0;
        if (c >= 'A' && c <= 'Z')
            value = static_cast<uint32_t>(c - 'A');
        else if (c >= 'a' && c <= 'z')
            value = static_cast<uint32_t>(c - 'a' + 26);
        else if (c >= '0' && c <= '9')
            value = static_cast<uint32_t>(c - '0' + 52);
        else if (c == '+')
            value = 62;
        else if (c == '/')
            value = 63;
        else
            break;
        bits = (bits << 6) | value;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            bytes.push_back(static_cast<char>((bits >> n_bits) & 0xFF));
        }
    }
    return bytes;
}

struct TokenizerGolden {
    std::string name;
    std::string text;
    bool is_utf8 = true;
    std::vector<int32_t> ids;                // special tokens are text
    std::vector<int32_t> ids_parse_special;  // special tokens are parsed
    std::optional<std::vector<int32_t>> ids_add_special;
    std::string pieces;         // of ids_parse_special, bytes of the tokens one after another
    std::string detok_unparse;  // the same as a whole text: cleaned up, without the space that tokenizing put before it
    std::string detok;          // and special tokens hidden
};

struct VocabularyGoldens {
    std::vector<TokenizerGolden> cases;
    std::vector<TokenizerGolden> random_ids;  // ids_parse_special and the three texts only
    std::vector<int32_t> add_special_prefix;
    std::vector<int32_t> add_special_suffix;
};

inline nlohmann::json read_json(const std::filesystem::path& path) {
    std::ifstream file(path);
    return nlohmann::json::parse(file);
}

inline VocabularyGoldens read_goldens(const std::filesystem::path& strings_path, const std::filesystem::path& path) {
    const auto strings = read_json(strings_path);
    const auto goldens = read_json(path);
    VocabularyGoldens result;
    result.add_special_prefix = goldens.at("add_special_prefix").get<std::vector<int32_t>>();
    result.add_special_suffix = goldens.at("add_special_suffix").get<std::vector<int32_t>>();
    for (size_t i = 0; i < strings.size(); ++i) {
        const auto& from = goldens.at("cases").at(i);
        TokenizerGolden golden;
        golden.name = from.at("name").get<std::string>();
        golden.text = from_base64(strings.at(i).at("b64").get<std::string>());
        golden.is_utf8 = strings.at(i).at("utf8_valid").get<bool>();
        golden.ids = from.at("ids").get<std::vector<int32_t>>();
        golden.ids_parse_special = from.value("ids_parse_special", golden.ids);
        if (from.contains("ids_add_special"))
            golden.ids_add_special = from.at("ids_add_special").get<std::vector<int32_t>>();
        golden.pieces =
            from.contains("pieces_b64") ? from_base64(from.at("pieces_b64").get<std::string>()) : golden.text;
        golden.detok_unparse = from.contains("detok_unparse_b64")
                                   ? from_base64(from.at("detok_unparse_b64").get<std::string>())
                                   : golden.pieces;
        golden.detok =
            from.contains("detok_b64") ? from_base64(from.at("detok_b64").get<std::string>()) : golden.detok_unparse;
        result.cases.push_back(std::move(golden));
    }
    for (const auto& from : goldens.at("random_id_sequences")) {
        TokenizerGolden golden;
        golden.ids_parse_special = from.at("ids").get<std::vector<int32_t>>();
        golden.pieces = from_base64(from.at("pieces_b64").get<std::string>());
        golden.detok_unparse = from_base64(from.at("detok_unparse_b64").get<std::string>());
        golden.detok = from_base64(from.at("detok_b64").get<std::string>());
        result.random_ids.push_back(std::move(golden));
    }
    return result;
}

inline std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& model) {
    const FileSource source(model.string());
    return Tokenizer::create(vocabulary_from_gguf(GgufFile::read(source)));
}

}  // namespace inlay::test
