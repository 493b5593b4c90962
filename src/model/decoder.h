// The forward pass of a decoder-only transformer: one step over the rows of several sequences, a layer at a time, so
// that sequences may leave it between two layers. It reads a ModelSpec and asks a Backend; it holds no architecture's
// name.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "model/gguf.h"
#include "model/model_spec.h"

namespace inlay {

// The rows of a step, sequence after sequence.
struct StepRows {
    std::span<const int32_t> tokens;  // [n_rows]
    std::span<const SequenceRows> sequences;
    std::span<const uint32_t> logits_of;  // [n_logits] rows whose logits are wanted
    std::span<float* const> logits;       // [n_logits] where each goes: [n_vocabulary]
};

class Decoder {
public:
    // Loads the spec's weights from the file into the backend, which must outlive the decoder.
    Decoder(ModelSpec spec, const GgufFile& file, const ByteSource& source, Backend& backend, uint32_t max_step_rows,
            const Backend::Loading& loading);

    static StepShape step_shape(const ModelSpec& spec, uint32_t max_step_rows);
    // The file's tensors that the spec uses, each once.
    static std::vector<const TensorInfo*> tensors_of(const ModelSpec& spec, const GgufFile& file);

    const ModelSpec& spec() const { return spec_; }

    uint32_t n_layers() const { return static_cast<uint32_t>(layers_.size()); }

    // Room for a step; throws std::bad_alloc. What follows takes no memory.
    void reserve(const StepSize& size) { backend_.reserve_step(size); }
    // A step: begin, all layers in order, finish.
    void begin(const StepRows& rows);
    void compute_layer(const StepRows& rows, uint32_t layer);
    void finish(const StepRows& rows);
    // Between two layers: the step goes on with the rows `kept` (ascending) of those it had, which are `rows` now.
    void keep_rows(std::span<const uint32_t> kept, const StepRows& rows);

private:
    struct Layer {
        std::array<WeightId, kLayerSlots> weights;

        WeightId operator[](LayerSlot slot) const { return weights[static_cast<size_t>(slot)]; }
    };

    // A product that is added to the residual stream, with a norm of its own or none.
    struct Contribution {
        WeightId weight;
        WeightId bias;
        WeightId norm;
        Activation added;  // room for it where it has a norm
    };

    LinearInput normed(Activation rows, WeightId norm, Activation room) const;
    void attention_part(const StepRows& rows, uint32_t layer);
    // Of rows first_row..first_row + n_rows: norm to projections, and all that follows attention.
    void project_rows(RowOperations& operations, size_t first_row, size_t n_rows, const Layer& weights);
    void feed_forward_rows(RowOperations& operations, size_t first_row, size_t n_rows, const Layer& weights);
    void norm_heads(RowOperations& operations, Activation heads, size_t n_rows, WeightId norm);
    void add_to_hidden(RowOperations& operations, Activation hidden, const LinearInput& in, size_t n_rows,
                       const Contribution& what);

    ModelSpec spec_;
    Backend& backend_;
    std::vector<Layer> layers_;
    WeightId embedding_ = kNoWeight;
    WeightId output_norm_ = kNoWeight;
    WeightId output_ = kNoWeight;
};

}  // namespace inlay
