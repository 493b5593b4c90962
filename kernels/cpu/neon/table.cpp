#include "kernels/cpu/lanes_neon.h"
// The lanes come first: they name the instruction set.
#include "kernels/cpu/kernel_functions.inl.h"
//
#include "kernels/cpu/table.inl.h"
