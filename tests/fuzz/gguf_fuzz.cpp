// libFuzzer: any bytes as a GGUF file are read or refused, and what was read answers everything.
#include <cstddef>
#include <cstdint>

#include "base/byte_source.h"
#include "base/error.h"
#include "base/printable.h"
#include "model/gguf.h"
#include "tests/model/gguf_exercise.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        const inlay::MemorySource source(data, size);
        inlay::test::exercise(inlay::GgufFile::read(source), size);
    } catch (const inlay::Error& error) {
        const bool expected = error.status() == INLAY_E_FORMAT || error.status() == INLAY_E_UNSUPPORTED;
        if (!expected || !inlay::is_printable(error.sentence())) __builtin_trap();
    }
    return 0;
}
