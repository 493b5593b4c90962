#include "backend/cpu/weight_loader.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "kernels/packed_matrix.h"
#include "kernels/reference/dequantize.h"

namespace inlay {
namespace {

// Of memory that one task fills: a large page, so that no two threads wait for the same one to be had and cleared.
constexpr size_t kTaskBytes = size_t{2} << 20;
constexpr size_t kReadBytes = size_t{1} << 18;     // of the file, so that they are packed while they are near
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

// What is written at a time: 16 rows of a matrix, or a whole vector.
struct Groups {
    const TensorPlace* place;
    size_t n_groups;
    size_t group_bytes;   // of memory
    size_t source_bytes;  // of the file, the last group may have fewer

    explicit Groups(const TensorPlace& of) : place(&of), n_groups(1) {
        const TensorInfo& tensor = *of.tensor;
        if (of.is_vector) {
            group_bytes = tensor.dims[0] * sizeof(float);
            source_bytes = tensor.bytes;
            return;
        }
        n_groups = (tensor.dims[1] + kernels::kGroupRows - 1) / kernels::kGroupRows;
        group_bytes = kernels::packed_group_bytes(tensor.type, tensor.dims[0]);
        source_bytes = row_size(tensor.type, tensor.dims[0]) * kernels::kGroupRows;
    }

    // The first group that begins `bytes` or more behind the place's begin.
    size_t first_from(size_t bytes) const { return std::min(n_groups, (bytes + group_bytes - 1) / group_bytes); }
    // Bytes of the file in groups [first, end).
    size_t source_bytes_of(size_t first, size_t end) const {
        return std::min(end * source_bytes, static_cast<size_t>(place->tensor->bytes)) - first * source_bytes;
    }
    // How many groups have about so many bytes of the file.
    size_t groups_in(size_t bytes) const { return std::max(size_t{1}, bytes / source_bytes); }
};

void pack(const Groups& groups, size_t first, size_t end, const std::byte* source) {
    const TensorInfo& tensor = *groups.place->tensor;
    std::byte* out = groups.place->out + first * groups.group_bytes;
    if (groups.place->is_vector) {
        dequantize(tensor.type, source, tensor.dims[0], reinterpret_cast<float*>(out));
        return;
    }
    const size_t end_row = std::min<size_t>(tensor.dims[1], end * kernels::kGroupRows);
    kernels::pack_groups(tensor.type, source, end_row - first * kernels::kGroupRows, tensor.dims[0], out);
}

class WeightLoader {
public:
    WeightLoader(const ByteSource& source, std::span<const TensorPlace> places, Workers& workers,
                 const Backend::Loading& loading, uint64_t n_bytes_done)
        : source_(source), places_(places), workers_(workers), loading_(loading), done_(n_bytes_done) {}

    void load() {
        report();
        if (source_.serves_any_thread())
            load_in_tasks();
        else
            load_in_stretches();
        report();
    }

private:
    // By the calling thread only.
    void report() const {
        if (loading_.progress && !loading_.progress(done_.load(std::memory_order_relaxed)))
            throw Error(INLAY_E_CANCELLED, "opening was cancelled by the progress callback");
    }

    // Task 0 is what goes on alongside, so that it is not the last to end.
    void load_in_tasks() {
        if (places_.empty()) return do_alongside();
        const std::byte* begin = places_.front().out;
        const size_t n_bytes = static_cast<size_t>(places_.back().out - begin) +
                               Groups(places_.back()).group_bytes * Groups(places_.back()).n_groups;
        const size_t task_bytes = std::max(kTaskBytes, n_bytes / (Workers::kMaxTasks / 2));
        std::vector<std::vector<std::byte>> staging(workers_.n_threads());
        FirstFailure failure;
        workers_.run(1 + (n_bytes + task_bytes - 1) / task_bytes, [&](size_t task, unsigned thread) {
            failure.guard([&] {
                if (thread == 0) report();
                if (task == 0) return do_alongside();
                load_range(begin + (task - 1) * task_bytes, task_bytes, staging[thread]);
            });
        });
        failure.rethrow();
    }

    // All groups that begin in these bytes of memory.
    void load_range(const std::byte* begin, size_t n_bytes, std::vector<std::byte>& staging) {
        const auto behind = std::upper_bound(places_.begin(), places_.end(), begin,
                                             [](const std::byte* at, const TensorPlace& p) { return at < p.out; });
        const std::byte* end = begin + n_bytes;
        for (auto place = behind == places_.begin() ? behind : behind - 1; place != places_.end() && place->out < end;
             ++place) {
            const Groups groups(*place);
            const size_t from = place->out < begin ? static_cast<size_t>(begin - place->out) : 0;
            load_groups(groups, groups.first_from(from), groups.first_from(static_cast<size_t>(end - place->out)),
                        staging);
        }
    }

    void load_groups(const Groups& groups, size_t first, size_t end, std::vector<std::byte>& staging) {
        const size_t step = groups.groups_in(kReadBytes);
        for (; first < end; first += std::min(step, end - first)) {
            const size_t next = std::min(end, first + step);
            pack(groups, first, next, bytes_of(groups, first, next, staging));
            done_.fetch_add(groups.source_bytes_of(first, next), std::memory_order_relaxed);
        }
    }

    // The calling thread reads, all pack.
    void load_in_stretches() {
        do_alongside();
        std::vector<std::byte> staging;
        for (const TensorPlace& place : places_) {
            const Groups groups(place);
            const size_t stretch = groups.groups_in(kStretchBytes);
            const size_t grain = groups.groups_in(kReadBytes);
            for (size_t first = 0; first < groups.n_groups; first += stretch) {
                const size_t end = std::min(groups.n_groups, first + stretch);
                const std::byte* bytes = bytes_of(groups, first, end, staging);
                workers_.run_ranges(end - first, grain, [&](size_t from, size_t to) {
                    pack(groups, first + from, first + to, bytes + from * groups.source_bytes);
                });
                done_.fetch_add(groups.source_bytes_of(first, end), std::memory_order_relaxed);
                report();
            }
        }
    }

    // Where they lie in memory, or read into `staging`.
    const std::byte* bytes_of(const Groups& groups, size_t first, size_t end, std::vector<std::byte>& staging) const {
        const uint64_t offset = groups.place->tensor->offset + first * groups.source_bytes;
        const size_t n = groups.source_bytes_of(first, end);
        if (const std::byte* bytes = source_.view(offset, n)) return bytes;
        staging.resize(n);
        source_.read_at(offset, staging.data(), n);
        return staging.data();
    }

    void do_alongside() const {
        if (loading_.alongside) loading_.alongside();
    }

    const ByteSource& source_;
    std::span<const TensorPlace> places_;
    Workers& workers_;
    const Backend::Loading& loading_;
    std::atomic<uint64_t> done_;  // bytes of the file
};

}  // namespace

void load_tensors(const ByteSource& source, std::span<const TensorPlace> places, Workers& workers,
                  const Backend::Loading& loading, uint64_t n_bytes_done) {
    WeightLoader(source, places, workers, loading, n_bytes_done).load();
}

}  // namespace inlay
