#include "core/network/message_link.h"

#include <algorithm>

namespace stepcast {

Span RingMessages::AloneTime() const {
  MessageLink link;
  link.Begin(0, Instant{}, *this);
  return link.NextEnd() - Instant{};
}

bool MessageLink::State::SendOne(Instant until) {
  Ring* next = nullptr;
  for (Ring& ring : rings) {
    if (ring.end == kEndOfTime && (next == nullptr || ring.issue < next->issue)) next = &ring;
  }
  if (next == nullptr || next->issue >= until) return false;
  const RingMessages& messages = next->messages;
  free = std::max(free, next->issue) + messages.transmission;
  Instant done = free + messages.latency;
  ++next->sent;
  if (next->sent <= messages.reducing) {
    done = std::max(done, next->added) + messages.addition;
    next->added = done;
  }
  if (next->sent == messages.reducing + messages.gathering) {
    next->end = done;
  } else if (next->sent == messages.reducing) {
    // The gathering begins when the last addition has ended, with two messages at once.
    next->issue = done;
    next->next_issue = done;
  } else {
    next->issue = next->next_issue;
    next->next_issue = done;
  }
  return true;
}

Instant MessageLink::State::FirstEnd() const {
  Instant first = kEndOfTime;
  for (const Ring& ring : rings) first = std::min(first, ring.end);
  return first;
}

void MessageLink::Begin(int32_t slot, Instant at, const RingMessages& messages) {
  while (state_.SendOne(at)) {
  }
  Ring ring{.slot = slot, .messages = messages, .issue = at, .next_issue = at, .added = at};
  if (messages.reducing + messages.gathering == 0) ring.end = at;
  if (state_.rings.empty()) state_.free = at;
  state_.rings.push_back(ring);
  LookAhead();
}

void MessageLink::TakeEnded(Instant now, std::vector<int32_t>& slots) {
  while (state_.SendOne(now)) {
  }
  std::erase_if(state_.rings, [&](const Ring& ring) {
    if (ring.end != now) return false;
    slots.push_back(ring.slot);
    return true;
  });
  LookAhead();
}

void MessageLink::LookAhead() {
  State ahead = state_;
  while (ahead.FirstEnd() == kEndOfTime && ahead.SendOne(kEndOfTime)) {
  }
  // What is issued until then may end no later.
  while (ahead.SendOne(ahead.FirstEnd())) {
  }
  next_end_ = ahead.FirstEnd();
}

}  // namespace stepcast
