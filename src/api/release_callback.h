// A host's on_release: it says that something the host gave is not needed any more.
#pragma once

#include "inlay/inlay.h"

namespace inlay::api {

class ReleaseCallback {
public:
    // `callback` may be null.
    ReleaseCallback(inlay_release_callback callback, void* user) : callback_(callback), user_(user) {}
    ~ReleaseCallback() {
        if (is_owed_ && callback_) callback_(user_);
    }
    ReleaseCallback(const ReleaseCallback&) = delete;
    ReleaseCallback& operator=(const ReleaseCallback&) = delete;

    // The call that takes what was given has succeeded: from now on the host is owed the callback.
    void owe() { is_owed_ = true; }

private:
    inlay_release_callback callback_;
    void* user_;
    bool is_owed_ = false;
};

}  // namespace inlay::api
