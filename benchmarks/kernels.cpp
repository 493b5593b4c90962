// Each kernel alone, on one thread, by the fastest table of this processor. Beside the time stands the part of what the
// machine can do, measured by this program: `of_read`, of the bandwidth of reading memory, for the weights or rows that
// a kernel goes through (above 1 where they lie in caches); `of_int8` and `of_f32`, of the peak of such operations.
// Options are Google Benchmark's: --benchmark_filter=multiply_quantized/Q4_K
#include <benchmark/benchmark.h>

#include <cstring>
#include <ctime>
#include <optional>

#include "base/pages.h"
#include "benchmarks/machine_peaks.h"
#include "tests/kernels/sample_weights.h"

namespace {

using namespace inlay;
using benchmark::State;
using kernels::fastest;

constexpr size_t kCols = 4096;
constexpr size_t kOutputs = 16384;  // with kCols columns more than caches hold

struct Peaks {
    double read = benchmarks::read_bandwidth(1, size_t{256} << 20).best;
    double int8 = benchmarks::int8_peak();
    double f32 = benchmarks::f32_peak();
};
const Peaks& peaks() {
    static const Peaks measured;
    return measured;
}

struct Work {
    double bytes = 0;
    double int8_operations = 0;
    double f32_operations = 0;
};

// Runs `kernel` as often as the state wants, and tells what part of the peaks its work took: of processor time, so that
// what else runs on the machine does not count.
template <typename Kernel>
void measure(State& state, const Work& work, const Kernel& kernel) {
    const std::clock_t start = std::clock();
    for (auto _ : state) {
        kernel();
        benchmark::ClobberMemory();
    }
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    const double runs_s = static_cast<double>(state.iterations()) / seconds;
    const auto tell = [&](const char* name, double done, double peak) {
        if (done > 0 && peak > 0) state.counters[name] = done * runs_s / peak;
    };
    tell("of_read", work.bytes, peaks().read);
    tell("of_int8", work.int8_operations, peaks().int8);
    tell("of_f32", work.f32_operations, peaks().f32);
}

// ---- products -----------------------------------------------------------------------------------------------------

// A matrix of random weights in large pages, as an engine's lie.
struct Weights {
    explicit Weights(TensorType type) {
        test::Random random(1);
        const test::SampleMatrix sample(type, kOutputs, kCols, random);
        matrix = sample.matrix;
        const size_t n_bytes = matrix.n_groups() * kernels::packed_group_bytes(type, kCols);
        pages = PageRange(system_pages(), n_bytes, true);
        pages.commit(0, n_bytes, false);
        std::memcpy(pages.data(), sample.packed.data(), n_bytes);
        matrix.data = pages.data();
    }

    PageRange pages;
    kernels::PackedMatrix matrix;
};

// Those of a type, kept until another type's are wanted.
const kernels::PackedMatrix& weights(TensorType type) {
    static std::optional<Weights> kept;
    if (!kept || kept->matrix.type != type) kept.emplace(type);
    return kept->matrix;
}

Work product(const kernels::PackedMatrix& matrix, size_t n_rows) {
    Work work;
    work.bytes = static_cast<double>(matrix.n_groups() * kernels::packed_group_bytes(matrix.type, kCols));
    work.int8_operations = 2.0 * kOutputs * kCols * static_cast<double>(n_rows);
    return work;
}

void multiply_quantized(State& state, TensorType type, size_t n_rows) {
    test::Random random(2);
    const kernels::PackedMatrix& matrix = weights(type);
    const std::vector<float> x = test::random_floats(n_rows * kCols, random);
    test::AlignedBytes rows(n_rows * kernels::quantized_row_bytes(kCols));
    fastest().quantize_rows(x.data(), kCols, n_rows, kCols, rows.data());
    std::vector<float> y(n_rows * kOutputs);
    measure(state, product(matrix, n_rows), [&] {
        fastest().multiply_quantized(matrix, rows.data(), nullptr, n_rows, 0, matrix.n_groups(), nullptr, false,
                                     y.data(), kOutputs);
    });
}

void multiply_float(State& state, TensorType type, size_t n_rows) {
    test::Random random(2);
    const kernels::PackedMatrix& matrix = weights(type);
    const std::vector<float> x = test::random_floats(n_rows * kCols, random);
    std::vector<float> y(n_rows * kOutputs);
    Work work = product(matrix, n_rows);
    std::swap(work.int8_operations, work.f32_operations);
    measure(state, work, [&] {
        fastest().multiply_float(matrix, x.data(), kCols, n_rows, 0, matrix.n_groups(), nullptr, false, y.data(),
                                 kOutputs);
    });
}

// ---- attention ----------------------------------------------------------------------------------------------------

using kernels::kBlockTokens;
using kernels::KvType;

// Heads that look at one KV head.
struct HeadGroup {
    const char* model;
    size_t dim;
    size_t n_heads;
};
constexpr HeadGroup kHeadGroups[] = {{"smollm2", 64, 3}, {"gemma", 256, 4}};
constexpr size_t kTokens = 4096;

std::string name_of(KvType type) {
    constexpr const char* kNames[] = {"f32", "f16", "bf16", "int8", "int4"};
    return kNames[static_cast<size_t>(type)];
}

// Pages of one type for `n_sequences` KV heads of kTokens each, and the exact tiles of their last block. Pages of a
// sequence lie as far apart as those of a model with as many KV heads and layers.
class KvPages {
public:
    KvPages(const HeadGroup& group, KvType type, size_t n_sequences)
        : key_bytes_(kernels::key_code_bytes(type, group.dim)),
          value_bytes_(kernels::value_code_bytes(type, group.dim)),
          key_parameter_bytes_(kernels::key_parameter_bytes(type, group.dim)),
          sequence_bytes_(
              (key_bytes_ + value_bytes_ + key_parameter_bytes_ + kernels::value_parameter_bytes(type) + 63) / 64 * 64),
          page_bytes_(n_sequences * sequence_bytes_),
          memory_(system_pages(), n_blocks() * page_bytes_, true),
          tiles_(2 * tile_bytes(group)) {
        memory_.commit(0, n_blocks() * page_bytes_, false);
        test::Random random(3);
        const KvType exact = kernels::exact_type(type);
        for (size_t block = 0; block < n_blocks(); ++block) {
            for (size_t slot = 0; slot < kBlockTokens; ++slot) {
                const std::vector<float> token = test::random_floats(2 * group.dim, random);
                fastest().store_keys(token.data(), group.dim, exact, slot, tiles_.data());
                fastest().store_values(token.data() + group.dim, group.dim, exact, slot,
                                       tiles_.data() + tile_bytes(group));
            }
            pages_.push_back(memory_.data() + block * page_bytes_);
            for (size_t sequence = 0; sequence < n_sequences; ++sequence)
                fill(group, type, memory_.data() + block * page_bytes_ + sequence * sequence_bytes_);
        }
    }

    // For all rows in the last block.
    kernels::AttentionTask task(const HeadGroup& group, KvType type, size_t n_rows, size_t sequence,
                                const float* queries) const {
        const size_t keys = sequence * sequence_bytes_;
        const bool quantized = kernels::is_quantized(type);
        return {.queries = queries,
                .query_row_stride = group.dim * group.n_heads,
                .n_rows = n_rows,
                .n_heads = group.n_heads,
                .head_dim = group.dim,
                .value_dim = group.dim,
                .first_position = static_cast<uint32_t>(kTokens - n_rows),
                .window = 0,
                .scale = 0.125f,
                .key_type = type,
                .value_type = type,
                .pages = pages_.data(),
                .key_offset = keys,
                .value_offset = keys + key_bytes_,
                .key_parameters_offset = keys + key_bytes_ + value_bytes_,
                .value_parameters_offset = keys + key_bytes_ + value_bytes_ + key_parameter_bytes_,
                .own_keys = quantized ? tiles_.data() : nullptr,
                .own_values = quantized ? tiles_.data() + tile_bytes(group) : nullptr};
    }

    size_t bytes() const { return n_blocks() * sequence_bytes_; }

private:
    static size_t n_blocks() { return kTokens / kBlockTokens; }
    static size_t tile_bytes(const HeadGroup& group) { return kBlockTokens * group.dim * 4; }

    void fill(const HeadGroup& group, KvType type, std::byte* at) const {
        const std::byte* keys = tiles_.data();
        const std::byte* values = keys + tile_bytes(group);
        if (kernels::is_quantized(type)) {
            std::byte* parameters = at + key_bytes_ + value_bytes_;
            fastest().close_keys(keys, group.dim, type, at, parameters);
            fastest().close_values(values, group.dim, type, at + key_bytes_, parameters + key_parameter_bytes_);
        } else {
            std::memcpy(at, keys, key_bytes_);
            std::memcpy(at + key_bytes_, values, value_bytes_);
        }
    }

    size_t key_bytes_, value_bytes_, key_parameter_bytes_, sequence_bytes_, page_bytes_;
    PageRange memory_;
    test::AlignedBytes tiles_;
    std::vector<const std::byte*> pages_;
};

// The last `n_rows` positions of kTokens. `n_sequences`: KV heads that take turns; with many of them pages come from
// memory, as when a layer's are read once a token.
void attend(State& state, const HeadGroup& group, KvType type, size_t n_rows, size_t n_sequences) {
    const size_t row_floats = group.dim * group.n_heads;
    const KvPages pages(group, type, n_sequences);
    test::Random random(3);
    const std::vector<float> queries = test::random_floats(n_rows * row_floats, random);
    std::vector<float> states(n_rows * group.n_heads * kernels::attention_state_floats(group.dim));
    std::vector<float> out(n_rows * row_floats);
    Work work;
    work.bytes = static_cast<double>(pages.bytes());
    const double n_seen = static_cast<double>(n_rows) * (kTokens - static_cast<double>(n_rows) / 2);
    work.f32_operations = 4.0 * static_cast<double>(row_floats) * n_seen;
    size_t sequence = 0;
    measure(state, work, [&] {
        sequence = (sequence + 1) % n_sequences;
        fastest().attend(pages.task(group, type, n_rows, sequence, queries.data()), 0,
                         (kTokens - 1) / kernels::kSplitPositions + 1, true, states.data());
        fastest().finish_attention(states.data(), n_rows * group.n_heads, group.dim, out.data());
    });
}

// Closes blocks of one KV head: keys and values of 16 tokens.
void close_block(State& state, const HeadGroup& group, KvType type) {
    test::Random random(5);
    const size_t tile_bytes = kBlockTokens * group.dim * 2;
    test::AlignedBytes keys(tile_bytes), values(tile_bytes), codes(tile_bytes), parameters(1024);
    for (size_t slot = 0; slot < kBlockTokens; ++slot) {
        const std::vector<float> token = test::random_floats(2 * group.dim, random);
        fastest().store_keys(token.data(), group.dim, KvType::kF16, slot, keys.data());
        fastest().store_values(token.data() + group.dim, group.dim, KvType::kF16, slot, values.data());
    }
    measure(state, {}, [&] {
        fastest().close_keys(keys.data(), group.dim, type, codes.data(), parameters.data());
        fastest().close_values(values.data(), group.dim, type, codes.data(), parameters.data());
    });
}

void rotate(State& state, const HeadGroup& group) {
    test::Random random(6);
    std::vector<float> x = test::random_floats(kBlockTokens * group.dim, random);
    measure(state, {}, [&] { fastest().rotate(x.data(), kBlockTokens, group.dim); });
}

// ---- rows ---------------------------------------------------------------------------------------------------------

constexpr size_t kRows = 64;

// A kernel over [kRows, kCols] floats that goes through `n_floats` for each.
template <typename Kernel>
void on_rows(State& state, double n_floats, const Kernel& kernel) {
    test::Random random(4);
    const std::vector<float> x = test::random_floats(kRows * kCols, random);
    const std::vector<float> other = test::random_floats(kRows * kCols, random);
    std::vector<float> y(kRows * kCols);
    Work work;
    work.bytes = n_floats * 4 * kRows * kCols;
    measure(state, work, [&] { kernel(x.data(), other.data(), y.data()); });
}

void quantize_rows(State& state) {
    test::AlignedBytes rows(kRows * kernels::quantized_row_bytes(kCols));
    on_rows(state, 1.5, [&](const float* x, const float*, float*) {
        fastest().quantize_rows(x, kCols, kRows, kCols, rows.data());
    });
}

void rms_norm(State& state) {
    on_rows(state, 2, [](const float* x, const float* weight, float* y) {
        fastest().rms_norm(x, kCols, weight, 1e-5f, kRows, kCols, y, kCols);
    });
}

void silu_multiply(State& state) {
    on_rows(state, 3, [](const float* gate, const float* up, float* y) {
        fastest().silu_multiply(gate, up, kCols, kRows, kCols, y, kCols);
    });
}

void gelu_multiply(State& state) {
    on_rows(state, 3, [](const float* gate, const float* up, float* y) {
        fastest().gelu_multiply(gate, up, kCols, kRows, kCols, y, kCols);
    });
}

void softmax_weights(State& state) {
    on_rows(state, 2, [](const float* x, const float*, float* y) {
        fastest().softmax_weights(x, kRows * kCols, 10.0f, 1.0f, y);
    });
}

void rope_rotate(State& state) {
    constexpr size_t kDim = 64;
    on_rows(state, 2, [](const float*, const float* angles, float* y) {
        fastest().rope_rotate(y, kRows * kCols / kDim, kDim, angles, kDim / 2, false);
    });
}

// -------------------------------------------------------------------------------------------------------------------

template <typename Function, typename... Arguments>
void add(const std::string& name, Function function, Arguments... arguments) {
    benchmark::RegisterBenchmark(name.c_str(), [=](State& state) {
        function(state, arguments...);
    })->Unit(benchmark::kMicrosecond);
}

void add_all() {
    for (const TensorType type : test::kQuantizedTypes)
        for (const size_t n_rows : {1, 8, 128})
            add("multiply_quantized/" + std::string(name(type)) + "/" + std::to_string(n_rows), multiply_quantized,
                type, n_rows);
    for (const TensorType type : {TensorType::kQ4_K, TensorType::kF16, TensorType::kBF16})
        for (const size_t n_rows : {1, 8})
            add("multiply_float/" + std::string(name(type)) + "/" + std::to_string(n_rows), multiply_float, type,
                n_rows);
    for (const HeadGroup& group : kHeadGroups) {
        const std::string model = group.model;
        for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBf16, KvType::kInt8, KvType::kInt4}) {
            const std::string of = "/" + model + "/" + name_of(type);
            for (const size_t n_rows : {1, 16}) {
                const std::string rows = std::to_string(n_rows);
                add("attend_cached" + of + "/" + rows, attend, group, type, n_rows, size_t{1});
                add("attend_memory" + of + "/" + rows, attend, group, type, n_rows,
                    group.dim == 64 ? size_t{180} : size_t{45});
            }
            if (kernels::is_quantized(type)) add("close_block" + of, close_block, group, type);
        }
        add("rotate/" + model, rotate, group);
    }
    add("quantize_rows", quantize_rows);
    add("rms_norm", rms_norm);
    add("silu_multiply", silu_multiply);
    add("gelu_multiply", gelu_multiply);
    add("softmax_weights", softmax_weights);
    add("rope_rotate", rope_rotate);
}

}  // namespace

int main(int argc, char** argv) {
    add_all();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::AddCustomContext("kernels", fastest().name);
    benchmark::AddCustomContext("read GB/s", std::to_string(peaks().read / 1e9));
    benchmark::AddCustomContext("int8 GOPS", std::to_string(peaks().int8 / 1e9));
    benchmark::AddCustomContext("f32 GFLOPS", std::to_string(peaks().f32 / 1e9));
    benchmark::RunSpecifiedBenchmarks();
}
