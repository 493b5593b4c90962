// The forward pass of a decoder-only transformer: one step over the rows of several sequences. It reads a ModelSpec and
// asks a Backend; it holds no architecture's name.
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
    std::span<const uint32_t> logits_of;  // rows whose logits are wanted
    float* logits;                        // [logits_of.size(), n_vocabulary]
};

// Asked before each layer; a step that is not wanted any more ends there.
class StepWatch {
public:
    virtual ~StepWatch() = default;
    virtual bool wanted() const = 0;
};

class Decoder {
public:
    // Loads the spec's weights from the file into the backend, which must outlive the decoder.
    Decoder(ModelSpec spec, const GgufFile& file, const ByteSource& source, Backend& backend, uint32_t max_step_rows,
            const Backend::Progress& progress);

    static StepShape step_shape(const ModelSpec& spec, uint32_t max_step_rows);
    // The file's tensors that the spec uses, each once.
    static std::vector<const TensorInfo*> tensors_of(const ModelSpec& spec, const GgufFile& file);

    const ModelSpec& spec() const { return spec_; }

    // Room for a step that sees positions below n_positions; throws std::bad_alloc. `forward` takes no memory.
    void reserve(size_t n_rows, size_t n_positions) { backend_.reserve_rows(n_rows, n_positions); }
    // False when the watch ended the step: keys and values of some layers are then not written.
    bool forward(const StepRows& rows, const StepWatch& watch);

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
        InputPrecision precision;
    };

    void attention_part(const StepRows& rows, uint32_t layer);
    void feed_forward_part(size_t n_rows, const Layer& weights);
    void norm_heads(Activation heads, size_t n_rows, WeightId norm);
    void add_to_hidden(Activation in, size_t n_rows, const Contribution& what);
    void logits_part(const StepRows& rows);

    ModelSpec spec_;
    Backend& backend_;
    std::vector<Layer> layers_;
    WeightId embedding_ = kNoWeight;
    WeightId output_norm_ = kNoWeight;
    WeightId output_ = kNoWeight;
};

}  // namespace inlay
