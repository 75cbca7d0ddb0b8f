// A client for places that must not wait: a scheduler's submit path, an admission webhook.
//
//   Adviser adviser({.server = "predictor:50051"});
//   absl::StatusOr<Advice> advice = adviser.Advise(question);  // at most 20 ms
//
// The calls are made on threads of the Adviser's own. A question that takes longer than `wait` to
// answer is DEADLINE_EXCEEDED, but goes on: asked again, it is answered from memory. Equal
// questions under way at the same time are one.
//
// A server that is away costs little: after `failures` calls in a row that failed for other reasons
// than their question, no call is made for `open_for`, and questions are UNAVAILABLE at once; then
// one call tries, and closes the breaker or opens it for as long again. After `failures` waits in a
// row that ended without any answer of the server, questions do not wait until there is one.
//
// Thread safety: any number of threads may call the same object at once; no lock is held over input
// or output. Constructing makes no call and no thread. Destruction cancels what is under way and
// takes no longer than that, whatever the server does. Nothing is thrown.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"

#include "stepcast/advice.h"
#include "stepcast/client_options.h"

namespace stepcast::client {

class Connection;

struct AdviserOptions {
  std::chrono::nanoseconds wait = std::chrono::milliseconds(20);  // of a caller, at most
  // Time of one call. A simulation that takes longer is given up, and counts as a failure.
  std::chrono::nanoseconds call_timeout = std::chrono::seconds(30);
  int failures = 3;  // at least 1
  std::chrono::nanoseconds open_for = std::chrono::seconds(30);
  // An answer stands for so long; one of low confidence at most 30 s, that the question itself is
  // wrong at most 5 s.
  std::chrono::nanoseconds keep = std::chrono::minutes(5);
  size_t max_questions = 1000;  // remembered; those used longest ago go first
  size_t max_waiting = 64;      // for a call; more are RESOURCE_EXHAUSTED
  int threads = 2;              // calls at once; at least 1
};

// The questions so far, by what became of them.
struct AdviserCounters {
  int64_t questions = 0;
  int64_t from_memory = 0;   // answered without a call of their own
  int64_t too_late = 0;      // DEADLINE_EXCEEDED
  int64_t breaker_open = 0;  // UNAVAILABLE because of the breaker
  int64_t calls = 0;         // questions put to the server
  int64_t failed_calls = 0;  // of them, those that count for the breaker
  bool is_open = false;      // the breaker, now
};

class Adviser {
 public:
  using Time = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;
  using Clock = std::function<Time()>;

  // `client`'s timeout and retry are not used.
  explicit Adviser(const ClientOptions& client, const AdviserOptions& options = {});
  // On another connection, with another clock for the breaker and for how long answers stand. For
  // tests.
  Adviser(std::shared_ptr<Connection> connection, const AdviserOptions& options, Clock clock);
  Adviser(const Adviser&) = delete;
  Adviser& operator=(const Adviser&) = delete;
  ~Adviser();

  // The answer, or why there is none: INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED and
  // FAILED_PRECONDITION are about the question; DEADLINE_EXCEEDED, there is none yet; UNAVAILABLE,
  // the server is away or was lately; RESOURCE_EXHAUSTED, too many questions wait; what else the
  // service says.
  absl::StatusOr<Advice> Advise(const AdviceQuestion& question) noexcept;

  AdviserCounters counters() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepcast::client
