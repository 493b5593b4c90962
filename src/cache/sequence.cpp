#include "cache/sequence.h"

#include "cache/cache.h"

namespace inlay {

Sequence::Sequence(Cache& cache, uint64_t extra_key)
    : cache_(cache), extra_key_(extra_key), tables_(cache.layout().groups.size()) {
    cache_.enter(*this);
}

Sequence::~Sequence() {
    cache_.leave(*this);
}

}  // namespace inlay
