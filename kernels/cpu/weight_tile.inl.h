// A tile of quantised weights, 16 rows x 32 columns, taken out of its packed form into vectors that the products use.
// packed_layout.h draws the packed form.
#include "kernels/packed_layout.h"

namespace inlay::kernels::INLAY_ISA {

// What the products need to know of a type, so that types whose tiles are alike share code.
template <unsigned bits_, int zero_, unsigned sub_blocks_, bool has_offset_>
struct TileKind {
    static constexpr unsigned bits = bits_;  // weights are below 2^bits
    static constexpr int zero = zero_;
    static constexpr unsigned sub_blocks = sub_blocks_;
    static constexpr bool has_offset = has_offset_;  // the value is scale * q + offset instead of scale * (q - zero)
};

template <TensorType type>
struct Packed {
    static constexpr PackedFormat format = packed_format(type);
    using Kind = TileKind<format.plane_bits + format.high_bits, format.zero, format.sub_blocks, format.has_offset>;
};

template <typename Kind>
struct alignas(64) WeightTile {
    U8x64 q[8];
    F32x16 scale[Kind::sub_blocks];
    F32x16 offset[Kind::has_offset ? Kind::sub_blocks : 1];  // unused without offsets
};

// Calls f with the constants 0..n-1.
template <unsigned n, typename Function>
INLAY_LANES void for_each_constant(Function f) {
    if constexpr (n > 0) {
        for_each_constant<n - 1>(f);
        f.template operator()<n - 1>();
    }
}

template <unsigned plane_bits>
INLAY_LANES void unpack_plane(const uint8_t* plane, U8x64* q) {
    for_each_constant<8>([&]<unsigned vector>() __attribute__((always_inline)) {
        if constexpr (plane_bits == 8) q[vector] = load_bytes(plane + 64 * vector);
        if constexpr (plane_bits == 4) q[vector] = take_bits<vector / 4 * 4, 15>(load_bytes(plane + 64 * (vector % 4)));
        if constexpr (plane_bits == 2) q[vector] = take_bits<vector % 4 * 2, 3>(load_bytes(plane + 64 * (vector / 4)));
    });
}

template <unsigned plane_bits, unsigned high_bits>
INLAY_LANES void add_high_bits(const uint8_t* high, U8x64* q) {
    for_each_constant<8>([&]<unsigned vector>() __attribute__((always_inline)) {
        if constexpr (high_bits == 1) q[vector] = add_where<1u << plane_bits>(q[vector], high + 8 * vector);
        if constexpr (high_bits == 2) {
            constexpr int shift = static_cast<int>(vector % 4 * 2) - static_cast<int>(plane_bits);
            const U8x64 pair = take_bits<shift, 3u << plane_bits>(load_bytes(high + 64 * (vector / 4)));
            q[vector] = q[vector] | pair;
        }
    });
}

INLAY_LANES F32x16 load_halves(const uint8_t* p) {
    return load_f16(reinterpret_cast<const uint16_t*>(p));
}

// scales: of the strip; tile: in the strip.
template <ScaleLayout layout, typename Kind>
INLAY_LANES void unpack_scales(const uint8_t* scales, size_t tile, WeightTile<Kind>& out) {
    const uint8_t* own = scales + 64 + 32 * tile;
    if constexpr (layout == ScaleLayout::kScale) {
        out.scale[0] = load_halves(scales + 32 * tile);
    } else if constexpr (layout == ScaleLayout::kScaleOffset) {
        out.scale[0] = load_halves(scales);
        out.offset[0] = load_halves(scales + 32);
    } else if constexpr (layout == ScaleLayout::kSuperBlocks) {
        out.scale[0] = load_halves(scales) * to_float(load_u8(own));
        out.offset[0] = negate(load_halves(scales + 32) * to_float(load_u8(own + 16)));
    } else if constexpr (layout == ScaleLayout::kSuperHalves) {
        const F32x16 d = load_halves(scales);
        out.scale[0] = d * to_float(load_s8(reinterpret_cast<const int8_t*>(own)));
        out.scale[1] = d * to_float(load_s8(reinterpret_cast<const int8_t*>(own) + 16));
    } else {
        const F32x16 d = load_halves(scales);
        const F32x16 dmin = load_halves(scales + 32);
        const I32x16 nibble = broadcast(int32_t{15});
        for (size_t half = 0; half < 2; ++half) {
            const I32x16 both = load_u8(own + 16 * half);
            out.scale[half] = d * to_float(both & nibble);
            out.offset[half] = negate(dmin * to_float(shift_right<4>(both)));
        }
    }
}

// Memory is asked for this far ahead: one sequential stream then runs at the speed of memory.
constexpr size_t kPrefetchBytes = 4096;

template <size_t bytes>
INLAY_LANES void prefetch_after(const uint8_t* p) {
    for (size_t line = 0; line < bytes; line += 64) prefetch(p + kPrefetchBytes + line);
}

template <TensorType type>
INLAY_LANES void unpack_tile(const uint8_t* strip, size_t tile, WeightTile<typename Packed<type>::Kind>& out) {
    constexpr PackedFormat format = Packed<type>::format;
    const uint8_t* plane = strip + format.scale_bytes + tile * format.tile_bytes;
    prefetch_after<format.tile_bytes>(plane);
    unpack_plane<format.plane_bits>(plane, out.q);
    add_high_bits<format.plane_bits, format.high_bits>(plane + 64 * format.plane_bits, out.q);
    unpack_scales<format.scales>(strip, tile, out);
}

// Calls visit(tile, strip, tile in the strip) for `n_tiles` tiles of a packed group from tile `first` on, which starts
// a strip; `tile` counts from there.
template <TensorType type, typename Visit>
INLAY_LANES void for_each_tile(const uint8_t* group, size_t first, size_t n_tiles, Visit visit) {
    constexpr PackedFormat format = Packed<type>::format;
    const uint8_t* strip = group + first / format.tiles_per_strip * format.strip_bytes;
    for (size_t done = 0; done < n_tiles; done += format.tiles_per_strip, strip += format.strip_bytes) {
        prefetch_after<format.scale_bytes>(strip);
        const size_t left = n_tiles - done;
        const size_t tiles = left < format.tiles_per_strip ? left : format.tiles_per_strip;
        for (size_t tile = 0; tile < tiles; ++tile) visit(done + tile, strip, tile);
    }
}

// Bytes of a packed group; packed_group_bytes for code that must not call out of its instruction set.
template <TensorType type>
INLAY_LANES size_t group_bytes(size_t n_tiles) {
    constexpr PackedFormat format = Packed<type>::format;
    const size_t rest = n_tiles % format.tiles_per_strip;
    const size_t last = rest == 0 ? 0 : format.scale_bytes + rest * format.tile_bytes;
    return n_tiles / format.tiles_per_strip * format.strip_bytes + last;
}

}  // namespace inlay::kernels::INLAY_ISA
