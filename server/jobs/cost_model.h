// A cost model: the time that work takes, learned from work that was done as an exponential moving
// average.
//
// Work has a size, in any unit, and a kind.
// What is learned is the time of a unit: of each kind, and of each group of kinds for those not yet
// seen.
// A new observation counts a quarter, so a few are enough to follow a machine that has become
// slower.
// Remembers the latest kMaxKinds kinds.
// Threads: safe.
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <unordered_map>
#include <utility>

#include "server/base/mutex.h"

namespace stepcast::server {

class CostModel {
 public:
  static constexpr size_t kMaxKinds = 1024;
  static constexpr double kWeight = 0.25;  // of a new observation

  struct Work {
    std::string group;
    std::string kind;
    double size = 0;  // REQUIRES: finite, not negative
  };

  // 0: neither the kind nor its group has been seen.
  double ExpectedSeconds(const Work& work) const;
  // Of a size of 0 nothing is learned.
  void Observe(const Work& work, double seconds);

 private:
  using Unit = std::pair<std::string, double>;  // key and seconds
  using Units = std::list<Unit>;

  static std::string KeyOf(const Work& work) { return work.group + "\n" + work.kind; }
  void Learn(const std::string& key, double unit_seconds) STEPCAST_REQUIRES(mutex_);

  mutable Mutex mutex_;
  Units units_ STEPCAST_GUARDED_BY(mutex_);  // the one learned last first
  std::unordered_map<std::string, Units::iterator> by_key_ STEPCAST_GUARDED_BY(mutex_);
};

}  // namespace stepcast::server
