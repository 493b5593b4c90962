// Bytes of sixteen rows and four neighbouring columns, and sums of their products, in plain C++. The other instruction
// sets provide the same operations under the same names. Addresses are 64-byte aligned.
namespace inlay::kernels::INLAY_ISA {

struct alignas(16) U8x64 {
    uint8_t byte[64];  // [16 rows, 4 columns]
};

INLAY_LANES U8x64 load_bytes(const uint8_t* p) {
    U8x64 r;
    __builtin_memcpy(r.byte, p, sizeof r.byte);
    return r;
}
INLAY_LANES void store_bytes(uint8_t* p, U8x64 a) {
    __builtin_memcpy(p, a.byte, sizeof a.byte);
}
INLAY_LANES U8x64 operator|(U8x64 a, U8x64 b) {
    for (int i = 0; i < 64; i++) a.byte[i] = static_cast<uint8_t>(a.byte[i] | b.byte[i]);
    return a;
}
// Bits `shift` and up of each byte that `keep` names, moved down to bit 0; a negative shift moves up.
template <int shift, uint8_t keep>
INLAY_LANES U8x64 take_bits(U8x64 a) {
    constexpr int down = shift > 0 ? shift : 0;
    constexpr int up = shift < 0 ? -shift : 0;
    for (int i = 0; i < 64; i++) a.byte[i] = static_cast<uint8_t>(((a.byte[i] >> down) << up) & keep);
    return a;
}
// Adds `value` to the bytes whose bit is set in the 64-bit mask.
template <uint8_t value>
INLAY_LANES U8x64 add_where(U8x64 a, const uint8_t* mask) {
    for (int i = 0; i < 64; i++) a.byte[i] = static_cast<uint8_t>(a.byte[i] + value * ((mask[i / 8] >> (i % 8)) & 1));
    return a;
}
// Column c (0..3) of the sixteen rows.
template <unsigned c>
INLAY_LANES I32x16 column_of(U8x64 a) {
    I32x16 r;
    for (int i = 0; i < 16; i++) r.lane[i] = a.byte[4 * i + static_cast<int>(c)];
    return r;
}

// Sum of (weight - zero) * x over the columns of one sub-block, for sixteen rows: start, add four columns at a time,
// total. The weights are below 2^bits; `zero` is 0 or a power of two up to 128. `minus_128_sum` is -128 * sum(x).
template <unsigned bits, int zero>
struct ByteDot {
    I32x16 sum;
};
template <unsigned bits, int zero>
INLAY_LANES void start(ByteDot<bits, zero>& dot, int32_t minus_128_sum) {
    int32_t first = 0;
    if constexpr (zero != 0) first = minus_128_sum / (128 / zero);
    dot.sum = broadcast(first);
}
template <unsigned bits, int zero>
INLAY_LANES void add(ByteDot<bits, zero>& dot, U8x64 weights, const int8_t* x) {
    for (int i = 0; i < 16; i++) {
        int32_t products = 0;
        for (int c = 0; c < 4; c++) products += weights.byte[4 * i + c] * x[c];
        dot.sum.lane[i] += products;
    }
}
template <unsigned bits, int zero>
INLAY_LANES I32x16 total(const ByteDot<bits, zero>& dot) {
    return dot.sum;
}

}  // namespace inlay::kernels::INLAY_ISA
