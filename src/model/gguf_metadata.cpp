// Reading and looking up; how values are converted and printed stands in gguf_value.cpp.
#include "model/gguf_metadata.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/printable.h"
#include "model/gguf_value.h"

namespace inlay {
namespace {

constexpr uint64_t kMaxKeyBytes = 65535;            // the format's own bound
constexpr uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;  // key length, key, type, value
constexpr uint64_t kStringLengthBytes = 8;

GgufField key_field(std::string_view key, const char* part, uint64_t index = GgufField::kNoIndex) {
    return {"key", key, part, index};
}

GgufValueType read_type(GgufReader& reader, const GgufField& field) {
    const uint32_t id = reader.read<uint32_t>(field);
    if (id > static_cast<uint32_t>(GgufValueType::kFloat64))
        throw_format(field, std::to_string(id) + " is not a type of the format");
    return static_cast<GgufValueType>(id);
}

void read_key(GgufReader& reader, uint64_t index, std::string& key) {
    const GgufField length_field{nullptr, {}, "length of key", index};
    const uint64_t length = reader.read<uint64_t>(length_field);
    if (length == 0 || length > kMaxKeyBytes)
        throw_format(length_field, "is " + std::to_string(length) + "; a key has 1 to 65535 bytes");
    const GgufField field{nullptr, {}, "key", index};
    reader.require(length, 1, field);
    key.resize(static_cast<size_t>(length));
    reader.read_bytes(key.data(), key.size(), field);
    if (!is_printable(key)) throw_format(field, "'" + printable(key, 100) + "' is not printable UTF-8");
}

[[noreturn]] void throw_not_bool(const GgufField& field, uint64_t byte) {
    throw_format(field, "is " + std::to_string(byte) + "; a bool is 0 or 1");
}

[[noreturn]] void throw_other_type(std::string_view key, const char* wanted, GgufValueType found) {
    throw_format(key_field(key, "value"), "must be " + std::string(wanted) + ", not " + std::string(name(found)));
}

uint64_t read_scalar(GgufReader& reader, GgufValueType type, const GgufField& field) {
    uint8_t bytes[8] = {};
    reader.read_bytes(bytes, value_size(type), field);
    const uint64_t bits = load_little<uint64_t>(bytes);
    if (type == GgufValueType::kBool && bits > 1) throw_not_bool(field, bits);
    return bits;
}

}  // namespace

GgufMetadata GgufMetadata::read(GgufReader& reader, uint64_t n_keys) {
    reader.require(n_keys, kMinEntryBytes, {nullptr, {}, "number of keys"});
    GgufMetadata metadata;
    std::string key;
    for (uint64_t i = 0; i < n_keys; ++i) metadata.read_entry(reader, key);
    metadata.index_keys();
    return metadata;
}

void GgufMetadata::read_entry(GgufReader& reader, std::string& key) {
    read_key(reader, entries_.size(), key);
    Entry entry{};
    entry.key_offset = bytes_.size();
    entry.key_length = static_cast<uint32_t>(key.size());
    bytes_.insert(bytes_.end(), key.begin(), key.end());

    entry.type = read_type(reader, key_field(key, "value type"));
    switch (entry.type) {
        case GgufValueType::kString:
            entry.count = reader.read<uint64_t>(key_field(key, "string length"));
            entry.data = append_bytes(reader, entry.count, key_field(key, "string"));
            break;
        case GgufValueType::kArray:
            read_array(reader, key, entry);
            break;
        default:
            entry.data = read_scalar(reader, entry.type, key_field(key, "value"));
    }
    entries_.push_back(entry);
}

void GgufMetadata::read_array(GgufReader& reader, std::string_view key, Entry& entry) {
    entry.element_type = read_type(reader, key_field(key, "element type"));
    entry.count = reader.read<uint64_t>(key_field(key, "array length"));
    if (entry.element_type == GgufValueType::kArray)
        throw_unsupported(key_field(key, "element type"), "is array; arrays of arrays are not read");
    if (entry.element_type == GgufValueType::kString) return read_strings(reader, key, entry);

    const GgufField field = key_field(key, "array");
    const size_t element_bytes = value_size(entry.element_type);
    reader.require(entry.count, element_bytes, field);
    entry.data = append_bytes(reader, entry.count * element_bytes, field);
    if (entry.element_type != GgufValueType::kBool) return;
    for (uint64_t i = 0; i < entry.count; ++i) {
        const auto byte = static_cast<uint8_t>(bytes_[entry.data + i]);
        if (byte > 1) throw_not_bool(key_field(key, "element", i), byte);
    }
}

void GgufMetadata::read_strings(GgufReader& reader, std::string_view key, Entry& entry) {
    reader.require(entry.count, kStringLengthBytes, key_field(key, "array"));
    entry.data = string_bounds_.size();
    string_bounds_.push_back(bytes_.size());
    for (uint64_t i = 0; i < entry.count; ++i) {
        const uint64_t length = reader.read<uint64_t>(key_field(key, "length of element", i));
        append_bytes(reader, length, key_field(key, "element", i));
        string_bounds_.push_back(bytes_.size());
    }
}

// Where the bytes begin in bytes_.
uint64_t GgufMetadata::append_bytes(GgufReader& reader, uint64_t n, const GgufField& field) {
    reader.require(n, 1, field);
    const size_t begin = bytes_.size();
    bytes_.resize(begin + static_cast<size_t>(n));
    reader.read_bytes(bytes_.data() + begin, static_cast<size_t>(n), field);
    return begin;
}

void GgufMetadata::index_keys() {
    by_key_.resize(entries_.size());
    std::iota(by_key_.begin(), by_key_.end(), 0u);
    std::sort(by_key_.begin(), by_key_.end(), [this](uint32_t a, uint32_t b) { return key(a) < key(b); });
    const auto twice =
        std::adjacent_find(by_key_.begin(), by_key_.end(), [this](uint32_t a, uint32_t b) { return key(a) == key(b); });
    if (twice != by_key_.end()) throw_format(key_field(key(*twice), "the key"), "occurs twice");
}

const GgufMetadata::Entry* GgufMetadata::find(std::string_view key) const {
    const auto at = std::lower_bound(by_key_.begin(), by_key_.end(), key,
                                     [this](uint32_t i, std::string_view wanted) { return this->key(i) < wanted; });
    return at != by_key_.end() && this->key(*at) == key ? &entries_[*at] : nullptr;
}

std::optional<uint64_t> GgufMetadata::unsigned_integer(std::string_view key) const {
    const Entry* entry = find(key);
    if (entry == nullptr) return std::nullopt;
    if (!is_integer(entry->type)) throw_other_type(key, "an integer", entry->type);
    if (entry->type == GgufValueType::kUint64) return entry->data;
    const int64_t value = integer_value(entry->type, entry->data);
    if (value < 0) throw_format(key_field(key, "value"), "must not be negative, it is " + std::to_string(value));
    return static_cast<uint64_t>(value);
}

std::optional<int64_t> GgufMetadata::integer(std::string_view key) const {
    const Entry* entry = find(key);
    if (entry == nullptr) return std::nullopt;
    if (!is_integer(entry->type)) throw_other_type(key, "an integer", entry->type);
    if (entry->type == GgufValueType::kUint64 && entry->data > INT64_MAX)
        throw_format(key_field(key, "value"), std::to_string(entry->data) + " is too large");
    return integer_value(entry->type, entry->data);
}

std::optional<double> GgufMetadata::number(std::string_view key) const {
    const Entry* entry = find(key);
    if (entry == nullptr) return std::nullopt;
    if (!is_number(entry->type)) throw_other_type(key, "a number", entry->type);
    return number_value(entry->type, entry->data);
}

std::optional<bool> GgufMetadata::boolean(std::string_view key) const {
    const Entry* entry = find(key);
    if (entry == nullptr) return std::nullopt;
    if (entry->type != GgufValueType::kBool) throw_other_type(key, "a bool", entry->type);
    return entry->data != 0;
}

std::optional<std::string_view> GgufMetadata::string(std::string_view key) const {
    const Entry* entry = find(key);
    if (entry == nullptr) return std::nullopt;
    if (entry->type != GgufValueType::kString) throw_other_type(key, "a string", entry->type);
    return std::string_view{bytes_.data() + entry->data, static_cast<size_t>(entry->count)};
}

const GgufMetadata::Entry* GgufMetadata::find_array(std::string_view key, bool (*accepts)(GgufValueType),
                                                    const char* wanted) const {
    const Entry* entry = find(key);
    if (entry == nullptr) return nullptr;
    if (entry->type != GgufValueType::kArray) throw_other_type(key, wanted, entry->type);
    if (!accepts(entry->element_type))
        throw_format(key_field(key, "value"),
                     "must be " + std::string(wanted) + ", not an array of " + std::string(name(entry->element_type)));
    return entry;
}

std::optional<GgufIntegers> GgufMetadata::integers(std::string_view key) const {
    const auto accepts = [](GgufValueType type) { return is_integer(type) || type == GgufValueType::kBool; };
    const Entry* entry = find_array(key, accepts, "an array of integers");
    if (entry == nullptr) return std::nullopt;
    return GgufIntegers(entry->element_type, bytes_.data() + entry->data, static_cast<size_t>(entry->count));
}

std::optional<GgufNumbers> GgufMetadata::numbers(std::string_view key) const {
    const Entry* entry = find_array(key, is_number, "an array of numbers");
    if (entry == nullptr) return std::nullopt;
    return GgufNumbers(entry->element_type, bytes_.data() + entry->data, static_cast<size_t>(entry->count));
}

std::optional<GgufStrings> GgufMetadata::strings(std::string_view key) const {
    const auto accepts = [](GgufValueType type) { return type == GgufValueType::kString; };
    const Entry* entry = find_array(key, accepts, "an array of strings");
    if (entry == nullptr) return std::nullopt;
    return strings_of(*entry);
}

GgufStrings GgufMetadata::strings_of(const Entry& entry) const {
    return {bytes_.data(), string_bounds_.data() + entry.data, static_cast<size_t>(entry.count)};
}

std::string GgufMetadata::text(size_t i, size_t max_bytes) const {
    const Entry& entry = entries_[i];
    switch (entry.type) {
        case GgufValueType::kString:
            return printable({bytes_.data() + entry.data, static_cast<size_t>(entry.count)}, max_bytes);
        case GgufValueType::kArray:
            break;
        default:
            return scalar_text(entry.type, entry.data);
    }
    const auto element_text = [&](size_t element) {
        if (entry.element_type == GgufValueType::kString)
            return "'" + printable(strings_of(entry)[element], max_bytes) + "'";
        const size_t size = value_size(entry.element_type);
        return scalar_text(entry.element_type,
                           load_scalar(entry.element_type, bytes_.data() + entry.data + element * size));
    };
    const auto count = static_cast<size_t>(entry.count);
    return array_text(count, element_text, max_bytes);
}

}  // namespace inlay
