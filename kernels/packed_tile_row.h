// One row of a packed tile in plain numbers: what unpack_row and the definitions of the products are made of.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/packed_matrix.h"

namespace inlay::kernels {

// One row's part of a tile: value[k] = scale[s] * (q[k] - zero), plus offset[s] for types that have one; s: the
// sub-block of column k.
struct TileRow {
    uint8_t q[kTileCols];
    int zero;
    size_t sub_blocks;
    bool has_offset;
    float scale[2];
    float offset[2];
};

// Of a quantised type. row: in the matrix.
TileRow unpack_tile_row(const PackedMatrix& matrix, size_t row, size_t tile);

}  // namespace inlay::kernels
