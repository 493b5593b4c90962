// What the decoder asks of a processor: a short list of operations on activations in the shapes it uses. A backend owns
// the weights it was given and the scratch memory of a step. One step runs at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/gate_function.h"
#include "backend/kv_layout.h"
#include "backend/rope_spec.h"
#include "base/byte_source.h"
#include "base/tensor_info.h"

namespace inlay {

// A loaded weight: a matrix [n_rows, n_cols] in the backend's own form, or a vector of f32. kNoWeight: absent.
using WeightId = uint32_t;
inline constexpr WeightId kNoWeight = UINT32_MAX;

// Activations of a step: [n_rows, n_cols] f32 in the backend's memory. The backend hands them out.
struct Activation {
    float* data = nullptr;
    size_t n_cols = 0;

    Activation from_row(size_t row) const { return {data + row * n_cols, n_cols}; }
};

// The rows of one sequence in a step: consecutive tokens at consecutive positions.
struct SequenceRows {
    uint32_t first_row;
    uint32_t n_rows;
    uint32_t first_position;
    const KvLayout* layout;
    std::byte* const* const* pages;  // [groups][logical blocks]
};

// What a step takes of scratch memory.
struct StepSize {
    size_t n_rows = 0;
    size_t n_positions = 0;  // that some row sees
    size_t n_sequences = 0;
    size_t tile_bytes = 0;  // KvLayout::step_tile_bytes of all sequences together
};

// The widths that scratch memory is made for.
struct StepShape {
    uint32_t max_rows;
    uint32_t n_embedding;
    uint32_t query_width;
    uint32_t key_width;
    uint32_t value_width;
    uint32_t attention_width;
    uint32_t n_feed_forward;
    uint32_t n_pairs;  // of all ropes together
    uint32_t n_heads;
    uint32_t n_kv_heads;
    uint32_t value_dim;
    uint32_t max_positions;
};

// How a product with quantised weights may round its input in the mode `auto` (docs/numerics.md).
enum class InputPrecision : uint8_t {
    kSingle,  // 8 bits
    kDouble   // 16 bits: where the input has outliers, or nothing comes after that could average the error out
};

// What a product multiplies: rows as they lie, or what is made of them first, by a norm or a gate, not both.
struct LinearInput {
    Activation rows;
    WeightId norm = kNoWeight;  // rms_norm(rows), with norm_epsilon
    float norm_epsilon = 0;
    Activation gated = {};  // function(rows) * gated; null: not gated
    GateFunction function = GateFunction::kSilu;
    Activation room = {};  // for what is made, which nothing else may read; may be `rows`

    bool is_made() const { return norm != kNoWeight || gated.data; }
};

struct LinearOutput {
    WeightId weight;
    WeightId bias;  // kNoWeight: none
    Activation out;
    bool accumulate;  // adds to what `out` holds
    InputPrecision precision;
};

// Operations each of whose rows sees itself alone, over n_rows rows.
class RowOperations {
public:
    virtual ~RowOperations() = default;

    virtual void rms_norm(Activation in, size_t n_rows, WeightId weight, float epsilon, Activation out) = 0;
    // All outputs of one input at once: it is quantised once, and threads share all rows of all weights.
    virtual void linear(const LinearInput& in, size_t n_rows, std::span<const LinearOutput> outputs) = 0;
    virtual void add(Activation in, size_t n_rows, Activation to) = 0;  // to += in
};

class Backend : public RowOperations {
public:
    // --- weights -----------------------------------------------------------------------------------------------------
    // What goes on while weights are loaded.
    struct Loading {
        // Called by the calling thread with bytes of the file done so far; returns false to cancel the loading.
        std::function<bool(uint64_t done)> progress;
        // Other work of the opening, done once by one of the threads; what it throws, the loading throws.
        std::function<void()> alongside;
        // The source outlives the backend: matrices that it keeps in memory may be used where they lie.
        bool in_place = false;
    };
    // Loads the named tensors of a file; the result has one id for each, in their order. INLAY_E_UNSUPPORTED for a
    // type without kernels, INLAY_E_CANCELLED when `progress` returned false.
    virtual std::vector<WeightId> load(const ByteSource& source, std::span<const TensorInfo* const> tensors,
                                       const Loading& loading) = 0;
    virtual uint64_t weight_bytes() const = 0;

    // --- scratch -----------------------------------------------------------------------------------------------------
    // Must be called once before the first step.
    virtual void prepare_scratch(const StepShape& shape) = 0;
    // Makes room for a step. Throws std::bad_alloc; nothing in a step allocates.
    virtual void reserve_step(const StepSize& size) = 0;
    virtual uint64_t scratch_bytes() const = 0;  // most that was in use so far

    enum class Buffer : uint8_t {
        kHidden,  // the residual stream
        kNormed,
        kQuery,
        kKey,
        kValue,
        kAttention,
        kGate,
        kUp,
        kGathered,  // hidden rows whose logits are wanted
        kCount
    };
    virtual Activation activation(Buffer buffer) const = 0;

    // --- ranges of rows ----------------------------------------------------------------------------------------------
    // Calls work(operations, first row, rows) for ranges that make up 0..n_rows - 1. Operations on many rows of a step
    // that follow each other need no other rows: a thread that takes a range through all of them keeps it near itself.
    // Ranges may run at the same time, on any thread; `work` must not throw, and uses `operations` alone.
    template <typename Work>
    void by_row_ranges(size_t n_rows, const Work& work) {
        run_row_ranges(
            n_rows,
            [](const void* self, RowOperations& operations, size_t first_row, size_t n) {
                (*static_cast<const Work*>(self))(operations, first_row, n);
            },
            &work);
    }
    using RowWork = void (*)(const void* self, RowOperations& operations, size_t first_row, size_t n_rows);
    virtual void run_row_ranges(size_t n_rows, RowWork work, const void* self) = 0;

    // --- operations, each over n_rows rows ---------------------------------------------------------------------------
    virtual void embed(WeightId matrix, std::span<const int32_t> tokens, float scale, Activation out) = 0;
    // Computes the angles of all rows once for a step.
    virtual void begin_positions(std::span<const SequenceRows> sequences, std::span<const RopeSpec> ropes) = 0;
    // Rotates queries and keys, then writes keys and values into the pages of the layer. Where they are quantised, so
    // are the blocks that become full; of all blocks with rows of this step the exact form stays at hand until the
    // attention of the layer.
    virtual void rope_and_store(std::span<const SequenceRows> sequences, std::span<const RopeSpec> ropes,
                                size_t rope_index, uint32_t layer, Activation query, Activation key,
                                Activation value) = 0;
    virtual void attention(std::span<const SequenceRows> sequences, uint32_t layer, uint32_t window, float scale,
                           Activation query, Activation out) = 0;
    // out[i] = in[rows[i]], rows ascending; `out` may be `in`.
    virtual void gather_rows(Activation in, std::span<const uint32_t> rows, Activation out) = 0;
    // Logits of the first n_rows of `in` in the host's memory, with inputs of double precision.
    // logits: [n_rows] addresses of [n_vocabulary]
    virtual void output(const LinearInput& in, WeightId matrix, std::span<float* const> logits) = 0;
};

}  // namespace inlay
