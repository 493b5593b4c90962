// Split models are read as the whole they were, and every way in which parts can disagree is refused by name.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/gguf_split.h"
#include "model/model_file.h"
#include "tests/model/gguf_parts.h"
#include "tests/npy.h"
#include "tests/reference_data.h"
#include "tests/temporary_directory.h"

using namespace inlay;
using namespace inlay::test;

namespace {

std::string whole_file() {
    return read_file(data_dir() / "tiny/llama/llama.f16.gguf");
}

std::string file_name(size_t part, size_t n_parts) {
    return "tiny-0000" + std::to_string(part + 1) + "-of-0000" + std::to_string(n_parts) + ".gguf";
}

// Files of a split model, named as they should be.
struct SplitFiles {
    TemporaryDirectory directory;
    size_t n_parts;

    explicit SplitFiles(const std::vector<std::string>& parts) : n_parts(parts.size()) {
        for (size_t part = 0; part < n_parts; ++part) directory.write(file_name(part, n_parts), parts[part]);
    }
    std::string path(size_t part = 0) const { return (directory.path / file_name(part, n_parts)).string(); }
};

// The parts outlive the source.
GivenModelSource in_memory(const std::vector<std::string>& parts) {
    std::vector<std::shared_ptr<const ByteSource>> sources;
    for (const std::string& part : parts)
        sources.push_back(std::make_shared<const MemorySource>(part.data(), part.size()));
    return GivenModelSource(std::move(sources));
}

std::string bytes_of(const ModelFile& file, const TensorInfo& tensor) {
    std::string bytes(tensor.bytes, '\0');
    file.bytes->read_at(tensor.offset, bytes.data(), bytes.size());
    return bytes;
}

void check_equal(ModelSource& split, ModelSource& whole, uint32_t n_parts) {
    const ModelFile expected = ModelFile::open(whole);
    const ModelFile found = ModelFile::open(split);
    CHECK(found.n_parts == n_parts);
    REQUIRE(found.head.tensors().size() == expected.head.tensors().size());
    for (const TensorInfo& tensor : expected.head.tensors()) {
        CAPTURE(tensor.name);
        const TensorInfo* same = found.head.find_tensor(tensor.name);
        REQUIRE(same != nullptr);
        CHECK(same->type == tensor.type);
        CHECK(std::equal(same->dims, same->dims + 4, tensor.dims));
        CHECK(bytes_of(found, *same) == bytes_of(expected, tensor));
    }
    CHECK(found.head.string("general.architecture") == "llama");
    CHECK(found.head.strings("tokenizer.ggml.tokens")->size() == 384);
}

// "status: sentence"
std::string refusal(ModelSource& source) {
    try {
        ModelFile::open(source);
        return "read";
    } catch (const Error& error) {
        return std::to_string(error.status()) + ": " + error.sentence();
    }
}
std::string refusal(const std::vector<std::string>& parts) {
    GivenModelSource source = in_memory(parts);
    return refusal(source);
}
std::string refusal(const std::string& path) {
    PathModelSource source(path);
    return refusal(source);
}

const std::string kFormat = std::to_string(INLAY_E_FORMAT) + ": ";
const std::string kInvalid = std::to_string(INLAY_E_INVALID_ARGUMENT) + ": ";
const std::string kIo = std::to_string(INLAY_E_IO) + ": ";

}  // namespace

TEST_CASE("parts are the whole, from files, mapped files and memory") {
    const std::vector<std::string> whole{whole_file()};
    const GgufParts parts(whole[0]);
    for (const size_t n_parts : {size_t{1}, size_t{2}, size_t{5}})
        for (const bool bare_first : {false, true}) {
            if (bare_first && n_parts == 1) continue;
            CAPTURE(n_parts, bare_first);
            const std::vector<std::string> split = parts.split(n_parts, {}, bare_first);
            GivenModelSource expected = in_memory(whole);
            GivenModelSource memory = in_memory(split);
            check_equal(memory, expected, static_cast<uint32_t>(n_parts));
            const SplitFiles files(split);
            for (const auto access : {PathModelSource::Access::kRead, PathModelSource::Access::kMap}) {
                PathModelSource path(files.path(), access);
                check_equal(path, expected, static_cast<uint32_t>(n_parts));
            }
        }
}

TEST_CASE("a file that was joined again is whole") {
    const auto joined = [](size_t, SplitKeys& keys) { keys.count = 0; };
    CHECK(refusal(GgufParts(whole_file()).split(1, joined)) == "read");
    const auto unnumbered = [](size_t, SplitKeys& keys) { keys = {}; };
    CHECK(refusal(GgufParts(whole_file()).split(1, unnumbered)) == "read");
}

TEST_CASE("names of parts") {
    CHECK(split_path("a/b-00001-of-00003.gguf", 2, 3) == "a/b-00003-of-00003.gguf");
    CHECK(split_path("-00001-of-65535.gguf", 65534, 65535) == "-65535-of-65535.gguf");
    CHECK_FALSE(split_path("a/b-00001-of-00003.gguf", 1, 4));
    CHECK_FALSE(split_path("a/b-00002-of-00003.gguf", 1, 3));
    CHECK_FALSE(split_path("b.gguf", 0, 2));
    CHECK_FALSE(split_path("", 0, 2));
}

TEST_CASE("a part that is missing, or not the first, is named") {
    const SplitFiles files(GgufParts(whole_file()).split(3));
    CHECK(refusal(files.path(1)) == kInvalid + "'" + files.path(1) +
                                        "': this is part 2 of 3 (key 'split.no'): a split model is opened by its first "
                                        "part");
    const std::string renamed = (files.directory.path / "model.gguf").string();
    std::filesystem::copy_file(files.path(0), renamed);
    CHECK(refusal(renamed) ==
          kFormat + "'" + renamed +
              "': key 'split.count' is 3, but the file's name does not end like that of part 1 of 3, so that the other "
              "parts can not be found");
    std::filesystem::remove(files.path(2));
    CHECK(refusal(files.path()) == kIo + "'" + files.path(2) + "': cannot open: No such file or directory");
}

TEST_CASE("parts that disagree are refused with the part and the key") {
    const GgufParts parts(whole_file());
    const auto with = [&](size_t of_part, auto change) {
        return parts.split(3, [&](size_t part, SplitKeys& keys) {
            if (part == of_part) change(keys);
        });
    };
    using Keys = SplitKeys&;
    CHECK(refusal(with(1, [](Keys keys) { keys.number = 2; })) ==
          kFormat + "part 1 of the source: key 'split.no': value is 2; 1 belongs here");
    CHECK(refusal(with(2, [](Keys keys) { keys.number.reset(); })) ==
          kFormat + "part 2 of the source: key 'split.no': the key is missing");
    CHECK(refusal(with(2, [](Keys keys) { keys.count = 4; })) ==
          kFormat + "part 2 of the source: key 'split.count': value is 4 and 3 in the first part");
    CHECK(refusal(with(0, [](Keys keys) { keys.number = 3; })) ==
          kFormat + "part 0 of the source: key 'split.no': value is 3 of 3 parts, counted from 0");
    CHECK(refusal(with(0, [](Keys keys) { keys.n_tensors = 7; })) ==
          kFormat + "key 'split.tensors.count': value is 7; the parts have " + std::to_string(parts.n_tensors()) +
              " tensors together");
    CHECK(refusal(with(0, [](Keys keys) { keys.n_tensors.reset(); })) ==
          kFormat + "key 'split.tensors.count': the key is missing");
    CHECK(refusal(with(0, [](Keys keys) { keys.n_tensors = -1; })) ==
          kFormat + "key 'split.tensors.count': value must not be negative, it is -1");
    CHECK(refusal(with(1, [](Keys keys) { keys.count.reset(); })) == "read");

    std::vector<std::string> too_few = parts.split(3);
    too_few.pop_back();
    CHECK(refusal(too_few) == kInvalid + "part 0 of the source: n_parts is 2, but the model has 3 (key 'split.count')");
    CHECK(refusal({whole_file(), whole_file()}) ==
          kInvalid + "part 0 of the source: n_parts is 2, but the model has 1 (key 'split.count')");

    std::vector<std::string> cut = parts.split(3);
    cut[2].resize(100);
    CHECK(refusal(cut).find(kFormat + "part 2 of the source: ") == 0);
    std::vector<std::string> swapped = parts.split(3);
    std::swap(swapped[1], swapped[2]);
    CHECK(refusal(swapped) == kFormat + "part 1 of the source: key 'split.no': value is 2; 1 belongs here");
}

TEST_CASE("a tensor in two parts is refused") {
    const std::vector<std::string> parts = {
        GgufBytes()
            .head(1, 3)
            .key("split.no", 2)
            .u16(0)
            .key("split.count", 2)
            .u16(2)
            .key("split.tensors.count", 5)
            .u32(2)
            .tensor("twice", 0, 8, 0)
            .data(32)
            .bytes(),
        GgufBytes().head(1, 1).key("split.no", 2).u16(1).tensor("twice", 0, 8, 0).data(32).bytes()};
    CHECK(refusal(parts) == kFormat + "tensor 'twice': the name occurs twice");
}
