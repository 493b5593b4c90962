#include "progress_bar.h"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace cli {
namespace {

constexpr std::uint64_t kBigBytes = 200'000'000;
constexpr std::chrono::milliseconds kNoticed{500};
constexpr int kWidth = 40;

}  // namespace

ProgressBar::ProgressBar(bool wanted)
    : start_(std::chrono::steady_clock::now()), visible_(wanted && isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
    if (drawn_ >= 0) std::fprintf(stderr, "\r\033[K");
}

void ProgressBar::show(std::uint64_t done, std::uint64_t total) {
    if (!visible_ || total == 0) return;
    if (total < kBigBytes && std::chrono::steady_clock::now() - start_ < kNoticed) return;
    const int percent = static_cast<int>(static_cast<double>(done) * 100.0 / static_cast<double>(total));
    if (percent == drawn_) return;
    drawn_ = percent;
    const auto filled = static_cast<std::size_t>(percent * kWidth / 100);
    const std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '.');
    std::fprintf(stderr, "\rloading [%s] %3d %% of %.1f GB", bar.c_str(), percent, static_cast<double>(total) / 1e9);
    std::fflush(stderr);
}

}  // namespace cli
