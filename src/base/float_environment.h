// The arithmetic of docs/numerics.md needs rounding to nearest and kept subnormals. A host may have set its thread
// otherwise; for the length of a step the default holds, then the host's setting is back.
#pragma once

#include <cfenv>
#include <cstdint>

namespace inlay {

class DefaultFloatEnvironment {
public:
    DefaultFloatEnvironment() {
        std::fegetenv(&host_);
        std::fesetenv(FE_DFL_ENV);
        set_control(0);
    }
    ~DefaultFloatEnvironment() {
        std::fesetenv(&host_);
        set_control(host_control_);
    }
    DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
    DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

private:
    // Bits of ARM's control register that FE_DFL_ENV leaves alone change results too, such as the alternative half
    // precision without infinities. All are 0 in the default arithmetic.
#if defined(__aarch64__)
    static uint64_t control() {
        uint64_t bits;
        asm volatile("mrs %0, fpcr" : "=r"(bits));
        return bits;
    }
    static void set_control(uint64_t bits) {
        asm volatile("msr fpcr, %0" : : "r"(bits) : "memory");
    }
#else
    static uint64_t control() {
        return 0;
    }
    static void set_control(uint64_t) {}
#endif

    uint64_t host_control_ = control();  // initialised before anything is changed
    std::fenv_t host_{};
};

}  // namespace inlay
