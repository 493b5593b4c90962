// A matrix is packed to the same bytes however its source gives it, and a source that serves one thread is asked by it.
#include "backend/cpu/weight_loader.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <thread>

#include "base/error.h"
#include "kernels/packed_matrix.h"
#include "kernels/reference/dequantize.h"

using namespace inlay;

namespace {

// Gives bytes by reading only, and remembers who read.
class WatchedSource final : public ByteSource {
public:
    WatchedSource(const std::string& bytes, bool any_thread)
        : memory_(bytes.data(), bytes.size()), any_thread_(any_thread) {}

    uint64_t size() const override { return memory_.size(); }
    bool serves_any_thread() const override { return any_thread_; }
    void read_at(uint64_t offset, void* buffer, size_t n) const override {
        if (std::this_thread::get_id() != maker_) ++n_foreign_reads;
        if (n_reads++ == fails_at_read) throw Error(INLAY_E_IO, "the disk is gone");
        memory_.read_at(offset, buffer, n);
    }

    mutable std::atomic<int> n_reads{0};
    mutable std::atomic<int> n_foreign_reads{0};
    int fails_at_read = -1;

private:
    MemorySource memory_;
    bool any_thread_;
    std::thread::id maker_ = std::this_thread::get_id();
};

struct Matrix {
    TensorInfo tensor;
    std::string file;

    // At an odd offset of the file.
    Matrix(TensorType type, uint64_t n_cols, uint64_t n_rows)
        : tensor{"m", type, 2, {n_cols, n_rows, 1, 1}, 13, row_size(type, n_cols) * n_rows} {
        std::mt19937 random(5);
        file.resize(tensor.offset + tensor.bytes);
        for (char& byte : file) byte = static_cast<char>(random());
    }

    size_t packed_bytes() const {
        const size_t n_groups = (tensor.dims[1] + kernels::kGroupRows - 1) / kernels::kGroupRows;
        return n_groups * kernels::packed_group_bytes(tensor.type, tensor.dims[0]);
    }

    std::string packed(const ByteSource& source, unsigned n_threads, const Backend::Loading& loading = {}) const {
        Workers workers(n_threads);
        std::string out(packed_bytes(), '?');
        const TensorPlace place{&tensor, false, reinterpret_cast<std::byte*>(out.data())};
        load_tensors(source, {&place, 1}, workers, loading);
        return out;
    }

    // The definition: group after group.
    std::string expected() const {
        std::string out;
        const size_t row_bytes = row_size(tensor.type, tensor.dims[0]);
        std::string group(kernels::packed_group_bytes(tensor.type, tensor.dims[0]), '\0');
        for (size_t row = 0; row < tensor.dims[1]; row += kernels::kGroupRows) {
            kernels::pack_group(tensor.type,
                                reinterpret_cast<const std::byte*>(file.data() + tensor.offset) + row * row_bytes,
                                std::min<size_t>(kernels::kGroupRows, tensor.dims[1] - row), tensor.dims[0],
                                reinterpret_cast<std::byte*>(group.data()));
            out += group;
        }
        return out;
    }
};

}  // namespace

TEST_CASE("a matrix is packed alike from memory, by many readers and by one") {
    const Matrix matrices[] = {{TensorType::kF32, 8, 1},       {TensorType::kF16, 96, 100},
                               {TensorType::kF32, 256, 9001},  // more than two stretches
                               {TensorType::kQ4_K, 512, 5000}, {TensorType::kQ8_0, 32, 33},
                               {TensorType::kF32, 1 << 17, 17}};  // one group is more than a stretch
    for (const Matrix& matrix : matrices) {
        CAPTURE(name(matrix.tensor.type), matrix.tensor.dims[0], matrix.tensor.dims[1]);
        const std::string expected = matrix.expected();
        for (const unsigned n_threads : {1u, 3u}) {
            CHECK(matrix.packed(MemorySource(matrix.file.data(), matrix.file.size()), n_threads) == expected);
            CHECK(matrix.packed(WatchedSource(matrix.file, true), n_threads) == expected);
            const WatchedSource one_thread(matrix.file, false);
            CHECK(matrix.packed(one_thread, n_threads) == expected);
            CHECK(one_thread.n_foreign_reads == 0);
        }
    }
}

TEST_CASE("a source that serves any thread is read by all of them") {
    const Matrix matrix(TensorType::kF32, 256, 20000);
    const WatchedSource source(matrix.file, true);
    for (int i = 0; i < 100 && source.n_foreign_reads == 0; ++i) matrix.packed(source, 3);
    CHECK(source.n_foreign_reads > 0);
}

TEST_CASE("a read that fails in any task arrives at the caller") {
    const Matrix matrix(TensorType::kF32, 256, 9001);
    for (const bool any_thread : {true, false})
        for (const int n : {0, 1, 2}) {
            WatchedSource source(matrix.file, any_thread);
            source.fails_at_read = n;
            CHECK_THROWS_AS(matrix.packed(source, 3), Error);
        }
}

TEST_CASE("tensors that share a task or are cut by several all come to their places, vectors among them") {
    const uint64_t shapes[][2] = {{64, 500}, {64, 1}, {4096, 700}, {96, 1}, {32, 17}, {64, 3000}};
    std::string file, expected;
    std::vector<TensorInfo> tensors;
    for (const auto& [n_cols, n_rows] : shapes) {
        Matrix matrix(TensorType::kF16, n_cols, n_rows);
        const size_t at = matrix.tensor.offset;
        if (n_rows > 1) {
            expected += matrix.expected();
        } else {
            std::string values(n_cols * sizeof(float), '\0');
            dequantize(matrix.tensor.type, matrix.file.data() + at, n_cols, reinterpret_cast<float*>(values.data()));
            expected += values;
        }
        matrix.tensor.offset = file.size();
        file += matrix.file.substr(at);
        tensors.push_back(matrix.tensor);
    }
    for (const bool any_thread : {true, false}) {
        std::string out(expected.size(), '?');
        std::vector<TensorPlace> places;
        auto* at = reinterpret_cast<std::byte*>(out.data());
        for (const TensorInfo& tensor : tensors) {
            const bool is_vector = tensor.dims[1] == 1;
            places.push_back({&tensor, is_vector, at});
            const size_t n_groups = (tensor.dims[1] + kernels::kGroupRows - 1) / kernels::kGroupRows;
            at += is_vector ? tensor.dims[0] * sizeof(float)
                            : n_groups * kernels::packed_group_bytes(tensor.type, tensor.dims[0]);
        }
        Workers workers(3);
        load_tensors(WatchedSource(file, any_thread), places, workers, {});
        CHECK((out == expected));
    }
}

TEST_CASE("what goes on alongside is done once, and what it throws arrives at the caller") {
    const Matrix matrix(TensorType::kF32, 256, 9001);
    for (const bool any_thread : {true, false}) {
        const WatchedSource source(matrix.file, any_thread);
        std::atomic<int> n_done{0};
        CHECK((matrix.packed(source, 3, {{}, [&] { ++n_done; }}) == matrix.expected()));
        CHECK(n_done == 1);
        CHECK_THROWS_WITH(matrix.packed(source, 3, {{}, [] { throw Error(INLAY_E_FORMAT, "two tokens are one"); }}),
                          "two tokens are one");
    }
}

TEST_CASE("progress rises from nothing to all, on the thread that loads, and ends the loading when it says so") {
    const Matrix matrix(TensorType::kF32, 256, 20000);
    for (const bool any_thread : {true, false}) {
        const WatchedSource source(matrix.file, any_thread);
        const std::thread::id loader = std::this_thread::get_id();
        std::vector<uint64_t> seen;
        bool by_loader = true;
        const auto watch = [&](uint64_t done) {
            by_loader = by_loader && std::this_thread::get_id() == loader;
            seen.push_back(done);
            return true;
        };
        matrix.packed(source, 3, {watch, {}});
        CHECK(by_loader);
        CHECK(std::is_sorted(seen.begin(), seen.end()));
        CHECK(seen.front() == 0);
        CHECK(seen.back() == matrix.tensor.bytes);
        for (const size_t n : {size_t{0}, size_t{1}, seen.size() - 1}) {
            size_t calls = 0;
            CHECK_THROWS_AS(matrix.packed(source, 1, {[&](uint64_t) { return calls++ < n; }, {}}), Error);
            CHECK(calls == n + 1);
        }
    }
}
