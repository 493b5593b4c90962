// The table of the definitions.
#include "kernels/kernels.h"
#include "kernels/reference/attention.h"
#include "kernels/reference/close_block.h"
#include "kernels/reference/products.h"
#include "kernels/reference/row_functions.h"

namespace inlay::kernels {

const Kernels& reference() {
    static constexpr Kernels table = {
        .name = "reference",
        .quantize_rows = reference_quantize_rows,
        .quantize_rows_twice = reference_quantize_rows_twice,
        .rms_norm = reference_rms_norm,
        .silu_multiply = reference_silu_multiply,
        .gelu_multiply = reference_gelu_multiply,
        .softmax_weights = reference_softmax_weights,
        .rope_angles = reference_rope_angles,
        .rope_rotate = reference_rope_rotate,
        .multiply_quantized = reference_multiply_quantized,
        .multiply_float = reference_multiply_float,
        .rotate = reference_rotate,
        .store_keys = reference_store_keys,
        .store_values = reference_store_values,
        .close_keys = reference_close_keys,
        .close_values = reference_close_values,
        .attend = reference_attend,
        .merge_attention = reference_merge_attention,
        .finish_attention = reference_finish_attention,
    };
    return table;
}

}  // namespace inlay::kernels
