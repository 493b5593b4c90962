// The tables that are compared with the reference: all that this processor can run.
#pragma once

#include <vector>

#include "kernels/kernels.h"

namespace inlay::test {

inline std::vector<const kernels::Kernels*> fast_tables() {
    std::vector<const kernels::Kernels*> tables = {&kernels::portable()};
    for (const kernels::Kernels* table : {kernels::avx2(), kernels::avx512(), kernels::neon()}) {
        if (table) tables.push_back(table);
    }
    return tables;
}

}  // namespace inlay::test
