// A matrix is packed to the same bytes however its source gives it, and a source that serves one thread is asked by it.
#include "backend/cpu/matrix_loader.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <thread>

#include "base/error.h"
#include "kernels/packed_matrix.h"

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

    std::string packed(const ByteSource& source, unsigned n_threads) const {
        Workers workers(n_threads);
        std::vector<std::vector<std::byte>> staging(n_threads);
        const size_t n_groups = (tensor.dims[1] + kernels::kGroupRows - 1) / kernels::kGroupRows;
        std::string out(n_groups * kernels::packed_group_bytes(tensor.type, tensor.dims[0]), '?');
        load_matrix(source, tensor, workers, staging, reinterpret_cast<std::byte*>(out.data()));
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
