#include "core/network/message_link.h"

#include <algorithm>

namespace stepcast {

namespace {

// Adds what one half of a ring takes. From the first message to the last, each waits for the one
// before it in the slower of link and addition, or each second one for a whole message.
void AddHalf(int32_t messages, const RingMessages& ring, bool adds, RingMessages::Path& path) {
  if (messages == 0) return;
  const Span addition = adds ? ring.addition : Span{};
  const bool link_is_slower = ring.transmission >= addition;
  const Span slower = link_is_slower ? ring.transmission : addition;
  const Span faster = link_is_slower ? addition : ring.transmission;
  const int64_t whole = ring.latency > slower - faster ? (messages - 1) / 2 : 0;
  const int64_t single = messages - 1 - 2 * whole;
  path.transmissions += 1 + whole + (link_is_slower ? single : 0);
  path.latencies += 1 + whole;
  if (adds) path.additions += 1 + whole + (link_is_slower ? 0 : single);
}

}  // namespace

RingMessages::Path RingMessages::AlonePath() const {
  Path path;
  AddHalf(reducing, *this, /*adds=*/true, path);
  AddHalf(gathering, *this, /*adds=*/false, path);
  return path;
}

Span RingMessages::AloneTime() const {
  const Path path = AlonePath();
  const auto ticks = [](int64_t count, Span span) {
    return static_cast<double>(count) * static_cast<double>(span.ticks);
  };
  if (ticks(path.transmissions, transmission) + ticks(path.latencies, latency) +
          ticks(path.additions, addition) >=
      static_cast<double>(kEndOfTime.ticks))
    return kEndOfTime - Instant{};
  return {path.transmissions * transmission.ticks + path.latencies * latency.ticks +
          path.additions * addition.ticks};
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
  // Messages that are issued until then may end no later.
  while (ahead.SendOne(ahead.FirstEnd())) {
  }
  next_end_ = ahead.FirstEnd();
}

}  // namespace stepcast
