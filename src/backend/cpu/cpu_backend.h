// The backend inside the library: kernels of the instruction set chosen at run time, workers, packed weights. Work is
// cut so that every task owns its outputs; how it is cut never changes a result (docs/numerics.md).
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>

#include "backend/backend.h"
#include "backend/cpu/cpu_row_operations.h"
#include "backend/cpu/cpu_weights.h"
#include "backend/cpu/step_tiles.h"
#include "base/pages.h"
#include "base/workers.h"
#include "kernels/kernels.h"

namespace inlay {

class CpuBackend final : public Backend {
public:
    // `kernels` and `workers` outlive the backend.
    CpuBackend(const kernels::Kernels& kernels, Workers& workers, ComputeMode mode,
               std::shared_ptr<PageProvider> provider);

    static uint64_t scratch_bytes_for(const StepShape& shape, const StepSize& size, unsigned n_threads);

    std::vector<WeightId> load(const ByteSource& source, std::span<const TensorInfo* const> tensors,
                               const Loading& loading) override;
    uint64_t weight_bytes() const override { return weights_.bytes(); }

    void prepare_scratch(const StepShape& shape) override;
    void reserve_step(const StepSize& size) override;
    uint64_t scratch_bytes() const override { return scratch_committed_; }
    Activation activation(Buffer buffer) const override { return buffers_[static_cast<size_t>(buffer)]; }

    void run_row_ranges(size_t n_rows, RowWork work, const void* self) override;

    void embed(WeightId matrix, std::span<const int32_t> tokens, float scale, Activation out) override;
    void rms_norm(Activation in, size_t n_rows, WeightId weight, float epsilon, Activation out) override;
    void linear(const LinearInput& in, size_t n_rows, std::span<const LinearOutput> outputs) override;
    void begin_positions(std::span<const SequenceRows> sequences, std::span<const RopeSpec> ropes) override;
    void rope_and_store(std::span<const SequenceRows> sequences, std::span<const RopeSpec> ropes, size_t rope_index,
                        uint32_t layer, Activation query, Activation key, Activation value) override;
    void attention(std::span<const SequenceRows> sequences, uint32_t layer, uint32_t window, float scale,
                   Activation query, Activation out) override;
    void add(Activation in, size_t n_rows, Activation to) override;
    void gather_rows(Activation in, std::span<const uint32_t> rows, Activation out) override;
    void output(const LinearInput& in, WeightId matrix, std::span<float* const> logits) override;

private:
    struct AttentionWork;
    struct StoreWork;

    template <typename Work>
    void run_rows(std::span<const SequenceRows> sequences, size_t grain, const Work& work);
    void rotate_rows(const StoreWork& work, const SequenceRows& rows, size_t first_row, size_t end_row);
    void store_block(const StoreWork& work, const SequenceRows& rows, size_t block);
    std::byte* begin_tile(const SequenceRows& rows, uint32_t layer, size_t block, uint32_t head);
    void end_tile(const SequenceRows& rows, uint32_t layer, size_t block, uint32_t head, const std::byte* tile);
    void close_block(const SequenceRows& rows, uint32_t layer, size_t block, uint32_t head, const std::byte* tile);
    void attend_whole(const AttentionWork& work, const SequenceRows& rows, size_t first_row, size_t end_row,
                      size_t kv_head, unsigned thread);
    void attention_by_rows(const AttentionWork& work, size_t n_tasks);
    void attention_by_splits(const AttentionWork& work, size_t n_rows);
    void finish_rows(const AttentionWork& work, const float* states, const SequenceRows& rows, size_t first_row,
                     size_t end_row, size_t kv_head);

    const kernels::Kernels& kernels_;
    Workers& workers_;
    ComputeMode mode_;
    std::shared_ptr<PageProvider> provider_;
    CpuWeights weights_;

    StepShape shape_{};
    PageRange scratch_;
    std::atomic<uint64_t> scratch_committed_{0};  // read by hosts while a step runs
    std::array<Activation, static_cast<size_t>(Buffer::kCount)> buffers_{};
    std::byte* quantized_ = nullptr;  // [n_rows, quantized_bytes_of_row_]
    size_t quantized_bytes_of_row_ = 0;
    ThreadInputs thread_inputs_;
    std::optional<CpuRowOperations> all_rows_;  // of this step, by all threads
    float* angles_ = nullptr;                   // [ropes][max_rows, 2, n_pairs]
    float* thread_states_ = nullptr;            // [n_threads, kAttentionRowsPerTask, group heads] attention states
    float* split_states_ = nullptr;             // [rows, kv heads, splits, group heads] attention states
    StepTiles tiles_;
};

}  // namespace inlay
