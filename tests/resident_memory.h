// Memory of this process that is in RAM.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace inlay::test {

inline uint64_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    uint64_t size = 0, resident = 0;
    statm >> size >> resident;
    return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace inlay::test
