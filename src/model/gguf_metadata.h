// The keys and values at the head of a GGUF file. All keys, strings and arrays lie in one buffer and are handed out as
// views: a vocabulary of 256,000 tokens is two allocations, not 256,000.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf_reader.h"
#include "model/gguf_value.h"

namespace inlay {

class GgufMetadata {
public:
    // Reads and checks `n_keys` keys with their values.
    static GgufMetadata read(GgufReader& reader, uint64_t n_keys);

    // In the order of the file.
    size_t size() const { return entries_.size(); }
    std::string_view key(size_t i) const { return key_of(entries_[i]); }
    GgufValueType type(size_t i) const { return entries_[i].type; }
    // The value on one printable line of about `max_bytes`; of a long array the first elements and the count.
    std::string text(size_t i, size_t max_bytes) const;

    // The value of a key: nothing if it is absent, INLAY_E_FORMAT naming the key if it is of another type.
    std::optional<uint64_t> unsigned_integer(std::string_view key) const;  // any integer type, not negative
    std::optional<int64_t> integer(std::string_view key) const;            // any integer type
    std::optional<double> number(std::string_view key) const;              // any integer or float type
    std::optional<bool> boolean(std::string_view key) const;
    std::optional<std::string_view> string(std::string_view key) const;
    std::optional<GgufIntegers> integers(
        std::string_view key) const;                                 // array of any integer type, or of bool as 0 and 1
    std::optional<GgufNumbers> numbers(std::string_view key) const;  // array of any integer or float type
    std::optional<GgufStrings> strings(std::string_view key) const;

    bool contains(std::string_view key) const { return find(key) != nullptr; }

private:
    struct Entry {
        uint64_t key_offset;
        uint32_t key_length;
        GgufValueType type;
        GgufValueType element_type;  // of arrays
        uint64_t count;              // elements of an array, bytes of a string
        // A scalar's bits; or where a string or array begins in bytes_; or, of an array of strings, in string_bounds_.
        uint64_t data;
    };

    void read_entry(GgufReader& reader, std::string& key);
    void read_array(GgufReader& reader, std::string_view key, Entry& entry);
    void read_strings(GgufReader& reader, std::string_view key, Entry& entry);
    uint64_t append_bytes(GgufReader& reader, uint64_t n, const GgufField& field);
    void index_keys();

    std::string_view key_of(const Entry& entry) const { return {bytes_.data() + entry.key_offset, entry.key_length}; }
    const Entry* find(std::string_view key) const;
    const Entry* find_array(std::string_view key, bool (*accepts)(GgufValueType), const char* wanted) const;
    GgufStrings strings_of(const Entry& entry) const;

    std::vector<char> bytes_;
    std::vector<uint64_t> string_bounds_;
    std::vector<Entry> entries_;
    std::vector<uint32_t> by_key_;  // entries in ascending order of their keys
};

}  // namespace inlay
