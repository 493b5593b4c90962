#include "backend/cpu/matrix_loader.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "kernels/packed_matrix.h"

namespace inlay {
namespace {

constexpr size_t kTaskBytes = size_t{1} << 18;     // of the file, that one task reads and packs
constexpr size_t kStretchBytes = size_t{4} << 20;  // that one thread reads for all to pack

// Keeps the first exception of the workers for the thread that started them.
class FirstFailure {
public:
    template <typename Work>
    void guard(const Work& work) noexcept {
        if (failed_.load(std::memory_order_relaxed)) return;
        try {
            work();
        } catch (...) {
            const std::lock_guard lock(mutex_);
            if (!failure_) failure_ = std::current_exception();
            failed_.store(true, std::memory_order_relaxed);
        }
    }
    void rethrow() const {
        if (failure_) std::rethrow_exception(failure_);
    }

private:
    std::atomic<bool> failed_{false};
    std::mutex mutex_;
    std::exception_ptr failure_;
};

// Its groups of rows are cut into tasks for the workers.
class MatrixLoader {
public:
    MatrixLoader(const ByteSource& source, const TensorInfo& tensor, Workers& workers,
                 std::span<std::vector<std::byte>> staging, std::byte* out)
        : source_(source),
          tensor_(tensor),
          workers_(workers),
          staging_(staging),
          out_(out),
          n_rows_(tensor.dims[1]),
          row_bytes_(row_size(tensor.type, tensor.dims[0])),
          group_bytes_(kernels::packed_group_bytes(tensor.type, tensor.dims[0])) {}

    void load() const {
        if (const std::byte* rows = source_.view(tensor_.offset, tensor_.bytes))
            pack_rows(rows, 0, n_rows_);
        else if (source_.serves_any_thread())
            read_in_tasks();
        else
            read_in_stretches();
    }

private:
    // Calls work(first row, end row, thread) for rows [first_row, end_row) in tasks of whole groups.
    template <typename Work>
    void for_rows(size_t first_row, size_t end_row, const Work& work) const {
        const size_t n_groups = (end_row - first_row + kernels::kGroupRows - 1) / kernels::kGroupRows;
        const size_t groups_per_task =
            std::max(groups_in(kTaskBytes), (n_groups + Workers::kMaxTasks - 1) / Workers::kMaxTasks);
        FirstFailure failure;
        workers_.run((n_groups + groups_per_task - 1) / groups_per_task, [&](size_t task, unsigned thread) {
            const size_t first = first_row + task * groups_per_task * kernels::kGroupRows;
            const size_t end = std::min(end_row, first + groups_per_task * kernels::kGroupRows);
            failure.guard([&] { work(first, end, thread); });
        });
        failure.rethrow();
    }

    void read_in_tasks() const {
        for_rows(0, n_rows_, [&](size_t first, size_t end, unsigned thread) {
            pack_groups(read_rows(first, end, staging_[thread]), first, end);
        });
    }

    // The calling thread reads, all pack.
    void read_in_stretches() const {
        const size_t stretch_rows = groups_in(kStretchBytes) * kernels::kGroupRows;
        for (size_t first = 0; first < n_rows_; first += stretch_rows) {
            const size_t end = std::min(n_rows_, first + stretch_rows);
            pack_rows(read_rows(first, end, staging_[0]), first, end);
        }
    }

    void pack_rows(const std::byte* rows, size_t first_row, size_t end_row) const {
        for_rows(first_row, end_row, [&](size_t first, size_t end, unsigned) {
            pack_groups(rows + (first - first_row) * row_bytes_, first, end);
        });
    }

    // In the calling thread; `first` begins a group.
    void pack_groups(const std::byte* rows, size_t first, size_t end) const {
        for (size_t row = first; row < end; row += kernels::kGroupRows)
            kernels::pack_group(tensor_.type, rows + (row - first) * row_bytes_,
                                std::min(kernels::kGroupRows, end - row), tensor_.dims[0],
                                out_ + row / kernels::kGroupRows * group_bytes_);
    }

    const std::byte* read_rows(size_t first, size_t end, std::vector<std::byte>& buffer) const {
        buffer.resize((end - first) * row_bytes_);
        source_.read_at(tensor_.offset + first * row_bytes_, buffer.data(), buffer.size());
        return buffer.data();
    }

    // Groups whose rows take about so many bytes of the file.
    size_t groups_in(size_t bytes) const { return std::max(size_t{1}, bytes / (row_bytes_ * kernels::kGroupRows)); }

    const ByteSource& source_;
    const TensorInfo& tensor_;
    Workers& workers_;
    std::span<std::vector<std::byte>> staging_;
    std::byte* out_;
    size_t n_rows_;
    size_t row_bytes_;
    size_t group_bytes_;
};

}  // namespace

void load_matrix(const ByteSource& source, const TensorInfo& tensor, Workers& workers,
                 std::span<std::vector<std::byte>> staging, std::byte* out) {
    MatrixLoader(source, tensor, workers, staging, out).load();
}

}  // namespace inlay
