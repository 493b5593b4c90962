// Counter-based noise: a number for each (seed, position), without a state that forks and batches would have to carry.
// Philox 4x32 with 10 rounds: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cstdint>

namespace inlay {

using PhiloxBlock = std::array<uint32_t, 4>;

constexpr PhiloxBlock philox_block(PhiloxBlock counter, std::array<uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
        const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
        const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
        counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
                   static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
        key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
    }
    return counter;
}

constexpr uint64_t philox(uint64_t seed, uint64_t position) {
    const PhiloxBlock block =
        philox_block({static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), 0, 0},
                     {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
    return (uint64_t{block[1]} << 32) | block[0];
}

// 53 bits of noise as a number in [0, 1).
constexpr double uniform(uint64_t noise) {
    return static_cast<double>(noise >> 11) * 0x1p-53;
}

}  // namespace inlay
