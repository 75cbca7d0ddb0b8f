// Links that flows share max-min fair.
//
// Meaning: a flow goes over all of its links at one rate, and rates are max-min fair (progressive
// filling). Bytes are floating point, and an end is rounded up to a tick. Usage: within an instant
// any number of Add and TakeEnded, then Share if changed(). Threads: none. Cost: links x flows a
// call of Share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace stepcast {

class FairLinks {
 public:
  // The flow's name among others of its kind.
  struct Name {
    int32_t index = 0;
    bool is_ring = false;
  };

  FairLinks(size_t links, double bytes_per_tick) : links_(links), bytes_per_tick_(bytes_per_tick) {}

  void Add(Name name, double bytes, std::vector<int32_t> links, int64_t now);
  // Flows that end by now, in the order in which they were added; they are no more.
  std::vector<Name> TakeEnded(int64_t now);
  bool changed() const { return changed_; }
  // Sets the rates from now on: the next end; none: there is no flow.
  std::optional<int64_t> Share(int64_t now);
  // Bytes that flows over the link have left.
  double LeftOn(int32_t link, int64_t now) const;

 private:
  struct Flow {
    Name name;
    double left = 0;
    double rate = 0;  // bytes a tick; 0: not yet
    int64_t since = 0;
    int64_t ends = 0;
    std::vector<int32_t> links;
    bool settled = false;
  };

  size_t links_;
  double bytes_per_tick_;
  std::vector<Flow> flows_;
  bool changed_ = false;
};

}  // namespace stepcast
