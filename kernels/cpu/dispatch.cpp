// Which tables this processor can run. Compiled for the baseline, like everything that runs before the answer is known.
#include <initializer_list>

#include "kernels/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace inlay::kernels {

namespace isa_portable {
extern const Kernels kTable;
}

const Kernels& portable() {
    return isa_portable::kTable;
}

#if defined(__x86_64__)

namespace isa_avx2 {
extern const Kernels kTable;
}
namespace isa_avx512 {
extern const Kernels kTable;
}

namespace {

// Bit `bit` of ECX in the processor's description `leaf`; for what the compiler's runtime has no name.
bool has_ecx_bit(unsigned leaf, unsigned bit) {
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(leaf, &eax, &ebx, &ecx, &edx) != 0 && (ecx >> bit & 1) != 0;
}

// The compiler's runtime asks the processor, and the system through XGETBV whether it saves the registers.
bool runs_avx2() {
    constexpr unsigned kFeatures = 1, kMovbe = 22, kF16c = 29, kExtendedFeatures = 0x80000001, kLzcnt = 5;
    static const bool runs = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                             __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                             has_ecx_bit(kFeatures, kF16c) && has_ecx_bit(kFeatures, kMovbe) &&
                             has_ecx_bit(kExtendedFeatures, kLzcnt);
    return runs;
}

bool runs_avx512() {
    static const bool runs = runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
                             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
    return runs;
}

}  // namespace

const Kernels* avx2() {
    return runs_avx2() ? &isa_avx2::kTable : nullptr;
}
const Kernels* avx512() {
    return runs_avx512() ? &isa_avx512::kTable : nullptr;
}

#else

const Kernels* avx2() {
    return nullptr;
}
const Kernels* avx512() {
    return nullptr;
}

#endif

#if defined(__aarch64__)

namespace isa_neon {
extern const Kernels kTable;
}

// NEON itself is part of the baseline. Beside the dot products stands what the compiler's flag for them brings along.
const Kernels* neon() {
    constexpr unsigned long kNeeded = HWCAP_ASIMDDP | HWCAP_ASIMDRDM | HWCAP_ATOMICS | HWCAP_CRC32;
    static const bool runs = (getauxval(AT_HWCAP) & kNeeded) == kNeeded;
    return runs ? &isa_neon::kTable : nullptr;
}

#else

const Kernels* neon() {
    return nullptr;
}

#endif

const Kernels& fastest() {
    for (const Kernels* table : {avx512(), avx2(), neon()}) {
        if (table) return *table;
    }
    return portable();
}

}  // namespace inlay::kernels
