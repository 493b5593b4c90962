// The operations on rows: shared by the threads of a pool, or done by the calling thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "backend/cpu/packed_weights.h"
#include "base/workers.h"
#include "kernels/kernels.h"

namespace inlay {

enum class ComputeMode : uint8_t { kAuto, kF32 };

class CpuRowOperations final : public RowOperations {
public:
    // All outlive the operations. workers: null, the calling thread works alone. quantized: room for the rows of one
    // input, quantised twice.
    CpuRowOperations(const kernels::Kernels& kernels, const PackedWeights& weights, ComputeMode mode, Workers* workers,
                     std::byte* quantized)
        : kernels_(kernels), weights_(weights), mode_(mode), workers_(workers), quantized_(quantized) {}

    void rms_norm(Activation in, size_t n_rows, WeightId weight, float epsilon, Activation out) override;
    void linear(Activation in, size_t n_rows, std::span<const LinearOutput> outputs) override;
    void gate(GateFunction function, Activation gate, Activation up, size_t n_rows) override;
    void add(Activation in, size_t n_rows, Activation to) override;
    void output(Activation in, WeightId matrix, std::span<float* const> logits);  // Backend::output

private:
    template <typename Work>
    void run_ranges(size_t n, size_t grain, const Work& work);
    template <typename Work>
    void run_groups(size_t n_groups, size_t n_rows, const Work& work);
    bool is_quantized_product(WeightId weight) const;
    void quantize(Activation in, size_t n_rows, InputPrecision precision);
    void multiply(Activation in, size_t n_rows, const LinearOutput& output, size_t first_group, size_t end_group);
    void multiply_to_rows(const kernels::PackedMatrix& matrix, Activation in, bool quantized, size_t first_group,
                          size_t end_group, std::span<float* const> out);

    const kernels::Kernels& kernels_;
    const PackedWeights& weights_;
    ComputeMode mode_;
    Workers* workers_;
    std::byte* quantized_;                 // rows of the last input
    std::byte* quantized_rest_ = nullptr;  // what those leave of it, right behind them
};

}  // namespace inlay
