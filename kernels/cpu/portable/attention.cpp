#include "kernels/cpu/pair_lanes_portable.h"
// The lanes come first: they name the instruction set.
#include "kernels/cpu/kernel_functions.inl.h"
//
#include "kernels/cpu/exp.inl.h"
#include "kernels/cpu/read_ahead.inl.h"
//
#include "kernels/cpu/attention_products.inl.h"
#include "kernels/cpu/quantized_scores.inl.h"
//
#include "kernels/cpu/quantized_outputs.inl.h"
//
#include "kernels/cpu/attention_softmax.inl.h"
#include "kernels/cpu/attention_tiles.inl.h"
//
#include "kernels/cpu/attention_integers.inl.h"
//
#include "kernels/cpu/attention.inl.h"
