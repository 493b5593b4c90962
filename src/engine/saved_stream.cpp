#include "engine/saved_stream.h"

#include <bit>
#include <string>

namespace inlay {

static_assert(std::endian::native == std::endian::little, "values are saved as they lie in memory");

void throw_damaged(const std::string& what) {
    throw Error(INLAY_E_FORMAT, "what was saved is damaged: " + what);
}

void read_whole(SaveSource& source, void* bytes, size_t n, const char* what) {
    const size_t n_read = source.read(bytes, n);
    if (n_read < n) throw_damaged(std::string("it ends in the ") + what);
}

SectionWriter::SectionWriter(SaveSink& sink, uint32_t kind, uint64_t n_bytes) : sink_(sink) {
    XXH3_64bits_reset(&checksum_);
    const SectionHead head{.kind = kind, .n_bytes = n_bytes};
    write(&head, sizeof head);
}

void SectionWriter::write(const void* bytes, size_t n) {
    if (n == 0) return;
    XXH3_64bits_update(&checksum_, bytes, n);
    sink_.write(bytes, n);
}

void SectionWriter::end() {
    const uint64_t checksum = XXH3_64bits_digest(&checksum_);
    sink_.write(&checksum, sizeof checksum);
}

void write_section(SaveSink& sink, uint32_t kind, const void* bytes, size_t n) {
    SectionWriter section(sink, kind, n);
    section.write(bytes, n);
    section.end();
}

SectionReader::SectionReader(SaveSource& source, uint32_t kind, const char* name) : source_(source), name_(name) {
    XXH3_64bits_reset(&checksum_);
    read(&head_, sizeof head_);
    if (head_.kind != kind || head_.reserved != 0)
        throw_damaged("section " + std::to_string(head_.kind) + " stands where '" + name_ + "' should");
}

void SectionReader::require_bytes(uint64_t n) const {
    if (head_.n_bytes != n)
        throw_damaged("section '" + std::string(name_) + "' has " + std::to_string(head_.n_bytes) +
                      " bytes instead of " + std::to_string(n));
}

void SectionReader::read(void* bytes, size_t n) {
    if (n == 0) return;
    read_whole(source_, bytes, n, name_);
    XXH3_64bits_update(&checksum_, bytes, n);
}

void SectionReader::end() {
    uint64_t checksum = 0;
    read_whole(source_, &checksum, sizeof checksum, name_);
    if (checksum != XXH3_64bits_digest(&checksum_))
        throw_damaged("section '" + std::string(name_) + "' was changed: its checksum is another");
}

}  // namespace inlay
