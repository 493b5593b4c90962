#include "backend/cpu/cpu_backend.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/scratch_layout.h"

namespace inlay {
namespace {

constexpr size_t kRowGrain = 8;  // rows of one task
constexpr size_t kMostRowsOfRange = 256;
constexpr size_t kFewestRowsOfRange = 32;  // fewer are better shared by the threads

}  // namespace

CpuBackend::CpuBackend(const kernels::Kernels& kernels, Workers& workers, ComputeMode mode,
                       std::shared_ptr<PageProvider> provider)
    : kernels_(kernels), workers_(workers), mode_(mode), provider_(std::move(provider)) {}

std::vector<WeightId> CpuBackend::load(const ByteSource& source, std::span<const TensorInfo* const> tensors,
                                       const Loading& loading) {
    return weights_.load(provider_, source, tensors, workers_, loading);
}

uint64_t CpuBackend::scratch_bytes_for(const StepShape& shape, const StepSize& size, unsigned n_threads) {
    return ScratchLayout(shape, size, n_threads).bytes;
}

void CpuBackend::prepare_scratch(const StepShape& shape) {
    shape_ = shape;
    const StepSize largest{.n_rows = shape.max_rows,
                           .n_positions = shape.max_positions,
                           .n_sequences = shape.max_rows,
                           .tile_bytes = StepTiles::most_bytes(shape)};
    scratch_ = PageRange(provider_, scratch_bytes_for(shape, largest, workers_.n_threads()), false);
}

void CpuBackend::reserve_step(const StepSize& size) {
    StepSize within = size;
    within.n_positions = std::min<size_t>(size.n_positions, shape_.max_positions);
    const ScratchLayout layout(shape_, within, workers_.n_threads());
    tiles_.reserve(size.n_sequences);
    if (layout.bytes > scratch_committed_) {
        scratch_.commit(0, layout.bytes, false);
        scratch_committed_ = layout.bytes;
    }
    const auto at = [&](uint64_t offset) { return reinterpret_cast<float*>(scratch_.data() + offset); };
    for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i] = {at(layout.buffers[i]), layout.widths[i]};
    quantized_ = scratch_.data() + layout.quantized;
    quantized_bytes_of_row_ = layout.quantized_bytes_of_row;
    thread_inputs_.place(scratch_.data() + layout.thread_inputs, layout.widest_input, workers_.n_threads());
    all_rows_.emplace(kernels_, weights_, mode_, quantized_, workers_, thread_inputs_);
    angles_ = at(layout.angles);
    thread_states_ = at(layout.thread_states);
    split_states_ = at(layout.split_states);
    tiles_.place(scratch_.data() + layout.tiles);
}

void CpuBackend::embed(WeightId matrix, std::span<const int32_t> tokens, float scale, Activation out) {
    workers_.run_ranges(tokens.size(), kRowGrain, [&](size_t first, size_t end) {
        for (size_t row = first; row < end; ++row) {
            float* values = out.data + row * out.n_cols;
            weights_.unpack_row(matrix, static_cast<size_t>(tokens[row]), values);
            if (scale != 1.0f)
                for (size_t i = 0; i < out.n_cols; ++i) values[i] *= scale;
        }
    });
}

void CpuBackend::gather_rows(Activation in, std::span<const uint32_t> rows, Activation out) {
    for (size_t i = 0; i < rows.size(); ++i)
        if (out.data + i * out.n_cols != in.data + rows[i] * in.n_cols)
            std::memcpy(out.data + i * out.n_cols, in.data + rows[i] * in.n_cols, in.n_cols * sizeof(float));
}

void CpuBackend::rms_norm(Activation in, size_t n_rows, WeightId weight, float epsilon, Activation out) {
    all_rows_->rms_norm(in, n_rows, weight, epsilon, out);
}

void CpuBackend::linear(const LinearInput& in, size_t n_rows, std::span<const LinearOutput> outputs) {
    all_rows_->linear(in, n_rows, outputs);
}

void CpuBackend::add(Activation in, size_t n_rows, Activation to) {
    all_rows_->add(in, n_rows, to);
}

void CpuBackend::output(const LinearInput& in, WeightId matrix, std::span<float* const> logits) {
    all_rows_->output(in, matrix, logits);
}

// As many ranges for each thread; few rows make one, whose operations the threads share.
void CpuBackend::run_row_ranges(size_t n_rows, RowWork work, const void* self) {
    const size_t n_threads = workers_.n_threads();
    const size_t rounds = (n_rows + n_threads * kMostRowsOfRange - 1) / (n_threads * kMostRowsOfRange);
    const size_t n_ranges = std::max<size_t>(rounds, 1) * n_threads;
    const size_t range = (n_rows + n_ranges - 1) / n_ranges;
    if (range < kFewestRowsOfRange) {
        work(self, *all_rows_, 0, n_rows);
        return;
    }
    workers_.run((n_rows + range - 1) / range, [&](size_t i, unsigned thread) {
        const size_t first = i * range;
        CpuRowOperations alone(kernels_, weights_, mode_, quantized_ + first * quantized_bytes_of_row_, thread);
        work(self, alone, first, std::min(range, n_rows - first));
    });
}

}  // namespace inlay
