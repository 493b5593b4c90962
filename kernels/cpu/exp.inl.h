// The exponential function on sixteen lanes: reference/exp.h, operation by operation.
#include "kernels/reference/exp_constants.h"

namespace inlay::kernels::INLAY_ISA {

INLAY_LANES F32x16 exp(F32x16 x) {
    using C = ExpConstants;
    x = max(broadcast(C::kLowest), x);
    x = min(broadcast(C::kHighest), x);
    const F32x16 n = fma(x, broadcast(C::kLog2E), broadcast(C::kRounder)) - broadcast(C::kRounder);
    F32x16 r = fma(n, broadcast(-C::kLn2High), x);
    r = fma(n, broadcast(-C::kLn2Low), r);
    F32x16 p = fma(broadcast(C::kC6), r, broadcast(C::kC5));
    p = fma(p, r, broadcast(C::kC4));
    p = fma(p, r, broadcast(C::kC3));
    p = fma(p, r, broadcast(C::kC2));
    p = fma(p, r, broadcast(1.0f));
    p = fma(p, r, broadcast(1.0f));
    return times_power_of_two(p, n);
}

}  // namespace inlay::kernels::INLAY_ISA
