// Reads the quants of a GGUF row in one common form, tile by tile, for packing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/tensor_type.h"

namespace inlay::kernels {

struct SourceScales {
    uint16_t d = 0;         // f16, of the block or super-block
    uint16_t m = 0;         // f16: m of Q4_1 and Q5_1, dmin of K-quants
    uint8_t small[2] = {};  // super-blocks: the two bytes of packed_layout.h for this tile
};

struct SourceTile {
    alignas(16) uint8_t q[32];  // unsigned, the zero point included
    SourceScales scales;
};

// Columns 32 * tile .. of a row of a quantised type that can be packed.
SourceTile read_source_tile(TensorType type, const std::byte* row, size_t tile);

}  // namespace inlay::kernels
