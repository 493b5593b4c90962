#include "backend/cpu/cpu_row_operations.h"

#include <algorithm>
#include <cstring>

#include "kernels/quantized_rows.h"

namespace inlay {
namespace {

constexpr size_t kRowGrain = 8;        // rows of one task of a row-wise operation
constexpr size_t kTasksPerThread = 2;  // products are cut finer than the threads, so that a late thread costs little
constexpr size_t kManyRows = 16;       // so many take long beside the cost of a task
constexpr size_t kTasksPerThreadOfManyRows = 12;
constexpr size_t kTileGroups = 4;
constexpr size_t kTileWidth = kTileGroups * kernels::kGroupRows;
constexpr size_t kTileRows = 64;

}  // namespace

// On one thread it is one range.
template <typename Work>
void CpuRowOperations::run_ranges(size_t n, size_t grain, const Work& work) {
    if (workers_)
        workers_->run_ranges(n, grain, work);
    else
        work(0, n);
}

void CpuRowOperations::rms_norm(Activation in, size_t n_rows, WeightId weight, float epsilon, Activation out) {
    run_ranges(n_rows, kRowGrain, [&](size_t first, size_t end) {
        kernels_.rms_norm(in.data + first * in.n_cols, in.n_cols, weights_.vector(weight), epsilon, end - first,
                          in.n_cols, out.data + first * out.n_cols, out.n_cols);
    });
}

bool CpuRowOperations::is_quantized_product(WeightId weight) const {
    return mode_ == ComputeMode::kAuto && is_quantized(weights_.type(weight));
}

// Rows first..end - 1 of the input.
void CpuRowOperations::make_rows(const LinearInput& in, Precision precision, size_t first, size_t end,
                                 const ProductInput& out) const {
    const size_t n_cols = in.rows.n_cols;
    const size_t n_rows = end - first;
    const float* rows = in.rows.data + first * n_cols;
    float* made = out.rows.data + first * n_cols;
    if (in.norm != kNoWeight)
        kernels_.rms_norm(rows, n_cols, weights_.vector(in.norm), in.norm_epsilon, n_rows, n_cols, made, n_cols);
    if (in.gated.data) {
        const auto gate = in.function == GateFunction::kSilu ? kernels_.silu_multiply : kernels_.gelu_multiply;
        gate(rows, in.gated.data + first * n_cols, n_cols, n_rows, n_cols, made, n_cols);
    }
    if (!precision) return;
    const size_t offset = first * kernels::quantized_row_bytes(n_cols);
    if (*precision == InputPrecision::kSingle)
        kernels_.quantize_rows(made, n_cols, n_rows, n_cols, out.quantized + offset);
    else
        kernels_.quantize_rows_twice(made, n_cols, n_rows, n_cols, out.quantized + offset, out.rest + offset);
}

void CpuRowOperations::multiply(const ProductInput& in, size_t n_rows, const LinearOutput& output, size_t first_group,
                                size_t end_group, unsigned thread) const {
    const bool quantized = is_quantized_product(output.weight);
    const std::byte* rest = output.precision == InputPrecision::kDouble ? in.rest : nullptr;
    const float* bias = weights_.vector(output.bias);
    weights_.for_packed(output.weight, first_group, end_group, thread, [&](const auto& matrix, size_t group) {
        const size_t first = group * kernels::kGroupRows;
        const float* own_bias = bias ? bias + first : nullptr;
        if (quantized)
            kernels_.multiply_quantized(matrix, in.quantized, rest, n_rows, 0, matrix.n_groups(), own_bias,
                                        output.accumulate, output.out.data + first, output.out.n_cols);
        else
            kernels_.multiply_float(matrix, in.rows.data, in.rows.n_cols, n_rows, 0, matrix.n_groups(), own_bias,
                                    output.accumulate, output.out.data + first, output.out.n_cols);
    });
}

// Tiles of at most kTileRows rows and kTileWidth outputs, each then copied to where its rows go.
void CpuRowOperations::multiply_to_rows(WeightId weight, const ProductInput& in, size_t first_group, size_t end_group,
                                        unsigned thread, std::span<float* const> out) const {
    const bool quantized = is_quantized_product(weight);
    const size_t n_cols = in.rows.n_cols;
    const size_t row_bytes = kernels::quantized_row_bytes(n_cols);
    const auto multiply_tile = [&](const kernels::PackedMatrix& matrix, size_t group, size_t row) {
        const size_t n_rows = std::min(kTileRows, out.size() - row);
        float tile[kTileRows * kTileWidth];
        if (quantized)
            kernels_.multiply_quantized(matrix, in.quantized + row * row_bytes, in.rest + row * row_bytes, n_rows, 0,
                                        matrix.n_groups(), nullptr, false, tile, kTileWidth);
        else
            kernels_.multiply_float(matrix, in.rows.data + row * n_cols, n_cols, n_rows, 0, matrix.n_groups(), nullptr,
                                    false, tile, kTileWidth);
        for (size_t r = 0; r < n_rows; ++r)
            std::memcpy(out[row + r] + group * kernels::kGroupRows, tile + r * kTileWidth,
                        matrix.n_rows * sizeof(float));
    };
    for (size_t group = first_group; group < end_group; group += kTileGroups)
        weights_.for_packed(weight, group, std::min(end_group, group + kTileGroups), thread,
                            [&](const auto& matrix, size_t first) {
                                for (size_t row = 0; row < out.size(); row += kTileRows)
                                    multiply_tile(matrix, first, row);
                            });
}

// Calls work(first group, end group, thread) in tasks of equal size, to within one group.
template <typename Work>
void CpuRowOperations::run_groups(size_t n_groups, size_t n_rows, const Work& work) {
    const size_t per_thread = n_rows < kManyRows ? kTasksPerThread : kTasksPerThreadOfManyRows;
    const size_t n_threads = workers_ ? workers_->n_threads() : 1;
    const size_t n_wanted = n_threads == 1 ? 1 : n_threads * per_thread;
    const size_t n_tasks = std::min({n_groups, n_wanted, Workers::kMaxTasks});
    const auto do_task = [n_groups, n_tasks, work](size_t task, unsigned thread) {
        work(n_groups * task / n_tasks, n_groups * (task + 1) / n_tasks, thread);
    };
    if (workers_)
        workers_->run(n_tasks, do_task);
    else
        do_task(0, thread_);
}

// Calls work(input, first group, end group, thread) for ranges of the groups of a product. What threads read of it is
// captured by value, so that it comes to them in one piece.
template <typename Work>
void CpuRowOperations::run_product(const LinearInput& in, size_t n_rows, Precision precision, size_t n_groups,
                                   const Work& work) {
    const bool by_each_thread = workers_ && workers_->n_threads() > 1 && n_rows <= ThreadInputs::kMostRows;
    if (!by_each_thread) {
        const ProductInput input(in.is_made() ? in.room : in.rows, n_rows, quantized_);
        run_ranges(n_rows, kRowGrain, [&](size_t first, size_t end) { make_rows(in, precision, first, end, input); });
        return run_groups(n_groups, n_rows,
                          [&](size_t first, size_t end, unsigned thread) { work(input, first, end, thread); });
    }
    const uint64_t number = thread_inputs_->begin();
    run_groups(n_groups, n_rows,
               [this, in, n_rows, precision, number, work](size_t first, size_t end, unsigned thread) {
                   ProductInput own = thread_inputs_->room(thread, n_rows, in.rows.n_cols);
                   if (!in.is_made()) own.rows = in.rows;
                   if (thread_inputs_->is_new(thread, number)) make_rows(in, precision, 0, n_rows, own);
                   work(own, first, end, thread);
               });
}

void CpuRowOperations::linear(const LinearInput& in, size_t n_rows, std::span<const LinearOutput> outputs) {
    size_t n_groups = 0;
    Precision precision;
    for (const LinearOutput& output : outputs) {
        n_groups += weights_.n_groups(output.weight);
        if (is_quantized_product(output.weight)) precision = std::max(precision, Precision(output.precision));
    }

    // Tasks are ranges of all outputs' groups laid end to end; one that spans two outputs does a part of each.
    run_product(in, n_rows, precision, n_groups,
                [this, n_rows, outputs](const ProductInput& input, size_t first, size_t end, unsigned thread) {
                    size_t begin_of_output = 0;
                    for (const LinearOutput& output : outputs) {
                        const size_t end_of_output = begin_of_output + weights_.n_groups(output.weight);
                        const size_t from = std::max(first, begin_of_output);
                        const size_t to = std::min(end, end_of_output);
                        if (from < to)
                            multiply(input, n_rows, output, from - begin_of_output, to - begin_of_output, thread);
                        begin_of_output = end_of_output;
                    }
                });
}

void CpuRowOperations::add(Activation in, size_t n_rows, Activation to) {
    run_ranges(n_rows, kRowGrain, [&](size_t first, size_t end) {
        for (size_t i = first * in.n_cols; i < end * in.n_cols; ++i) to.data[i] += in.data[i];
    });
}

void CpuRowOperations::output(const LinearInput& in, WeightId weight, std::span<float* const> logits) {
    const Precision precision = is_quantized_product(weight) ? Precision(InputPrecision::kDouble) : std::nullopt;
    run_product(in, logits.size(), precision, weights_.n_groups(weight),
                [this, weight, logits](const ProductInput& input, size_t first, size_t end, unsigned thread) {
                    multiply_to_rows(weight, input, first, end, thread, logits);
                });
}

}  // namespace inlay
