// The links of racks to the spine, as collectives of several algorithms share them.
//
// Workers stand in racks in their order. In each direction a rack has one link, which the messages
// that leave it, or come into it, at the same time share equally. A message goes at the rate of its
// workers' link, or at its share of the fullest rack's link, whichever is less.
// Threads: immutable; share it freely.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/model/scenario.h"

namespace stepcast {

class RackLinks {
 public:
  // `members`: workers or nodes, which stand in racks of `per_rack`. 0: all are in one rack.
  RackLinks(int32_t members, int32_t per_rack, double bytes_per_second)
      : members_(members), per_rack_(per_rack), bytes_per_second_(bytes_per_second) {}
  // The racks of a scenario's workers. REQUIRES: it was resolved, and is of collectives.
  explicit RackLinks(const Scenario& scenario)
      : RackLinks(scenario.workers, scenario.all_reduce().workers_per_rack,
                  scenario.all_reduce().rack_bandwidth_bytes_per_second) {}

  bool are_several() const { return per_rack_ > 0 && members_ > per_rack_; }

  // Bytes per second of a message whose workers' links have `link`, 1 or more, in each pattern.

  // A ring: one message at a time leaves each rack.
  double OfRing(double link) const {
    return are_several() ? std::min(link, bytes_per_second_) : link;
  }
  // Pairs whose numbers differ by the bit `distance`, which all exchange at once. O(members).
  double OfPairs(double link, int32_t distance) const;
  // A double binary tree, each of which has half of the bytes: the two messages that an inner
  // member takes at once, as one. O(members). The trees are NCCL's (src/graph/trees.cc): the second
  // is the first one mirrored, or, with an odd number of members, shifted by one.
  double OfDoubleTree(double link) const;

 private:
  int32_t RackOf(int32_t member) const { return member / per_rack_; }

  int32_t members_;
  int32_t per_rack_;
  double bytes_per_second_;
};

}  // namespace stepcast
