// The arithmetic of docs/numerics.md needs rounding to nearest and kept subnormals. A host may have set its thread
// otherwise; for the length of a step the default holds, then the host's setting is back.
#pragma once

#include <cfenv>

namespace inlay {

class DefaultFloatEnvironment {
public:
    DefaultFloatEnvironment() {
        std::fegetenv(&host_);
        std::fesetenv(FE_DFL_ENV);
    }
    ~DefaultFloatEnvironment() { std::fesetenv(&host_); }
    DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
    DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

private:
    std::fenv_t host_{};
};

}  // namespace inlay
