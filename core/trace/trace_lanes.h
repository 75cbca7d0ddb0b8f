// The threads that a trace shows of each worker: its steps, then its connections and processors in
// the order in which a step uses them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/engine/program.h"

namespace stepcast {

class TraceLanes {
 public:
  // Lanes that run nothing are not shown.
  explicit TraceLanes(const Program& graph);

  struct Lane {
    int32_t thread_id = 0;  // its place in the order, too
    std::string name;
  };
  // In order, the steps first.
  const std::vector<Lane>& shown() const { return shown_; }
  int32_t StepsThread() const { return shown_.front().thread_id; }
  // REQUIRES: an operation of the graph runs on it.
  int32_t ThreadOf(LaneIndex lane) const { return thread_of_[static_cast<size_t>(lane)]; }

 private:
  std::vector<Lane> shown_;
  std::vector<int32_t> thread_of_;  // by LaneIndex
};

}  // namespace stepcast
