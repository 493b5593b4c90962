#include "token_losses.h"

#include <algorithm>
#include <cmath>

namespace cli {
namespace {

double mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
}

std::optional<double> standard_error(const std::vector<double>& values) {
    if (values.size() < 2) return std::nullopt;
    const double middle = mean(values);
    double squares = 0;
    for (const double value : values) squares += (value - middle) * (value - middle);
    const auto n = static_cast<double>(values.size());
    return std::sqrt(squares / (n - 1) / n);
}

// `values` ascend.
double percentile(const std::vector<double>& values, double part) {
    const double place = part * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace

double negative_log_likelihood(const float* logits, std::size_t n, std::int32_t token) {
    const double maximum = *std::max_element(logits, logits + n);
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += std::exp(logits[i] - maximum);
    return maximum + std::log(sum) - logits[static_cast<std::size_t>(token)];
}

RowComparison compare_rows(const float* logits, const float* reference, std::size_t n, std::int32_t token) {
    const float* const top = std::max_element(logits, logits + n);
    const float* const reference_top = std::max_element(reference, reference + n);
    const double maximum = *top;
    const double reference_maximum = *reference_top;
    double sum = 0, reference_sum = 0, weighted = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const double weight = std::exp(reference[i] - reference_maximum);
        sum += std::exp(logits[i] - maximum);
        reference_sum += weight;
        weighted += weight * (static_cast<double>(reference[i]) - static_cast<double>(logits[i]));
    }
    const double total = maximum + std::log(sum);
    const double reference_total = reference_maximum + std::log(reference_sum);
    const double kl = weighted / reference_sum - (reference_total - total);
    const auto at = static_cast<std::size_t>(token);
    return {total - logits[at], reference_total - reference[at], std::max(kl, 0.0),
            top - logits == reference_top - reference};
}

Comparison summarise(const std::vector<RowComparison>& rows) {
    std::vector<double> kl, differences;
    std::size_t n_same = 0;
    for (const RowComparison& row : rows) {
        kl.push_back(row.kl);
        differences.push_back(row.nll - row.reference_nll);
        n_same += row.same_top;
    }
    std::sort(kl.begin(), kl.end());
    Comparison result;
    result.mean_kl = mean(kl);
    result.mean_kl_se = standard_error(kl);
    result.p99_kl = percentile(kl, 0.99);
    result.max_kl = kl.back();
    result.top1_agreement = static_cast<double>(n_same) / static_cast<double>(rows.size());
    result.nll_difference = mean(differences);
    result.nll_difference_se = standard_error(differences);
    return result;
}

}  // namespace cli
