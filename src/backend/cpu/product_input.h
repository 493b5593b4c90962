// The rows that a matrix product multiplies.
//
// Of a few rows each thread makes them for itself: norm, gate and quantisation of a row cost less than fetching what
// another thread made, line by line, from its processor's cache. More rows are made once, by all threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "kernels/quantized_rows.h"

namespace inlay {

struct ProductInput {
    Activation rows;       // [n_rows, n_cols]
    std::byte* quantized;  // the rows in 8 bits, where a product reads them so
    std::byte* rest;       // what those leave of the rows, right behind them

    ProductInput(Activation of, size_t n_rows, std::byte* room)
        : rows(of), quantized(room), rest(room + n_rows * kernels::quantized_row_bytes(of.n_cols)) {}
};

// Room for each thread's own rows of one input at a time.
class ThreadInputs {
public:
    static constexpr size_t kMostRows = 8;

    // widest: columns of any input
    static size_t bytes_of_thread(size_t widest) { return quantized_bytes(widest) + float_bytes(widest); }

    // memory: [n_threads, bytes_of_thread], 64-byte aligned
    void place(std::byte* memory, size_t widest, unsigned n_threads) {
        memory_ = memory;
        widest_ = widest;
        numbers_.resize(n_threads);
    }

    // The number of the next input. By the caller of a step.
    uint64_t begin() { return ++last_number_; }
    // The thread's room for n_rows of n_cols.
    ProductInput room(unsigned thread, size_t n_rows, size_t n_cols) const {
        std::byte* begin = memory_ + thread * bytes_of_thread(widest_);
        return {{reinterpret_cast<float*>(begin + quantized_bytes(widest_)), n_cols}, n_rows, begin};
    }
    // Whether the thread has not made this input yet; from then on it has.
    bool is_new(unsigned thread, uint64_t number) { return std::exchange(numbers_[thread].made, number) != number; }

private:
    static size_t quantized_bytes(size_t widest) { return kMostRows * 2 * kernels::quantized_row_bytes(widest); }
    static size_t float_bytes(size_t widest) { return (kMostRows * widest * sizeof(float) + 63) / 64 * 64; }

    struct alignas(64) Number {
        uint64_t made = 0;
    };
    std::byte* memory_ = nullptr;
    size_t widest_ = 0;
    std::vector<Number> numbers_;           // [n_threads]
    alignas(64) uint64_t last_number_ = 0;  // written while others read the rest
};

}  // namespace inlay
