// Asking for blocks before they are read. The blocks of one head lie far apart, so that the processor's own prefetching
// begins anew with each; and asking for many lines at once would make it wait. So each product asks for what the next
// one reads, piece by piece, while it computes. Into the second level of caches: pages lie at multiples of 4 KiB, so
// that the same lines of several blocks would drive each other, and what is computed with, out of the first.
namespace inlay::kernels::INLAY_ISA {

struct ReadAhead {
    const std::byte* const* blocks;  // as many as the product that asks goes through
    size_t step;                     // bytes of a block to ask for in one piece
};

INLAY_LANES void ask_for(const ReadAhead& ahead, size_t block, size_t piece) {
    const std::byte* from = ahead.blocks[block] + piece * ahead.step;
    for (size_t offset = 0; offset < ahead.step; offset += 64) prefetch_far(from + offset);
}

}  // namespace inlay::kernels::INLAY_ISA
