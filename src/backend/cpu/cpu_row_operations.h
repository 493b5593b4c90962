// The operations on rows: shared by the threads of a pool, or done by the calling thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "backend/backend.h"
#include "backend/cpu/cpu_weights.h"
#include "backend/cpu/product_input.h"
#include "base/workers.h"
#include "kernels/kernels.h"

namespace inlay {

enum class ComputeMode : uint8_t { kAuto, kF32 };

class CpuRowOperations final : public RowOperations {
public:
    // All outlive the operations. quantized: room for the rows of one input, quantised twice.
    CpuRowOperations(const kernels::Kernels& kernels, const CpuWeights& weights, ComputeMode mode, std::byte* quantized,
                     Workers& workers, ThreadInputs& thread_inputs)
        : kernels_(kernels),
          weights_(weights),
          mode_(mode),
          quantized_(quantized),
          workers_(&workers),
          thread_inputs_(&thread_inputs) {}
    // By the calling thread alone, as `thread` of the pool.
    CpuRowOperations(const kernels::Kernels& kernels, const CpuWeights& weights, ComputeMode mode, std::byte* quantized,
                     unsigned thread)
        : kernels_(kernels), weights_(weights), mode_(mode), quantized_(quantized), thread_(thread) {}

    void rms_norm(Activation in, size_t n_rows, WeightId weight, float epsilon, Activation out) override;
    void linear(const LinearInput& in, size_t n_rows, std::span<const LinearOutput> outputs) override;
    void add(Activation in, size_t n_rows, Activation to) override;
    void output(const LinearInput& in, WeightId weight, std::span<float* const> logits);  // Backend::output

private:
    // In which precision products read their input; none: as f32.
    using Precision = std::optional<InputPrecision>;

    template <typename Work>
    void run_ranges(size_t n, size_t grain, const Work& work);
    template <typename Work>
    void run_groups(size_t n_groups, size_t n_rows, const Work& work);
    template <typename Work>
    void run_product(const LinearInput& in, size_t n_rows, Precision precision, size_t n_groups, const Work& work);
    bool is_quantized_product(WeightId weight) const;
    void make_rows(const LinearInput& in, Precision precision, size_t first, size_t end, const ProductInput& out) const;
    void multiply(const ProductInput& in, size_t n_rows, const LinearOutput& output, size_t first_group,
                  size_t end_group, unsigned thread) const;
    void multiply_to_rows(WeightId weight, const ProductInput& in, size_t first_group, size_t end_group,
                          unsigned thread, std::span<float* const> out) const;

    const kernels::Kernels& kernels_;
    const CpuWeights& weights_;
    ComputeMode mode_;
    std::byte* quantized_;
    Workers* workers_ = nullptr;  // null: one thread
    ThreadInputs* thread_inputs_ = nullptr;
    unsigned thread_ = 0;
};

}  // namespace inlay
