// Keys and values of one token into a tile of an exact type; the definition is reference/attention.cpp.
namespace inlay::kernels::INLAY_ISA {

// To the nearest, ties to even; a NaN becomes quiet.
INLAY_LANES I32x16 bf16_of(F32x16 x) {
    const I32x16 bits = bits_of(x);
    const I32x16 upper = shift_right_unsigned<16>(bits);
    const I32x16 rounded = bits + broadcast(int32_t{0x7fff}) + (upper & broadcast(int32_t{1}));
    const Mask16 is_nan = (bits & broadcast(int32_t{0x7fffffff})) > broadcast(int32_t{0x7f800000});
    return select(is_nan, upper | broadcast(int32_t{0x40}), shift_right_unsigned<16>(rounded));
}

// Sixteen elements of a type of 16 bits.
INLAY_LANES void store_halves(KvType type, uint16_t* p, F32x16 x) {
    if (type == KvType::kF16) {
        store_f16(p, x);
    } else {
        store_low_halves(p, bf16_of(x));
    }
}

void store_keys(const float* k, size_t head_dim, KvType type, size_t slot, std::byte* keys) {
    for (size_t begin = 0; begin < head_dim; begin += 16) {
        const size_t n = head_dim - begin < 16 ? head_dim - begin : 16;
        if (type == KvType::kF32) {
            float* column = reinterpret_cast<float*>(keys) + begin * kBlockTokens + slot;
            for (size_t d = 0; d < n; ++d) column[d * kBlockTokens] = k[begin + d];
        } else {
            uint16_t halves[16];
            store_halves(type, halves, load_partial(k + begin, n));
            uint16_t* column = reinterpret_cast<uint16_t*>(keys) + begin * kBlockTokens + slot;
            for (size_t d = 0; d < n; ++d) column[d * kBlockTokens] = halves[d];
        }
    }
}

void store_values(const float* v, size_t value_dim, KvType type, size_t slot, std::byte* values) {
    for (size_t i = 0; i < value_dim; i += 16) {
        const size_t n = value_dim - i < 16 ? value_dim - i : 16;
        const F32x16 sixteen = load_partial(v + i, n);
        if (type == KvType::kF32) {
            store_partial(reinterpret_cast<float*>(values) + slot * value_dim + i, sixteen, n);
        } else {
            uint16_t halves[16];
            store_halves(type, halves, sixteen);
            __builtin_memcpy(reinterpret_cast<uint16_t*>(values) + slot * value_dim + i, halves, n * sizeof(uint16_t));
        }
    }
}

}  // namespace inlay::kernels::INLAY_ISA
