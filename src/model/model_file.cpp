#include "model/model_file.h"

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/joined_source.h"
#include "model/gguf_split.h"

namespace inlay {
namespace {

// Runs read() for a part of a model: its sentence then says which file it is about.
template <typename Read>
auto naming(const ModelSource& source, uint32_t index, uint32_t n_parts, const Read& read) {
    try {
        return read();
    } catch (const Error& error) {
        if (error.status() == INLAY_E_IO) throw;  // names its file already
        throw Error(error.status(), source.name_of(index, n_parts) + ": " + error.sentence());
    }
}

}  // namespace

ModelFile ModelFile::open(ModelSource& source) {
    const std::shared_ptr<const ByteSource> first = source.open_first();
    ModelFile file{naming(source, 0, 1, [&] { return GgufFile::read(*first); }), first, 1};
    file.n_parts = naming(source, 0, 1, [&] {
        const uint32_t count = n_parts_of(file.head);
        source.check_count(count);
        return count;
    });
    if (file.n_parts == 1) return file;

    std::vector<std::shared_ptr<const ByteSource>> parts{first};
    std::vector<GgufFile> heads;
    heads.push_back(std::move(file.head));
    for (uint32_t i = 1; i < file.n_parts; ++i) {
        parts.push_back(source.open_part(i, file.n_parts));
        heads.push_back(naming(source, i, file.n_parts, [&] {
            GgufFile part = GgufFile::read(*parts.back());
            check_part(part, i, file.n_parts);
            return part;
        }));
    }
    const auto joined = std::make_shared<const JoinedSource>(std::move(parts));
    std::vector<uint64_t> begins;
    for (uint32_t i = 0; i < file.n_parts; ++i) begins.push_back(joined->begin_of(i));
    file.head = GgufFile::join(std::move(heads), begins);
    check_tensor_count(file.head);
    file.bytes = joined;
    return file;
}

}  // namespace inlay
