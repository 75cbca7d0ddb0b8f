// The faults found so far in one input.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace stepcast {

// A bounded list of faults: it keeps the first kMaxKept and drops the rest, so that a hostile input
// of a million faults does not become gigabytes of text.
class FaultList {
 public:
  static constexpr size_t kMaxKept = 1000;

  void Add(std::string field, std::string description) {
    if (!full())
      faults_.push_back({.field = std::move(field), .description = std::move(description)});
  }
  bool empty() const { return faults_.empty(); }
  // Nothing is kept any more: what would only be dropped need not be looked for.
  bool full() const { return faults_.size() >= kMaxKept; }
  std::vector<Fault> Take() && { return std::move(faults_); }

 private:
  std::vector<Fault> faults_;
};

}  // namespace stepcast
