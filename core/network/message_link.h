// A link that carries the messages of several rings at once, first come first served.
//
// All workers of a ring do the same at the same time, so one worker's link stands for all of them.
// A message is issued when the one two before it in its ring has arrived and been added: two are
// under way. Messages of one instant go in the order in which their rings began.
// Source: gloo's ring (facebookincubator/gloo, gloo/allreduce.cc), as measured on
// a testbed: tests/testbed/README.md.
// Threads: none. Cost: O(rings under way) a message, and again for those that were looked at ahead
// of time when another ring begins; of a ring alone, no more than of one message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/time.h"

namespace stepcast {

// The messages of one ring: `reducing` of them, each added by its receiver, and when the last has
// been added `gathering` more.
struct RingMessages {
  int32_t reducing = 0;
  int32_t gathering = 0;
  Span transmission;  // of one message, by the link alone
  Span latency;       // from the end of a transmission to the message's arrival
  Span addition;      // of one message that has arrived; one after the other

  // The parts of a ring's time that has the link to itself, one after the other.
  struct Path {
    int64_t transmissions = 0;
    int64_t latencies = 0;
    int64_t additions = 0;
  };
  Path AlonePath() const;
  // The time of that path, kEndOfTime at most.
  Span AloneTime() const;

  friend bool operator==(const RingMessages&, const RingMessages&) = default;
};

class MessageLink {
 public:
  // A ring begins at `at`, which is not before any instant given before. REQUIRES: the slot has no
  // ring under way.
  void Begin(int32_t slot, Instant at, const RingMessages& messages);
  // The earliest end of a ring under way, if no other begins before it; kEndOfTime without one.
  Instant NextEnd() const { return next_end_; }
  // Appends the slots of the rings that end at `now`, in the order in which they began. REQUIRES:
  // now <= NextEnd().
  void TakeEnded(Instant now, std::vector<int32_t>& slots);

 private:
  struct Ring {
    int32_t slot = 0;
    RingMessages messages;
    int32_t sent = 0;          // messages so far
    Instant issue;             // of the next one
    Instant next_issue;        // of the one after it
    Instant added;             // the last addition's end
    Instant end = kEndOfTime;  // once all are sent
  };
  struct State {
    std::vector<Ring> rings;  // in the order in which they began
    Instant free;             // when the link has sent what it has taken

    // Sends the next message in line, if it is issued before `until`; false: there is none.
    bool SendOne(Instant until);
    Instant FirstEnd() const;
  };

  void LookAhead();

  State state_;  // with all that was issued before the last instant given
  Instant next_end_ = kEndOfTime;
};

}  // namespace stepcast
