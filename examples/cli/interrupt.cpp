#include "interrupt.h"

#include <atomic>
#include <csignal>

namespace cli {
namespace {

std::atomic<const inlay::Canceller*> watched{nullptr};
std::atomic<bool> interrupted{false};
static_assert(std::atomic<const inlay::Canceller*>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

extern "C" void on_interrupt(int) {
    interrupted = true;
    if (const inlay::Canceller* canceller = watched) canceller->cancel();
}

}  // namespace

Interrupt::Interrupt() {
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    sigaction(SIGINT, &action, nullptr);
}

Interrupt::~Interrupt() {
    std::signal(SIGINT, SIG_DFL);
    watched = nullptr;
}

void Interrupt::watch(const inlay::Session& session) {
    watched = nullptr;
    canceller_ = session.canceller();
    watched = &*canceller_;
    if (interrupted) session.cancel();
}

bool Interrupt::requested() const {
    return interrupted;
}

void Interrupt::check(const char* sentence) const {
    if (interrupted) throw inlay::Error(INLAY_E_CANCELLED, sentence);
}

}  // namespace cli
