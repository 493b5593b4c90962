// A bar on stderr while a big model is loaded: only on a terminal, and only for what takes long enough to be noticed.
#pragma once

#include <chrono>
#include <cstdint>

namespace cli {

class ProgressBar {
public:
    explicit ProgressBar(bool wanted);
    ~ProgressBar();  // erases the bar
    ProgressBar(const ProgressBar&) = delete;
    ProgressBar& operator=(const ProgressBar&) = delete;

    void show(std::uint64_t done, std::uint64_t total);

private:
    std::chrono::steady_clock::time_point start_;
    bool visible_;
    int drawn_ = -1;  // per cent on the screen; -1: nothing is
};

}  // namespace cli
