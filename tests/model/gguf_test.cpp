// What GGUF files say is read as it stands, and each kind of lie is refused with a sentence that names the field.
#include "model/gguf.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "tests/model/gguf_bytes.h"
#include "tests/model/gguf_exercise.h"
#include "tests/npy.h"
#include "tests/reference_data.h"

using namespace inlay;
using namespace inlay::test;

namespace {

GgufFile parse(const std::string& bytes) {
    return GgufFile::read(MemorySource(bytes.data(), bytes.size()));
}
GgufFile parse(const GgufBytes& bytes) {
    return parse(bytes.bytes());
}

// "FORMAT: sentence", "UNSUPPORTED: sentence", "read" or another status as a number.
template <typename Call>
std::string refusal_of(const Call& call) {
    try {
        call();
        return "read";
    } catch (const Error& error) {
        const std::string status = error.status() == INLAY_E_FORMAT        ? "FORMAT"
                                   : error.status() == INLAY_E_UNSUPPORTED ? "UNSUPPORTED"
                                                                           : std::to_string(error.status());
        return status + ": " + error.sentence();
    }
}

std::string refusal(const GgufBytes& bytes) {
    return refusal_of([&] { parse(bytes); });
}

// A head without keys, for one tensor.
GgufBytes one_tensor() {
    return GgufBytes().head(1, 0);
}
GgufBytes one_key() {
    return GgufBytes().head(0, 1);
}

// Remembers how it was read.
class WatchedSource final : public ByteSource {
public:
    explicit WatchedSource(const std::string& bytes) : memory_(bytes.data(), bytes.size()) {}
    uint64_t size() const override { return memory_.size(); }
    void read_at(uint64_t offset, void* buffer, size_t n) const override {
        ++n_reads;
        furthest = std::max(furthest, offset + n);
        memory_.read_at(offset, buffer, n);
    }
    mutable size_t n_reads = 0;
    mutable uint64_t furthest = 0;

private:
    MemorySource memory_;
};

}  // namespace

TEST_CASE("the head of a model file") {
    const FileSource source((data_dir() / "tiny/llama/llama.f16.gguf").string());
    const GgufFile file = GgufFile::read(source);
    CHECK(file.version() == 3);
    CHECK(file.alignment() == 32);
    CHECK(file.string("general.architecture") == "llama");
    CHECK(file.unsigned_integer("llama.block_count") == 3);
    CHECK(file.unsigned_integer("llama.embedding_length") == 128);
    CHECK(file.unsigned_integer("llama.attention.head_count") == 4);
    CHECK(file.unsigned_integer("llama.attention.head_count_kv") == 2);
    CHECK(file.number("llama.rope.freq_base") == 10000.0);
    CHECK(file.number("llama.attention.layer_norm_rms_epsilon") == static_cast<double>(1e-5f));
    CHECK(file.boolean("tokenizer.ggml.add_bos_token").has_value());
    CHECK(file.unsigned_integer("tokenizer.ggml.bos_token_id") == 380);
    CHECK(!file.string("no.such.key"));
    CHECK(!file.strings("no.such.key"));

    const auto tokens = file.strings("tokenizer.ggml.tokens");
    REQUIRE(tokens);
    REQUIRE(tokens->size() == 384);
    CHECK((*tokens)[0] == "!");
    CHECK(file.integers("tokenizer.ggml.token_type")->size() == 384);
    CHECK((*file.integers("tokenizer.ggml.token_type"))[380] == 3);

    CHECK(file.tensors().size() == 30);
    const TensorInfo* tensor = file.find_tensor("blk.1.attn_k.weight");
    REQUIRE(tensor != nullptr);
    CHECK(tensor->type == TensorType::kF16);
    CHECK(tensor->n_dims == 2);
    CHECK((tensor->dims[0] == 128 && tensor->dims[1] == 64 && tensor->dims[2] == 1 && tensor->dims[3] == 1));
    CHECK(tensor->bytes == 128 * 64 * 2);
    CHECK(tensor->offset % 32 == 0);
    CHECK(file.find_tensor("blk.1.attn_k") == nullptr);
    CHECK(file.metadata().key(0) == "general.architecture");
    CHECK(file.metadata().text(0, 100) == "llama");
}

TEST_CASE("quantised model files") {
    const FileSource source((data_dir() / "quant_models/q_Q4_K_M.gguf").string());
    const GgufFile file = GgufFile::read(source);
    uint64_t end = 0;
    size_t n_q4_k = 0;
    for (const TensorInfo& tensor : file.tensors()) {
        end = std::max(end, tensor.offset + tensor.bytes);
        n_q4_k += tensor.type == TensorType::kQ4_K;
    }
    CHECK(n_q4_k > 0);
    CHECK(end == source.size());  // the last tensor ends with the file: offsets and sizes add up
}

TEST_CASE("every GGUF file of the reference data is read") {
    const auto dir = reference_dir();
    if (dir.empty()) INLAY_SKIP("no reference data");
    size_t n_files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
        if (entry.path().extension() != ".gguf") continue;
        INFO(entry.path());
        const FileSource source(entry.path().string());
        CHECK(exercise(GgufFile::read(source), source.size()) > 0);
        ++n_files;
    }
    CHECK(n_files > 40);
}

TEST_CASE("the head is read in pieces, the tensor data not at all") {
    const std::string bytes = read_file(data_dir() / "tiny/llama/llama.f16.gguf");
    const WatchedSource source(bytes);
    const GgufFile file = GgufFile::read(source);
    CHECK(source.n_reads == 1);
    CHECK(source.furthest <= 65536);

    GgufBytes big;
    big.head(0, 1).array("k", 8, 50000);
    for (int i = 0; i < 50000; ++i) big.string("word " + std::to_string(i));
    big.data(1 << 20);
    const WatchedSource big_source(big.bytes());
    const GgufFile big_file = GgufFile::read(big_source);
    CHECK(big_source.n_reads < 20);
    CHECK(big_source.furthest < big_file.data_offset() + 65536);
    const auto words = big_file.strings("k");
    REQUIRE(words->size() == 50000);
    size_t n_wrong = 0;
    for (size_t i = 0; i < 50000; ++i) n_wrong += (*words)[i] != "word " + std::to_string(i);
    CHECK(n_wrong == 0);
}

TEST_CASE("metadata of every type, in version 2 and 3") {
    for (const uint32_t version : {2u, 3u}) {
        GgufBytes bytes;
        bytes.head(0, 19, version);
        bytes.key("u8", 0).u8(200).key("i8", 1).u8(0x80).key("u16", 2).u16(60000).key("i16", 3).u16(0x8000);
        bytes.key("u32", 4).u32(4000000000u).key("i32", 5).u32(0x80000000u).key("f32", 6).f32(0.1f).key("yes", 7).u8(1);
        bytes.key("text", 8).string("a\nb").key("u64", 10).u64(UINT64_MAX).key("i64", 11).u64(uint64_t{1} << 63);
        bytes.key("f64", 12).f64(0.1).key("no", 7).u8(0).key("empty", 8).string("");
        bytes.array("i32s", 5, 3).u32(1).u32(0xffffffff).u32(3);
        bytes.array("f32s", 6, 2).f32(0.5f).f32(-2.0f);
        bytes.array("words", 8, 3).string("a").string("").string("\xff");
        bytes.array("none", 8, 0);
        bytes.array("bools", 7, 2).u8(1).u8(0);
        const GgufFile file = parse(bytes);

        CHECK(file.version() == version);
        CHECK(file.unsigned_integer("u8") == 200);
        CHECK(file.integer("i8") == -128);
        CHECK(file.unsigned_integer("u16") == 60000);
        CHECK(file.integer("i16") == -32768);
        CHECK(file.unsigned_integer("u32") == 4000000000u);
        CHECK(file.integer("i32") == INT32_MIN);
        CHECK(file.number("f32") == static_cast<double>(0.1f));
        CHECK(file.number("f64") == 0.1);
        CHECK(file.number("i8") == -128.0);
        CHECK(file.boolean("yes") == true);
        CHECK(file.boolean("no") == false);
        CHECK(file.string("text") == "a\nb");
        CHECK(file.string("empty") == "");
        CHECK(file.unsigned_integer("u64") == UINT64_MAX);
        CHECK(file.number("u64") == 18446744073709551616.0);
        CHECK(file.integer("i64") == INT64_MIN);
        CHECK((*file.integers("i32s"))[1] == -1);
        CHECK((*file.numbers("i32s"))[2] == 3.0);
        CHECK((*file.numbers("f32s"))[1] == -2.0);
        CHECK((*file.strings("words"))[2] == "\xff");
        CHECK(file.strings("none")->size() == 0);
        CHECK((*file.integers("bools"))[0] == 1);
        CHECK(file.metadata().contains("bools"));

        std::string text;
        for (size_t i = 0; i < file.metadata().size(); ++i) text += file.metadata().text(i, 20) + " ";
        CHECK(text ==
              "200 -128 60000 -32768 4000000000 -2147483648 0.1 true a\\nb 18446744073709551615 -9223372036854775808 "
              "0.1 false  [1, -1, 3] [0.5, -2] ['a', '', '\\xff'] [] [true, false] ");
    }
    GgufBytes many = one_key().array("k", 0, 1000).data(0, 1).raw(std::string(1000, '\7'));
    CHECK(parse(many).metadata().text(0, 8) == "[7, 7, 7, ... 1000 in all]");
}

TEST_CASE("a value of another type is refused by its key") {
    GgufBytes bytes;
    bytes.head(0, 5).key("a.string", 8).string("x").key("negative", 5).u32(0xffffffff).key("huge", 10).u64(UINT64_MAX);
    bytes.key("f", 6).f32(1).array("words", 8, 0);
    const GgufFile file = parse(bytes);
    CHECK(refusal_of([&] { file.unsigned_integer("a.string"); }) ==
          "FORMAT: key 'a.string': value must be an integer, not string");
    CHECK(refusal_of([&] { file.unsigned_integer("negative"); }) ==
          "FORMAT: key 'negative': value must not be negative, it is -1");
    CHECK(refusal_of([&] { file.unsigned_integer("f"); }) == "FORMAT: key 'f': value must be an integer, not float32");
    CHECK(refusal_of([&] { file.integer("huge"); }) == "FORMAT: key 'huge': value 18446744073709551615 is too large");
    CHECK(refusal_of([&] { file.number("a.string"); }) == "FORMAT: key 'a.string': value must be a number, not string");
    CHECK(refusal_of([&] { file.boolean("f"); }) == "FORMAT: key 'f': value must be a bool, not float32");
    CHECK(refusal_of([&] { file.string("words"); }) == "FORMAT: key 'words': value must be a string, not array");
    CHECK(refusal_of([&] { file.strings("f"); }) == "FORMAT: key 'f': value must be an array of strings, not float32");
    CHECK(refusal_of([&] { file.integers("words"); }) ==
          "FORMAT: key 'words': value must be an array of integers, not an array of string");
    CHECK(refusal_of([&] { file.numbers("words"); }) ==
          "FORMAT: key 'words': value must be an array of numbers, not an array of string");
}

TEST_CASE("what is not GGUF, or not this GGUF") {
    CHECK(refusal(GgufBytes()) == "FORMAT: magic needs 4 bytes at byte 0, but the file ends at byte 0");
    CHECK(refusal(GgufBytes().raw("GG")) == "FORMAT: magic needs 4 bytes at byte 0, but the file ends at byte 2");
    CHECK(refusal(GgufBytes().raw("\x7f"
                                  "ELF")) == "FORMAT: magic is '\\x7fELF'; a GGUF file begins with 'GGUF'");
    CHECK(refusal(GgufBytes().raw("GGUF")) == "FORMAT: version needs 4 bytes at byte 4, but the file ends at byte 4");
    CHECK(refusal(GgufBytes().head(0, 0, 1)) == "UNSUPPORTED: version is 1; versions 2 and 3 are read");
    CHECK(refusal(GgufBytes().head(0, 0, 4)) == "UNSUPPORTED: version is 4; versions 2 and 3 are read");
    CHECK(refusal(GgufBytes().head(0, 0, 0x03000000)) ==
          "UNSUPPORTED: version is written big-endian; only little-endian files are read");
    CHECK(refusal(GgufBytes().head(0, 0)) == "read");
}

TEST_CASE("lies about keys and values") {
    CHECK(refusal(GgufBytes().head(0, 2).key("k", 0).u8(1)) ==
          "FORMAT: number of keys needs 2 times at least 14 bytes at byte 24, but the file ends at byte 38");
    CHECK(refusal(one_key().u64(0).data(20)) == "FORMAT: length of key 0 is 0; a key has 1 to 65535 bytes");
    CHECK(refusal(one_key().u64(65536).data(20)) == "FORMAT: length of key 0 is 65536; a key has 1 to 65535 bytes");
    CHECK(refusal(one_key().u64(60).raw("abcdef")) ==
          "FORMAT: key 0 needs 60 bytes at byte 32, but the file ends at byte 38");
    CHECK(refusal(one_key().key("a\nb", 0).u8(1)) == "FORMAT: key 0 'a\\nb' is not printable UTF-8");
    CHECK(refusal(one_key().key("k", 13).u8(1)) == "FORMAT: key 'k': value type 13 is not a type of the format");
    CHECK(refusal(one_key().key("k", 7).u8(2)) == "FORMAT: key 'k': value is 2; a bool is 0 or 1");
    CHECK(refusal(one_key().key("k", 12).u32(2)) ==
          "FORMAT: key 'k': value needs 8 bytes at byte 37, but the file ends at byte 41");
    CHECK(refusal(one_key().key("k", 8).u64(uint64_t{1} << 60)) ==
          "FORMAT: key 'k': string needs 1152921504606846976 bytes at byte 45, but the file ends at byte 45");
    CHECK(refusal(one_key().array("k", 9, 1).u32(0).u64(1).u8(0)) ==
          "UNSUPPORTED: key 'k': element type is array; arrays of arrays are not read");
    CHECK(refusal(one_key().array("k", 99, 1)) == "FORMAT: key 'k': element type 99 is not a type of the format");
    CHECK(refusal(one_key().array("k", 4, uint64_t{1} << 62).u64(0)) ==
          "FORMAT: key 'k': array needs 4611686018427387904 times at least 4 bytes at byte 49, but the file ends at "
          "byte 57");
    CHECK(refusal(one_key().array("k", 7, 3).u8(1).u8(0).u8(5)) == "FORMAT: key 'k': element 2 is 5; a bool is 0 or 1");
    CHECK(refusal(one_key().array("k", 8, uint64_t{1} << 60)) ==
          "FORMAT: key 'k': array needs 1152921504606846976 times at least 8 bytes at byte 49, but the file ends at "
          "byte 49");
    CHECK(refusal(one_key().array("k", 8, 2).string("a").u64(900)) ==
          "FORMAT: key 'k': element 1 needs 900 bytes at byte 66, but the file ends at byte 66");
    CHECK(refusal(one_key().array("k", 8, 3).string("sixteen letters.").string("")) ==
          "FORMAT: key 'k': length of element 2 needs 8 bytes at byte 81, but the file ends at byte 81");
    CHECK(refusal(GgufBytes().head(0, 2).key("k", 0).u8(1).key("k", 0).u8(1)) ==
          "FORMAT: key 'k': the key occurs twice");
}

TEST_CASE("lies about the alignment") {
    const auto aligned = [](uint32_t alignment) {
        return refusal(one_key().key("general.alignment", 4).u32(alignment));
    };
    CHECK(aligned(0) == "FORMAT: key 'general.alignment': value is 0; it must be a power of two up to 1048576");
    CHECK(aligned(48) == "FORMAT: key 'general.alignment': value is 48; it must be a power of two up to 1048576");
    CHECK(aligned(1 << 21) ==
          "FORMAT: key 'general.alignment': value is 2097152; it must be a power of two up to 1048576");
    CHECK(refusal(one_key().key("general.alignment", 8).string("32")) ==
          "FORMAT: key 'general.alignment': value must be an integer, not string");

    GgufBytes bytes;
    bytes.head(2, 1).key("general.alignment", 4).u32(64).tensor("a", 0, 8, 0).tensor("b", 0, 1, 64).data(68, 64);
    const GgufFile file = parse(bytes);
    CHECK(file.alignment() == 64);
    CHECK(file.data_offset() == 128);
    CHECK(file.find_tensor("b")->offset == 192);
    CHECK(file.find_tensor("b")->bytes == 4);
}

TEST_CASE("lies about tensors") {
    CHECK(refusal(one_tensor()) ==
          "FORMAT: number of tensors needs 1 times at least 25 bytes at byte 24, but the file ends at byte 24");
    CHECK(refusal(one_tensor().u64(0).data(30)) == "FORMAT: name length of tensor 0 is 0; a name has 1 to 65535 bytes");
    CHECK(refusal(one_tensor().u64(70000).data(30)) ==
          "FORMAT: name length of tensor 0 is 70000; a name has 1 to 65535 bytes");
    CHECK(refusal(one_tensor().u64(200).data(0, 100)) ==
          "FORMAT: name of tensor 0 needs 200 bytes at byte 32, but the file ends at byte 100");
    CHECK(refusal(one_tensor().tensor({"a\0b", 3}, 0, 8, 0).data(32)) ==
          "FORMAT: name of tensor 0 'a\\x00b' is not printable UTF-8");
    CHECK(refusal(one_tensor().string("t").u32(5).data(100)) ==
          "FORMAT: tensor 't': number of dimensions is 5; at most 4 exist");
    CHECK(refusal(one_tensor().string("t").u32(2).u64(4).u64(0).u32(0).u64(0).data(100)) ==
          "FORMAT: tensor 't': dimension 1 is 0");
    CHECK(refusal(one_tensor().string("t").u32(2).u64(uint64_t{1} << 40).u64(uint64_t{1} << 40).data(100)) ==
          "FORMAT: tensor 't': dimension 1 is 1099511627776; the product of the dimensions is too large");
    CHECK(refusal(one_tensor().tensor("t", 0, uint64_t{1} << 62, 0).data(100)) ==
          "FORMAT: tensor 't': size is more than 2^63 bytes");
    CHECK(refusal(one_tensor().tensor("t", 77, 32, 0).data(100)) == "UNSUPPORTED: tensor 't': type 77 is not known");
    CHECK(refusal(one_tensor().tensor("t", 4, 32, 0).data(100)) == "UNSUPPORTED: tensor 't': type 4 is not known");
    CHECK(refusal(one_tensor().tensor("t", 12, 128, 0).data(500)) ==
          "FORMAT: tensor 't': dimension 0 is 128; type Q4_K needs a multiple of 256");
    CHECK(refusal(one_tensor().tensor("t", 0, 8, 8).data(100)) ==
          "FORMAT: tensor 't': offset 8 is not a multiple of the alignment 32");
    CHECK(refusal(one_tensor().tensor("blk.0.attn_q.weight", 0, 114, 128).data(204)) ==
          "FORMAT: tensor 'blk.0.attn_q.weight': offset 128 + 456 bytes, from byte 96 on, lies outside the file of 300 "
          "bytes");
    CHECK(refusal(one_tensor().tensor("t", 0, 8, uint64_t{0} - 32).data(100)) ==
          "FORMAT: tensor 't': offset 18446744073709551584 + 32 bytes, from byte 64 on, lies outside the file of 164 "
          "bytes");
    CHECK(refusal(one_tensor().tensor("t", 0, 8, 0)) ==
          "FORMAT: tensor 't': offset 0 + 32 bytes, from byte 64 on, lies outside the file of 57 bytes");
    CHECK(refusal(GgufBytes().head(2, 0).tensor("t", 0, 8, 0).tensor("t", 0, 8, 32).data(64)) ==
          "FORMAT: tensor 't': the name occurs twice");
    CHECK(refusal(GgufBytes().head(2, 0).tensor("a", 0, 9, 0).tensor("b", 0, 8, 32).data(64)) ==
          "FORMAT: tensor 'b': data overlaps that of tensor 'a' at byte 128");
    CHECK(refusal(GgufBytes().head(2, 0).tensor("b", 0, 8, 32).tensor("a", 0, 8, 0).data(64)) == "read");
}

TEST_CASE("names in sentences are cut and escaped") {
    const std::string name(5000, 'n');
    const std::string sentence = refusal(one_tensor().tensor(name, 77, 32, 0));
    CHECK(sentence == "UNSUPPORTED: tensor '" + name.substr(0, 100) + "...': type 77 is not known");
}

TEST_CASE("types that cannot be computed with still have sizes") {
    const auto bytes_of = [](uint32_t type, uint64_t dim) {
        return parse(one_tensor().tensor("t", type, dim, 0).data(4096)).tensors()[0].bytes;
    };
    CHECK(bytes_of(16, 256) == 66);  // IQ2_XXS
    CHECK(bytes_of(39, 32) == 17);   // MXFP4
    CHECK(bytes_of(34, 256) == 54);  // TQ1_0
    CHECK(bytes_of(27, 3) == 24);    // I64
    const GgufFile scalar = parse(one_tensor().string("t").u32(0).u32(0).u64(0).data(4));
    CHECK(scalar.tensors()[0].n_dims == 0);
    CHECK(scalar.tensors()[0].bytes == 4);
}
