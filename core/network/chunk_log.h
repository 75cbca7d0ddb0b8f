// The chunks of a flow and when each of them ended.
//
// A link that serves a flow chunk by chunk is given their works when the flow starts, adds their
// ends in the order in which it serves them, and can be asked about them until the flow starts
// anew. Threads: none. Memory: 16 bytes for each chunk of the longest flow so far.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/time.h"

namespace stepcast {

class ChunkLog {
 public:
  // A new flow, without chunks so far.
  void Clear() {
    sums_.resize(1);
    ends_.clear();
  }
  // REQUIRES: work.ticks > 0.
  void Add(Span work) { sums_.push_back(sums_.back() + work.ticks); }
  // The end of the next chunk, which has come or is known.
  void AddEnd(Instant end) { ends_.push_back(end); }

  // Chunks without an end.
  size_t left() const { return sums_.size() - 1 - ends_.size(); }
  // The work, in ticks, of as many chunks without an end. REQUIRES: there are as many.
  int64_t WorkOfNext(size_t many) const { return sums_[ends_.size() + many] - sums_[ends_.size()]; }
  // Work of the chunks with an end.
  Span WorkOfServed() const { return {sums_[ends_.size()]}; }

  // A reader of the ends, in their order.
  class Reader {
   public:
    // REQUIRES: a chunk ends there, and has an end; work.ticks > 0.
    Instant After(Span work) {
      carried_ += work.ticks;
      const std::vector<int64_t>& sums = log_.sums_;
      // Mostly the next one.
      if (sums[++at_] < carried_) {
        const auto from = sums.begin() + static_cast<std::ptrdiff_t>(at_);
        at_ = static_cast<size_t>(std::lower_bound(from, sums.end(), carried_) - sums.begin());
      }
      return log_.ends_[at_ - 1];
    }

   private:
    friend class ChunkLog;
    explicit Reader(const ChunkLog& log) : log_(log) {}

    const ChunkLog& log_;
    size_t at_ = 0;
    int64_t carried_ = 0;
  };
  Reader Read() const { return Reader(*this); }

 private:
  std::vector<int64_t> sums_ = {0};  // of the chunks before; one more than there are chunks
  std::vector<Instant> ends_;
};

}  // namespace stepcast
