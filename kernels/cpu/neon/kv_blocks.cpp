#include "kernels/cpu/pair_lanes_neon.h"
// The lanes come first: they name the instruction set.
#include "kernels/cpu/kernel_functions.inl.h"
//
#include "kernels/cpu/close_block.inl.h"
//
#include "kernels/cpu/close_keys.inl.h"
#include "kernels/cpu/close_values.inl.h"
#include "kernels/cpu/rotate.inl.h"
#include "kernels/cpu/store_kv.inl.h"
