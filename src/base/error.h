// The one exception of the library: a status of the public contract and a sentence for the person who reads it.
// It never leaves the library; src/api translates it (and std::bad_alloc) at the C boundary.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "inlay/inlay.h"

namespace inlay {

class Error : public std::exception {
public:
    Error(int32_t status, std::string sentence) : status_(status), sentence_(std::move(sentence)) {}

    int32_t status() const { return status_; }
    const std::string& sentence() const { return sentence_; }
    const char* what() const noexcept override { return sentence_.c_str(); }

private:
    int32_t status_;
    std::string sentence_;
};

}  // namespace inlay
