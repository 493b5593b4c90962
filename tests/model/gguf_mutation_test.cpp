// Ten thousand damaged heads of real files: each is read or refused with a sentence, and takes memory in proportion to
// the file, whatever its counts claim.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/printable.h"
#include "model/gguf.h"
#include "tests/model/allocation_count.h"
#include "tests/model/gguf_bytes.h"
#include "tests/model/gguf_exercise.h"
#include "tests/npy.h"
#include "tests/reference_data.h"
#include "tests/thread_time.h"

using namespace inlay;
using namespace inlay::test;

namespace {

// A head and zeros behind it, in place of tensor data.
class HeadSource final : public ByteSource {
public:
    HeadSource(const std::string& head, uint64_t n_zeros) : head_(head), n_zeros_(n_zeros) {}
    uint64_t size() const override { return head_.size() + n_zeros_; }
    void read_at(uint64_t offset, void* buffer, size_t n) const override {
        if (offset > size() || n > size() - offset) throw std::logic_error("read outside the file");
        std::memset(buffer, 0, n);
        if (offset < head_.size()) std::memcpy(buffer, head_.data() + offset, std::min(n, head_.size() - offset));
    }

private:
    const std::string& head_;
    uint64_t n_zeros_;
};

struct Outcome {
    int32_t status;
    size_t peak_bytes;
};

enum class Then { ask_everything, nothing };

Outcome read_counting(const ByteSource& source, Then then = Then::ask_everything) {
    const size_t before = allocated_bytes();
    reset_peak_allocated_bytes();
    try {
        const GgufFile file = GgufFile::read(source);
        const size_t peak = peak_allocated_bytes() - before;
        if (then == Then::ask_everything) exercise(file, source.size());
        return {INLAY_OK, peak};
    } catch (const Error& error) {
        if (error.sentence().empty() || !is_printable(error.sentence())) throw std::logic_error("no sentence");
        return {error.status(), peak_allocated_bytes() - before};
    }
}

uint64_t memory_bound(const ByteSource& source) {
    return 16 * source.size() + (64 << 10);
}

class Mutator {
public:
    explicit Mutator(uint64_t seed) : random_(seed) {}

    uint64_t below(uint64_t n) { return random_() % n; }

    void mutate(std::string& head) {
        for (uint64_t i = 0, n = 1 + below(2); i < n && head.size() > 16; ++i) mutate_once(head);
    }

private:
    void mutate_once(std::string& head) {
        const size_t at = position(head);
        switch (below(8)) {
            case 0:
                head[at] = static_cast<char>(head[at] ^ (1 << below(8)));
                break;
            case 1:
                head[at] = static_cast<char>(kExtremes[below(std::size(kExtremes))]);
                break;
            case 2:
                head.resize(at);
                break;
            case 3:
                head.insert(at, std::string(1 + below(16), static_cast<char>(below(256))));
                break;
            case 4:
                head.erase(at, 1 + below(16));
                break;
            case 5:
                overwrite(head, at, 4);
                break;
            case 6:
                overwrite(head, at, 8);
                break;
            default:
                head.replace(at, 16, head.substr(position(head), 16));
                break;
        }
    }

    // Numbers lie densest at the start (short keys) and the end (tensors); the vocabulary between is mostly text.
    size_t position(const std::string& head) {
        const size_t part = std::min<size_t>(head.size(), 1500);
        switch (below(3)) {
            case 0:
                return below(part);
            case 1:
                return head.size() - 1 - below(part);
            default:
                return below(head.size());
        }
    }

    void overwrite(std::string& head, size_t at, size_t n) {
        uint64_t value = kExtremes[below(std::size(kExtremes))];
        if (below(4) == 0) value = random_();
        if (below(4) == 0) value = ~value;
        for (size_t i = at; i < std::min(at + n, head.size()); ++i, value >>= 8) head[i] = static_cast<char>(value);
    }

    static constexpr uint64_t kExtremes[] = {0,          1,          2,          9,          0x7f,
                                             0x80,       0xff,       0x7fff,     0xffff,     0x10000,
                                             0x7fffffff, 1u << 31,   0xffffffff, 1ull << 32, 1ull << 60,
                                             1ull << 61, 1ull << 62, INT64_MAX,  1ull << 63, UINT64_MAX};
    std::mt19937_64 random_;
};

std::vector<std::string> model_files() {
    return {"tiny/llama/llama.f16.gguf",
            "tiny/llama_headdim/llama_headdim.f32.gguf",
            "tiny/llama3_rope/llama3_rope.f32.gguf",
            "tiny/llama_linear_rope/llama_linear_rope.f32.gguf",
            "tiny/llama_yarn/llama_yarn.f32.gguf",
            "quant_models/q_Q4_1.gguf",
            "quant_models/q_Q4_K_M.gguf",
            "quant_models/q_Q6_K.gguf"};
}

}  // namespace

TEST_CASE("ten thousand mutations of heads are read or refused, in bounded memory") {
    std::map<int32_t, int> outcomes;
    double worst = 0;  // bytes taken for a byte of the file
    for (const std::string& name : model_files()) {
        const std::string file = read_file(data_dir() / name);
        const std::string head = file.substr(0, GgufFile::read(MemorySource(file.data(), file.size())).data_offset());
        Mutator mutator(head.size());
        for (int i = 0; i < 1250; ++i) {
            std::string mutated = head;
            mutator.mutate(mutated);
            const HeadSource source(mutated, mutator.below(4) == 0 ? mutator.below(100) : file.size() - head.size());
            const Outcome outcome = read_counting(source);
            ++outcomes[outcome.status];
            worst =
                std::max(worst, static_cast<double>(outcome.peak_bytes) / static_cast<double>(source.size() + 4096));
            if (outcome.peak_bytes > memory_bound(source))
                FAIL(name << ", mutation " << i << ": " << outcome.peak_bytes);
        }
    }
    // Nothing but these, and enough of each for the test to mean something.
    CAPTURE(outcomes[INLAY_OK], outcomes[INLAY_E_FORMAT], outcomes[INLAY_E_UNSUPPORTED], worst);
    CHECK(outcomes[INLAY_OK] > 500);
    CHECK(outcomes[INLAY_E_FORMAT] > 5000);
    CHECK(outcomes[INLAY_E_UNSUPPORTED] > 50);
    CHECK(outcomes[INLAY_OK] + outcomes[INLAY_E_FORMAT] + outcomes[INLAY_E_UNSUPPORTED] == 10000);
    CHECK(worst < 16);
}

TEST_CASE("every length of a cut file is refused") {
    const std::string file = read_file(data_dir() / "tiny/llama_yarn/llama_yarn.f32.gguf");
    const size_t head = GgufFile::read(MemorySource(file.data(), file.size())).data_offset();
    for (size_t n = 0; n <= head; ++n) {
        const std::string cut = file.substr(0, n);
        const HeadSource source(cut, 0);
        const Outcome outcome = read_counting(source);
        if (outcome.status != INLAY_E_FORMAT) FAIL("cut at " << n << ": status " << outcome.status);
        if (outcome.peak_bytes > memory_bound(source)) FAIL("cut at " << n << ": " << outcome.peak_bytes << " bytes");
    }
}

TEST_CASE("files of the smallest keys and tensors stay within the memory bound and linear time") {
    constexpr uint64_t kCount = 200000;
    GgufBytes bytes;
    bytes.head(kCount, kCount);
    const auto numbered = [](uint64_t i) {
        std::string name(3, '!');
        for (char& c : name) {
            c = static_cast<char>('0' + i % 64);
            i /= 64;
        }
        return name;
    };
    for (uint64_t i = 0; i < kCount; ++i) bytes.key(numbered(i), 0).u8(7);
    for (uint64_t i = 0; i < kCount; ++i) bytes.string(numbered(i)).u32(0).u32(24).u64(i * 32);
    const HeadSource source(bytes.bytes(), kCount * 32);
    const HeadSource without_data(bytes.bytes(), 0);

    const double begin = thread_seconds();
    CHECK(GgufFile::read(source).tensors().size() == kCount);
    const double seconds = thread_seconds() - begin;
    CHECK(seconds < 10);  // about 0.2; the square of 200,000 would be minutes

    const Outcome outcome = read_counting(source, Then::nothing);
    CHECK(outcome.status == INLAY_OK);
    CHECK(read_counting(without_data).status == INLAY_E_FORMAT);
    CHECK(outcome.peak_bytes < memory_bound(without_data));
    const double ratio = static_cast<double>(outcome.peak_bytes) / static_cast<double>(bytes.bytes().size());
    INFO(seconds << " s, " << ratio << " bytes for a byte of the head");
    CHECK(ratio < 8);
}

TEST_CASE("counts that no file can hold take no memory") {
    for (const uint64_t count : {uint64_t{1} << 60, uint64_t{UINT64_MAX}, uint64_t{1} << 32}) {
        const std::string heads[] = {
            GgufBytes().head(count, 0).bytes(),
            GgufBytes().head(0, count).bytes(),
            GgufBytes().head(0, 1).u64(count).bytes(),
            GgufBytes().head(0, 1).key("k", 8).u64(count).bytes(),
            GgufBytes().head(0, 1).array("k", 10, count).bytes(),
            GgufBytes().head(0, 1).array("k", 8, count).bytes(),
            GgufBytes().head(0, 1).array("k", 8, 1).u64(count).bytes(),
            GgufBytes().head(1, 0).u64(count).bytes(),
        };
        for (const std::string& head : heads) {
            const HeadSource source(head, 100);
            const Outcome outcome = read_counting(source);
            CHECK(outcome.status == INLAY_E_FORMAT);
            CHECK(outcome.peak_bytes < 8192);
        }
    }
}

TEST_CASE("a head of terabytes is refused before it takes memory") {
    const std::string heads[] = {
        GgufBytes().head(0, 1).key("k", 8).u64(uint64_t{1} << 40).bytes(),
        GgufBytes().head(0, 1).array("k", 8, uint64_t{1} << 36).bytes(),
        GgufBytes().head(0, uint64_t{1} << 35).bytes(),
    };
    for (const std::string& head : heads) {
        const Outcome outcome = read_counting(HeadSource(head, uint64_t{1} << 41));
        CHECK(outcome.status == INLAY_E_UNSUPPORTED);
        CHECK(outcome.peak_bytes < (100 << 10));
    }
}
