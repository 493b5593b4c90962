#include <cstdio>
#include <fstream>

#include "bench.h"
#include "choice.h"

namespace cli {
namespace {

struct Summary {
    double median, minimum, maximum;
};

Summary summarise(std::vector<double> runs) {
    std::sort(runs.begin(), runs.end());
    const std::size_t middle = runs.size() / 2;
    const double median = runs.size() % 2 ? runs[middle] : (runs[middle - 1] + runs[middle]) / 2;
    return {median, runs.front(), runs.back()};
}

}  // namespace

void add_summary(Json& result, const std::string& name, const std::vector<double>& runs) {
    if (runs.empty()) {
        result[name] = nullptr;
        return;
    }
    const Summary summary = summarise(runs);
    result[name] = summary.median;
    result[name + "_min"] = summary.minimum;
    result[name + "_max"] = summary.maximum;
    result[name + "_runs"] = runs;
}

void print_summary(const std::string& what, const std::vector<double>& runs) {
    if (runs.empty()) return;
    const Summary summary = summarise(runs);
    std::printf("%s: %.2f tokens/s (median of %zu; %.2f to %.2f)\n", what.c_str(), summary.median, runs.size(),
                summary.minimum, summary.maximum);
}

std::optional<std::uint64_t> resident_bytes() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmRSS:")) return std::stoull(line.substr(6)) * 1024;
    return std::nullopt;
}

void add_conditions(Json& result, const BenchArguments& arguments, const inlay::EngineInfo& info,
                    const Loading& loading) {
    result["prompt"] = arguments.n_prompt;
    result["gen"] = arguments.n_generate;
    result["reps"] = arguments.n_repetitions;
    result["threads"] = info.n_threads;
    result["compute"] = choice_name(kComputeModes, info.compute);
    result["instructions"] = choice_name(kInstructionSets, info.instruction_set);
    result["kv"] = arguments.cache.kv.name();
    result["weight_bytes"] = info.weight_bytes;
    result["load_ms"] = loading.milliseconds;
    add_summary(result, "reload_ms", loading.reloads);
    result["loaded_resident_bytes"] = loading.resident_bytes ? Json(*loading.resident_bytes) : Json(nullptr);
    result["version"] = inlay::version();
}

}  // namespace cli
