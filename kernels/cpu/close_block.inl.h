// What closing keys and closing values have in common; the definition is reference/close_block.cpp.
#include "kernels/kernels.h"
#include "kernels/quantized_kv.h"

namespace inlay::kernels::INLAY_ISA {

using Q = QuantizedKv;

INLAY_LANES I32x16 magnitude_bits(F32x16 x) {
    return bits_of(abs(x));
}

INLAY_LANES F32x16 between(F32x16 x, float lowest, float highest) {
    return max(min(x, broadcast(highest)), broadcast(lowest));
}

// Rounds scales to f16, stores them and returns what they became.
INLAY_LANES F32x16 store_scales(F32x16 scales, uint16_t* p) {
    store_f16(p, max(broadcast(Q::kSmallestScale), scales));
    return load_f16(p);
}

INLAY_LANES F32x16 inverse_of(F32x16 x) {
    return broadcast(1.0f) / x;
}

// The scales of sixteen symmetric groups, of which the bits of the largest magnitudes are given. Returns their
// inverses.
INLAY_LANES F32x16 close_scales(I32x16 largest, std::byte* parameters) {
    const Mask16 is_zero = largest == broadcast(int32_t{0});
    uint16_t halves[16];
    const F32x16 stored = store_scales(float_of(largest) / broadcast(Q::kLargestCode), halves);
    store_low_halves(parameters, select(is_zero, broadcast(int32_t{0}), load_u16(halves)));
    return select(is_zero, zero(), inverse_of(stored));
}

INLAY_LANES I32x16 int8_codes(F32x16 x, F32x16 inverse_scale) {
    return round_to_int(between(x * inverse_scale, -Q::kLargestCode, Q::kLargestCode));
}

// Eight codes of four bits: code n of each parity at bits 4 n.. of its half.
template <typename CodeOf>
INLAY_LANES I32x16 join_codes(const CodeOf& code_of) {
    I32x16 all = code_of(0) | shift_left<16>(code_of(1));
    all = all | shift_left<4>(code_of(2)) | shift_left<20>(code_of(3));
    all = all | shift_left<8>(code_of(4)) | shift_left<24>(code_of(5));
    return all | shift_left<12>(code_of(6)) | shift_left<28>(code_of(7));
}

// The low bytes of two vectors side by side.
INLAY_LANES void store_byte_pairs(std::byte* p, I32x16 even, I32x16 odd) {
    store_low_halves(p, (even & broadcast(int32_t{255})) | shift_left<8>(odd));
}

}  // namespace inlay::kernels::INLAY_ISA
