#include "model/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "model/gguf_reader.h"

namespace inlay {
namespace {

constexpr char kMagic[4] = {'G', 'G', 'U', 'F'};
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = uint64_t{1} << 20;
constexpr uint32_t kMaxDims = 4;
constexpr uint64_t kMaxNameBytes = 65535;
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 4 + 8;  // name length, name, number of dimensions, type, offset
constexpr uint64_t kMaxFileBytes = INT64_MAX;            // what file offsets can express

GgufField file_field(const char* part, uint64_t index = GgufField::kNoIndex) {
    return {nullptr, {}, part, index};
}
GgufField tensor_field(std::string_view name, const char* part, uint64_t index = GgufField::kNoIndex) {
    return {"tensor", name, part, index};
}

void read_magic(GgufReader& reader) {
    char magic[sizeof kMagic];
    reader.read_bytes(magic, sizeof magic, file_field("magic"));
    if (std::memcmp(magic, kMagic, sizeof magic) != 0)
        throw_format(file_field("magic"),
                     "is '" + printable({magic, sizeof magic}, 16) + "'; a GGUF file begins with 'GGUF'");
}

uint32_t read_version(GgufReader& reader) {
    const GgufField field = file_field("version");
    const uint32_t version = reader.read<uint32_t>(field);
    if (version == 2 || version == 3) return version;
    if (version != 0 && (version & 0xffff) == 0)
        throw_unsupported(field, "is written big-endian; only little-endian files are read");
    throw_unsupported(field, "is " + std::to_string(version) + "; versions 2 and 3 are read");
}

uint64_t alignment_of(const GgufMetadata& metadata) {
    const uint64_t alignment = metadata.unsigned_integer("general.alignment").value_or(kDefaultAlignment);
    if (!std::has_single_bit(alignment) || alignment > kMaxAlignment)
        throw_format(
            {"key", "general.alignment", "value"},
            "is " + std::to_string(alignment) + "; it must be a power of two up to " + std::to_string(kMaxAlignment));
    return alignment;
}

std::string read_name(GgufReader& reader, uint64_t index) {
    const GgufField length_field = file_field("name length of tensor", index);
    const uint64_t length = reader.read<uint64_t>(length_field);
    if (length == 0 || length > kMaxNameBytes)
        throw_format(length_field, "is " + std::to_string(length) + "; a name has 1 to 65535 bytes");
    const GgufField field = file_field("name of tensor", index);
    reader.require(length, 1, field);
    std::string name(static_cast<size_t>(length), '\0');
    reader.read_bytes(name.data(), name.size(), field);
    if (!is_printable(name)) throw_format(field, "'" + printable(name, 100) + "' is not printable UTF-8");
    return name;
}

// The number of values; the product is checked factor by factor.
uint64_t read_dims(GgufReader& reader, TensorInfo& tensor) {
    const GgufField count_field = tensor_field(tensor.name, "number of dimensions");
    tensor.n_dims = reader.read<uint32_t>(count_field);
    if (tensor.n_dims > kMaxDims)
        throw_format(count_field, "is " + std::to_string(tensor.n_dims) + "; at most 4 exist");
    std::fill(std::begin(tensor.dims), std::end(tensor.dims), uint64_t{1});
    uint64_t n_values = 1;
    for (uint32_t i = 0; i < tensor.n_dims; ++i) {
        const GgufField field = tensor_field(tensor.name, "dimension", i);
        const uint64_t dim = tensor.dims[i] = reader.read<uint64_t>(field);
        if (dim == 0) throw_format(field, "is 0");
        if (dim > kMaxFileBytes / n_values)
            throw_format(field, "is " + std::to_string(dim) + "; the product of the dimensions is too large");
        n_values *= dim;
    }
    return n_values;
}

TensorType read_tensor_type(GgufReader& reader, std::string_view name) {
    const GgufField field = tensor_field(name, "type");
    const uint32_t id = reader.read<uint32_t>(field);
    const std::optional<TensorType> type = tensor_type_from_id(id);
    if (!type) throw_unsupported(field, std::to_string(id) + " is not known");
    return *type;
}

uint64_t bytes_of(const TensorInfo& tensor, uint64_t n_values) {
    const uint64_t values = block_size(tensor.type);
    const GgufField field = tensor_field(tensor.name, "dimension", 0);
    if (tensor.dims[0] % values != 0)
        throw_format(field, "is " + std::to_string(tensor.dims[0]) + "; type " + std::string(name(tensor.type)) +
                                " needs a multiple of " + std::to_string(values));
    const uint64_t blocks = n_values / values;
    if (blocks > kMaxFileBytes / type_size(tensor.type))
        throw_format(tensor_field(tensor.name, "size"), "is more than 2^63 bytes");
    return blocks * type_size(tensor.type);
}

// The offset stays relative to the tensor data until the end of the head is known.
TensorInfo read_tensor(GgufReader& reader, uint64_t index) {
    TensorInfo tensor{};
    tensor.name = read_name(reader, index);
    const uint64_t n_values = read_dims(reader, tensor);
    tensor.type = read_tensor_type(reader, tensor.name);
    tensor.bytes = bytes_of(tensor, n_values);
    tensor.offset = reader.read<uint64_t>(tensor_field(tensor.name, "offset"));
    return tensor;
}

void place(TensorInfo& tensor, uint64_t data_offset, uint64_t alignment, uint64_t file_size) {
    const GgufField field = tensor_field(tensor.name, "offset");
    if (tensor.offset % alignment != 0)
        throw_format(
            field, std::to_string(tensor.offset) + " is not a multiple of the alignment " + std::to_string(alignment));
    const uint64_t available = file_size > data_offset ? file_size - data_offset : 0;
    if (tensor.offset > available || tensor.bytes > available - tensor.offset)
        throw_format(field, std::to_string(tensor.offset) + " + " + std::to_string(tensor.bytes) +
                                " bytes, from byte " + std::to_string(data_offset) + " on, lies outside the file of " +
                                std::to_string(file_size) + " bytes");
    tensor.offset += data_offset;
}

// Shared bytes would let a small file ask for any amount of memory, tensor by tensor.
void check_overlaps(const std::vector<TensorInfo>& tensors) {
    std::vector<uint32_t> by_offset(tensors.size());
    std::iota(by_offset.begin(), by_offset.end(), 0u);
    std::sort(by_offset.begin(), by_offset.end(),
              [&](uint32_t a, uint32_t b) { return tensors[a].offset < tensors[b].offset; });
    for (size_t i = 1; i < by_offset.size(); ++i) {
        const TensorInfo& before = tensors[by_offset[i - 1]];
        const TensorInfo& tensor = tensors[by_offset[i]];
        if (before.offset + before.bytes > tensor.offset)
            throw_format(tensor_field(tensor.name, "data"), "overlaps that of tensor '" + printable(before.name, 100) +
                                                                "' at byte " + std::to_string(tensor.offset));
    }
}

std::vector<uint32_t> index_names(const std::vector<TensorInfo>& tensors) {
    std::vector<uint32_t> by_name(tensors.size());
    std::iota(by_name.begin(), by_name.end(), 0u);
    std::sort(by_name.begin(), by_name.end(),
              [&](uint32_t a, uint32_t b) { return tensors[a].name < tensors[b].name; });
    const auto twice = std::adjacent_find(by_name.begin(), by_name.end(),
                                          [&](uint32_t a, uint32_t b) { return tensors[a].name == tensors[b].name; });
    if (twice != by_name.end()) throw_format(tensor_field(tensors[*twice].name, "the name"), "occurs twice");
    return by_name;
}

}  // namespace

GgufFile GgufFile::read(const ByteSource& source) {
    GgufReader reader(source);
    GgufFile file;
    read_magic(reader);
    file.version_ = read_version(reader);
    const uint64_t n_tensors = reader.read<uint64_t>(file_field("number of tensors"));
    const uint64_t n_keys = reader.read<uint64_t>(file_field("number of keys"));
    file.metadata_ = GgufMetadata::read(reader, n_keys);
    file.alignment_ = alignment_of(file.metadata_);

    reader.require(n_tensors, kMinTensorBytes, file_field("number of tensors"));
    for (uint64_t i = 0; i < n_tensors; ++i) file.tensors_.push_back(read_tensor(reader, i));
    file.by_name_ = index_names(file.tensors_);

    file.data_offset_ = (reader.position() + file.alignment_ - 1) / file.alignment_ * file.alignment_;
    for (TensorInfo& tensor : file.tensors_) place(tensor, file.data_offset_, file.alignment_, reader.file_size());
    check_overlaps(file.tensors_);
    return file;
}

GgufFile GgufFile::join(std::vector<GgufFile> parts, std::span<const uint64_t> begins) {
    GgufFile whole = std::move(parts[0]);
    for (size_t i = 1; i < parts.size(); ++i)
        for (TensorInfo& tensor : parts[i].tensors_) {
            tensor.offset += begins[i];
            whole.tensors_.push_back(std::move(tensor));
        }
    whole.by_name_ = index_names(whole.tensors_);
    return whole;
}

const TensorInfo* GgufFile::find_tensor(std::string_view name) const {
    const auto at = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                     [this](uint32_t i, std::string_view wanted) { return tensors_[i].name < wanted; });
    return at != by_name_.end() && tensors_[*at].name == name ? &tensors_[*at] : nullptr;
}

}  // namespace inlay
