#include "engine/joint_step.h"

#include <cstddef>
#include <vector>

namespace inlay {
namespace {

class JointStep {
public:
    JointStep(std::span<Session* const> sessions, std::span<NextResult> results)
        : sessions_(sessions), results_(results), begun_(sessions.size()) {
        requests_.reserve(sessions.size());
        members_.reserve(sessions.size());
    }

    void run() {
        for (size_t i = 0; i < sessions_.size(); ++i)
            if (sessions_[i] && !begun_[i]) run_engine_of(i);
    }

private:
    static constexpr size_t kNoRequest = SIZE_MAX;
    struct Member {
        size_t session;
        size_t request;
    };

    void run_engine_of(size_t first) {
        Scheduler& scheduler = sessions_[first]->engine().scheduler();
        members_.clear();
        requests_.clear();
        for (size_t i = first; i < sessions_.size(); ++i)
            if (sessions_[i] && &sessions_[i]->engine().scheduler() == &scheduler) begin(i);
        compute(scheduler);
        for (const Member& member : members_) end(member);
    }

    void begin(size_t i) {
        begun_[i] = true;
        StepRequest request;
        try {
            const bool wants_step = sessions_[i]->begin_next(request);
            members_.push_back({i, wants_step ? requests_.size() : kNoRequest});
            if (wants_step) requests_.push_back(request);
        } catch (...) {
            results_[i].failure = std::current_exception();
        }
    }

    void compute(Scheduler& scheduler) {
        try {
            scheduler.run(requests_);
        } catch (...) {
            for (const Member& member : members_)
                if (member.request != kNoRequest) results_[member.session].failure = std::current_exception();
        }
    }

    void end(const Member& member) {
        NextResult& result = results_[member.session];
        if (result.failure) return;
        const StepRequest none;
        const StepRequest& request = member.request == kNoRequest ? none : requests_[member.request];
        try {
            result.outcome = sessions_[member.session]->end_next(request, result.chunk);
        } catch (...) {
            result.failure = std::current_exception();
        }
    }

    std::span<Session* const> sessions_;
    std::span<NextResult> results_;
    std::vector<char> begun_;
    std::vector<Member> members_;        // of one engine
    std::vector<StepRequest> requests_;  // of those members that need a step
};

}  // namespace

void step_together(std::span<Session* const> sessions, std::span<NextResult> results) {
    JointStep(sessions, results).run();
}

}  // namespace inlay
