#include "kernels/cpu/lanes_neon.h"
// The lanes come first: they name the instruction set.
#include "kernels/cpu/kernel_functions.inl.h"
//
#include "kernels/cpu/weight_tile.inl.h"
#include "kernels/cpu/write_outputs.inl.h"
//
#include "kernels/cpu/multiply_float.inl.h"
#include "kernels/cpu/multiply_quantized.inl.h"
