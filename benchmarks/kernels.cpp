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
    double read = benchmarks::read_bandwidth(1, size_t{256} << 20);
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

// The last `n_rows` positions of a sequence of `n_tokens`, one KV head of 64 channels with three query heads, f16.
void attend(State& state, size_t n_tokens, size_t n_rows) {
    constexpr size_t kDim = 64, kHeads = 3, kRowFloats = kDim * kHeads;
    constexpr size_t kKeyBytes = kernels::kBlockTokens * kDim * 2;
    test::Random random(3);
    const size_t n_blocks = (n_tokens + kernels::kBlockTokens - 1) / kernels::kBlockTokens;
    test::AlignedBytes memory(n_blocks * 2 * kKeyBytes);
    std::vector<const std::byte*> pages;
    for (size_t block = 0; block < n_blocks; ++block) {
        std::byte* page = memory.data() + block * 2 * kKeyBytes;
        pages.push_back(page);
        for (size_t slot = 0; slot < kernels::kBlockTokens; ++slot) {
            const std::vector<float> token = test::random_floats(2 * kDim, random);
            fastest().store_keys(token.data(), kDim, kernels::KvType::kF16, slot, page);
            fastest().store_values(token.data() + kDim, kDim, kernels::KvType::kF16, slot, page + kKeyBytes);
        }
    }
    const std::vector<float> queries = test::random_floats(n_rows * kRowFloats, random);
    const kernels::AttentionTask task{queries.data(),
                                      kRowFloats,
                                      n_rows,
                                      kHeads,
                                      kDim,
                                      kDim,
                                      static_cast<uint32_t>(n_tokens - n_rows),
                                      0,
                                      0.125f,
                                      kernels::KvType::kF16,
                                      kernels::KvType::kF16,
                                      pages.data(),
                                      0,
                                      kKeyBytes};
    std::vector<float> states(n_rows * kHeads * kernels::attention_state_floats(kDim));
    std::vector<float> out(n_rows * kRowFloats);
    Work work;
    work.bytes = static_cast<double>(n_tokens * 2 * kDim * 2);
    const double n_seen =
        static_cast<double>(n_rows) * (static_cast<double>(n_tokens) - static_cast<double>(n_rows) / 2);
    work.f32_operations = 4.0 * kDim * kHeads * n_seen;
    measure(state, work, [&] {
        fastest().attend(task, 0, (n_tokens - 1) / kernels::kSplitPositions + 1, true, states.data());
        fastest().finish_attention(states.data(), n_rows * kHeads, kDim, out.data());
    });
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
    for (const size_t n_rows : {1, 128}) add("attend/4096/" + std::to_string(n_rows), attend, size_t{4096}, n_rows);
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
