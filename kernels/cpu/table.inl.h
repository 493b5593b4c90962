// The table of one instruction set. Angles are computed once per row, so all tables share their definition.
#include "kernels/reference/row_functions.h"

namespace inlay::kernels::INLAY_ISA {

constinit const Kernels kTable = {
    .name = INLAY_ISA_NAME,
    .quantize_rows = quantize_rows,
    .quantize_rows_twice = quantize_rows_twice,
    .rms_norm = rms_norm,
    .silu_multiply = silu_multiply,
    .gelu_multiply = gelu_multiply,
    .softmax_weights = softmax_weights,
    .rope_angles = reference_rope_angles,
    .rope_rotate = rope_rotate,
    .multiply_quantized = multiply_quantized,
    .multiply_float = multiply_float,
    .rotate = rotate,
    .store_keys = store_keys,
    .store_values = store_values,
    .close_keys = close_keys,
    .close_values = close_values,
    .attend = attend,
    .merge_attention = merge_attention,
    .finish_attention = finish_attention,
};

}  // namespace inlay::kernels::INLAY_ISA
