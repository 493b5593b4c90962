#include "engine/model_fingerprint.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/xxhash.h"

namespace inlay {
namespace {

constexpr size_t kMostSamples = 1024;
constexpr size_t kSampleBytes = 512;
constexpr size_t kPartBytes = size_t{1} << 16;

// A hash of bytes that come one after the other.
class Digest {
public:
    Digest() : part_(kPartBytes) { XXH3_128bits_reset(&state_); }

    void add(const void* bytes, size_t n) { XXH3_128bits_update(&state_, bytes, n); }
    void add(uint64_t value) { add(&value, sizeof value); }
    void add(const ByteSource& source, uint64_t offset, uint64_t n) {
        for (size_t piece = 0; n > 0; offset += piece, n -= piece) {
            piece = static_cast<size_t>(std::min<uint64_t>(n, part_.size()));
            source.read_at(offset, part_.data(), piece);
            add(part_.data(), piece);
        }
    }
    ModelFingerprint result() const {
        const XXH128_hash_t hash = XXH3_128bits_digest(&state_);
        return {hash.low64, hash.high64};
    }

private:
    XXH3_state_t state_;
    std::vector<std::byte> part_;
};

void add_table(Digest& digest, const TensorInfo& tensor) {
    digest.add(tensor.name.size());
    digest.add(tensor.name.data(), tensor.name.size());
    for (const uint64_t dim : tensor.dims) digest.add(dim);
    digest.add(static_cast<uint64_t>(tensor.type));
    digest.add(tensor.offset);
}

void add_sample(Digest& digest, const ByteSource& source, const TensorInfo& tensor) {
    const uint64_t n = std::min<uint64_t>(tensor.bytes, kSampleBytes);
    digest.add(source, tensor.offset + (tensor.bytes - n) / 2, n);
}

}  // namespace

ModelFingerprint fingerprint_of(const GgufFile& head, const ByteSource& source) {
    Digest digest;
    digest.add(source.size());
    digest.add(source, 0, std::min(head.data_offset(), source.size()));
    const std::vector<TensorInfo>& tensors = head.tensors();
    for (const TensorInfo& tensor : tensors) add_table(digest, tensor);
    const size_t n_samples = std::min(tensors.size(), kMostSamples);
    for (size_t i = 0; i < n_samples; ++i) add_sample(digest, source, tensors[i * tensors.size() / n_samples]);
    return digest.result();
}

}  // namespace inlay
