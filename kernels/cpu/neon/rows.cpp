#include "kernels/cpu/row_lanes_neon.h"
// The lanes come first: they name the instruction set.
#include "kernels/cpu/kernel_functions.inl.h"
//
#include "kernels/cpu/exp.inl.h"
#include "kernels/cpu/gated_rows.inl.h"
//
#include "kernels/cpu/gelu_multiply.inl.h"
#include "kernels/cpu/quantize_rows.inl.h"
#include "kernels/cpu/rms_norm.inl.h"
#include "kernels/cpu/rope.inl.h"
#include "kernels/cpu/silu_multiply.inl.h"
#include "kernels/cpu/softmax_weights.inl.h"
