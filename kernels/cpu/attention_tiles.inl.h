// The tile shapes of attention: for each number of (row, head) pairs the products that are compiled for it.
namespace inlay::kernels::INLAY_ISA {

using MultiplyKeys = void (*)(const float*, size_t, float, const std::byte* const*, const ReadAhead&, float*);
using MultiplyValues = void (*)(const BlockView*, size_t, const float*, const float*, size_t, const ReadAhead&, float*,
                                size_t);
using MultiplyQuantizedKeys = void (*)(const int16_t*, const float*, size_t, const ClosedBlock*, const ReadAhead&,
                                       float*);
using MultiplyQuantizedValues = void (*)(const ClosedBlock*, size_t, const IntegerWeights&, size_t, const ReadAhead&,
                                         float*, size_t);

// Scores of batches of 1, 2, 4, 8 blocks, where there are registers for them (null: none).
template <typename Multiply>
struct KeyBatches {
    Multiply multiply[kKeyBatches];
};

// By type: f32, f16, bf16; int8, int4.
struct TileShape {
    size_t pairs;
    KeyBatches<MultiplyKeys> keys[3];
    MultiplyValues values[3];
    KeyBatches<MultiplyQuantizedKeys> quantized_keys[2];
    MultiplyQuantizedValues quantized_values[2];
};

template <size_t pairs, size_t blocks, KvType type>
constexpr MultiplyKeys keys_entry() {
    if constexpr (blocks == 1 || pairs * blocks <= kScoreTile) {
        return multiply_keys<pairs, blocks, type>;
    } else {
        return nullptr;
    }
}
template <size_t pairs, KvType type>
constexpr KeyBatches<MultiplyKeys> key_batches() {
    return {{keys_entry<pairs, 1, type>(), keys_entry<pairs, 2, type>(), keys_entry<pairs, 4, type>(),
             keys_entry<pairs, 8, type>()}};
}

template <size_t pairs, size_t blocks, KvType type>
constexpr MultiplyQuantizedKeys quantized_keys_entry() {
    if constexpr (blocks == 1 || pairs * blocks <= kPairTile) {
        return multiply_quantized_keys<pairs, blocks, type>;
    } else {
        return nullptr;
    }
}
template <size_t pairs, KvType type>
constexpr KeyBatches<MultiplyQuantizedKeys> quantized_key_batches() {
    return {{quantized_keys_entry<pairs, 1, type>(), quantized_keys_entry<pairs, 2, type>(),
             quantized_keys_entry<pairs, 4, type>(), quantized_keys_entry<pairs, 8, type>()}};
}

template <size_t pairs>
constexpr TileShape tile_shape() {
    return {
        pairs,
        {key_batches<pairs, KvType::kF32>(), key_batches<pairs, KvType::kF16>(), key_batches<pairs, KvType::kBf16>()},
        {multiply_values<pairs, KvType::kF32>, multiply_values<pairs, KvType::kF16>,
         multiply_values<pairs, KvType::kBf16>},
        {quantized_key_batches<pairs, KvType::kInt8>(), quantized_key_batches<pairs, KvType::kInt4>()},
        {multiply_quantized_values<pairs, KvType::kInt8>, multiply_quantized_values<pairs, KvType::kInt4>}};
}

// Ascending. A tile with fewer pairs than its shape repeats the last one.
constexpr TileShape kTileShapes[] = {
    tile_shape<1>(), tile_shape<2>(),  tile_shape<3>(), tile_shape<4>(),
#if INLAY_REGISTERS >= 8
    tile_shape<6>(),
#endif
#if INLAY_REGISTERS >= 32
    tile_shape<8>(), tile_shape<12>(),
#endif
};

INLAY_LANES const TileShape& shape_for(size_t n_pairs) {
    size_t i = 0;
    while (kTileShapes[i].pairs < n_pairs) ++i;
    return kTileShapes[i];
}

}  // namespace inlay::kernels::INLAY_ISA
