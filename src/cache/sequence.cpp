#include "cache/sequence.h"

#include "cache/cache.h"

namespace inlay {

Sequence::Sequence(Cache& cache, uint64_t extra_key, bool keeps_blocks)
    : cache_(cache), extra_key_(extra_key), keeps_blocks_(keeps_blocks), tables_(cache.layout().groups.size()) {
    cache_.enter(*this);
}

Sequence::~Sequence() {
    cache_.leave(*this);
}

}  // namespace inlay
