// The operations on rows: shared by the threads of a pool, or done by the calling thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "backend/cpu/cpu_weights.h"
#include "base/workers.h"
#include "kernels/kernels.h"

namespace inlay {

enum class ComputeMode : uint8_t { kAuto, kF32 };

class CpuRowOperations final : public RowOperations {
public:
    // All outlive the operations. workers: null, the calling thread works alone, as `thread` of the pool. quantized:
    // room for the rows of one input, quantised twice.
    CpuRowOperations(const kernels::Kernels& kernels, const CpuWeights& weights, ComputeMode mode, Workers* workers,
                     unsigned thread, std::byte* quantized)
        : kernels_(kernels),
          weights_(weights),
          mode_(mode),
          workers_(workers),
          thread_(thread),
          quantized_(quantized) {}

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
    void multiply(Activation in, size_t n_rows, const LinearOutput& output, size_t first_group, size_t end_group,
                  unsigned thread);
    void multiply_to_rows(WeightId weight, Activation in, size_t first_group, size_t end_group, unsigned thread,
                          std::span<float* const> out);

    const kernels::Kernels& kernels_;
    const CpuWeights& weights_;
    ComputeMode mode_;
    Workers* workers_;
    unsigned thread_;
    std::byte* quantized_;                 // rows of the last input
    std::byte* quantized_rest_ = nullptr;  // what those leave of it, right behind them
};

}  // namespace inlay
