// How well rows of logits predict the tokens that came, and how far two ways of computing them are apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace cli {

// -ln of the softmax of `logits` [n] at `token`.
double negative_log_likelihood(const float* logits, std::size_t n, std::int32_t token);

// A row beside the reference's row for the same token.
struct RowComparison {
    double nll, reference_nll;
    double kl;      // of the row's distribution from the reference's: the sum of p_ref ln(p_ref / p)
    bool same_top;  // the most likely token, the lowest id among equals
};

// Both [n].
RowComparison compare_rows(const float* logits, const float* reference, std::size_t n, std::int32_t token);

// Over all rows.
struct Comparison {
    double mean_kl = 0;
    double p99_kl = 0;  // between the two values around it, as far as it lies from them
    double max_kl = 0;
    double top1_agreement = 0;  // part of the rows, 0 to 1
    double nll_difference = 0;  // mean loss less the reference's
    // Standard errors of the means, of rows taken as independent; none of a single row.
    std::optional<double> mean_kl_se, nll_difference_se;
};

// Of at least one row.
Comparison summarise(const std::vector<RowComparison>& rows);

}  // namespace cli
