// An upper bound of a throughput curve between and beyond the numbers of workers that are known.
//
// The shape is that of an honest saturation: each worker more adds no more than the one before.
// Curves are not always so (they may fall, waver with the way workers keep in step, and rise
// again), so where a number turns out higher than this shape allowed, that much is allowed
// everywhere else, too.
// Threads: none.
// Cost: O(log n) of the numbers known.
#pragma once

#include <cstdint>
#include <map>

namespace stepcast {

class CurveCeiling {
 public:
  // A known number of workers and its throughput, in any unit: as high as it may be by its
  // interval.
  void Know(int32_t workers, double highest) { known_[workers] = highest; }

  // Of a number of workers that is not known, by the others alone; infinity where none is known.
  double At(int32_t workers) const;
  // The share by which a number that was just found is above what the others allowed; 0 where it is
  // not.
  double ExcessOf(int32_t workers, double found) const;

 private:
  std::map<int32_t, double> known_;
};

}  // namespace stepcast
