// A backend that tells a test which layer begins, so that it can act between two layers.
#pragma once

#include <functional>

#include "backend/backend.h"

namespace inlay::test {

class WatchedBackend final : public Backend {
public:
    explicit WatchedBackend(Backend& real) : real_(real) {}

    // Called on the thread that computes, before the attention of each layer: (layer, rows of the step).
    std::function<void(uint32_t layer, size_t n_rows)> on_layer;

    std::vector<WeightId> load(const ByteSource& source, std::span<const TensorInfo* const> tensors,
                               const Loading& loading) override {
        return real_.load(source, tensors, loading);
    }
    uint64_t weight_bytes() const override { return real_.weight_bytes(); }
    void prepare_scratch(const StepShape& shape) override { real_.prepare_scratch(shape); }
    void reserve_step(const StepSize& size) override { real_.reserve_step(size); }
    uint64_t scratch_bytes() const override { return real_.scratch_bytes(); }
    Activation activation(Buffer buffer) const override { return real_.activation(buffer); }
    void run_row_ranges(size_t n_rows, RowWork work, const void* self) override {
        real_.run_row_ranges(n_rows, work, self);
    }
    void embed(WeightId matrix, std::span<const int32_t> tokens, float scale, Activation out) override {
        real_.embed(matrix, tokens, scale, out);
    }
    void rms_norm(Activation in, size_t n_rows, WeightId weight, float epsilon, Activation out) override {
        real_.rms_norm(in, n_rows, weight, epsilon, out);
    }
    void linear(const LinearInput& in, size_t n_rows, std::span<const LinearOutput> outputs) override {
        real_.linear(in, n_rows, outputs);
    }
    void begin_positions(std::span<const SequenceRows> sequences, std::span<const RopeSpec> ropes) override {
        real_.begin_positions(sequences, ropes);
    }
    void rope_and_store(std::span<const SequenceRows> sequences, std::span<const RopeSpec> ropes, size_t rope_index,
                        uint32_t layer, Activation query, Activation key, Activation value) override {
        real_.rope_and_store(sequences, ropes, rope_index, layer, query, key, value);
    }
    void attention(std::span<const SequenceRows> sequences, uint32_t layer, uint32_t window, float scale,
                   Activation query, Activation out) override {
        size_t n_rows = 0;
        for (const SequenceRows& rows : sequences) n_rows += rows.n_rows;
        if (on_layer) on_layer(layer, n_rows);
        real_.attention(sequences, layer, window, scale, query, out);
    }
    void add(Activation in, size_t n_rows, Activation to) override { real_.add(in, n_rows, to); }
    void gather_rows(Activation in, std::span<const uint32_t> rows, Activation out) override {
        real_.gather_rows(in, rows, out);
    }
    void output(const LinearInput& in, WeightId matrix, std::span<float* const> logits) override {
        real_.output(in, matrix, logits);
    }

private:
    Backend& real_;
};

}  // namespace inlay::test
