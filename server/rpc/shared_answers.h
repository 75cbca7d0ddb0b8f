// Answers of one server: each is computed once for all equal calls, those under way and, while the
// cache has room, those to come.
//
// Two calls are equal if their method, the content of their profiles and everything else in their
// requests are. What a time budget cut short is given to those who waited for it, and not kept.
// Threads: safe. Lifetime: borrows the environment; outlives its calls.
#pragma once

#include <google/protobuf/message_lite.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "server/base/bounded_cache.h"
#include "server/base/mutex.h"
#include "server/handlers/engine_run.h"
#include "server/handlers/expected_work.h"
#include "server/jobs/flights.h"
#include "server/rpc/call_environment.h"
#include "server/rpc/calls.h"

namespace stepcast::server {

// A cache of answers by the very bytes of their requests: a caller who asks the same again gets one
// without anything being parsed, looked up or queued.
//
// In front of SharedAnswers, which finds an answer by what the request means. An answer stands as
// long as names mean what they meant: it is kept with the generation of the store that was read
// before its profile was, and is no answer under any other (ProfileStore::Generation). Requests
// above kMaxRequestBytes are not kept. Cost: a hash of the request and a lock, about as much as a
// call's metadata. Threads: safe.
class RecentAnswers {
 public:
  static constexpr size_t kMaxRequestBytes = 4096;

  // `observer` is borrowed; may be null.
  RecentAnswers(size_t max_bytes, CacheObserver* observer) : answers_(max_bytes, observer) {}

  // Null where there is none for this generation. `key`: the method and the request's bytes.
  SharedReplyPointer Find(const std::string& key, uint64_t generation) {
    const auto found = answers_.Find(key);
    return found != nullptr && found->generation == generation ? found->reply : nullptr;
  }

  void Keep(const std::string& key, SharedReplyPointer reply, uint64_t generation) {
    const size_t bytes = reply->shared.Length();
    answers_.Keep(
        key,
        std::make_shared<const Answer>(Answer{.reply = std::move(reply), .generation = generation}),
        bytes);
  }

 private:
  struct Answer {
    SharedReplyPointer reply;
    uint64_t generation = 0;
  };

  BoundedCache<Answer> answers_;
};

// A reply that was computed, before it is shared.
struct ComputedReply {
  SharedReply reply;
  bool is_final = true;  // another computation would say the same
};

class SharedAnswers {
 public:
  using Compute = absl::AnyInvocable<absl::StatusOr<ComputedReply>(StopCheck) &&>;
  // A request as it came.
  struct Request {
    std::string_view method;  // a literal
    std::string key;          // of its bytes; empty: it is too large to be known by them
    uint64_t generation = 0;  // of the store, read before its profile was
  };
  // A question: the meaning of a request.
  struct Question {
    Request request;
    std::string key;  // of KeyOf; empty: equal to no other
    ExpectedWork work;
  };

  explicit SharedAnswers(const CallEnvironment& environment);

  // Key of a request whose profiles have been replaced by `content`, what they hold.
  static std::string KeyOf(std::string_view method, std::string_view content,
                           const google::protobuf::MessageLite& request);

  // The call's request, as AnswerAtOnce wants it.
  static Request RequestOf(const UnaryCall& call, std::string_view method, uint64_t generation);
  // Ends the call if the very same request was answered before, and true; else false, and the call
  // is as it was. Never waits.
  bool AnswerAtOnce(UnaryCall& call, const Request& request);
  // Ends the call, and true, where the pool for simulations would refuse even the least work that
  // was lately asked of the method: nothing of the request is read then. Not of a request that is
  // too large to be known by its bytes, which may have an answer, nor of one whose answer is under
  // way, nor of one in 32 of the others, so that smaller work becomes known. Never waits.
  bool RefuseAtOnce(UnaryCall& call, const Request& request);
  // Ends the call, now or later: with an answer there is, or with what `compute` gives on the pool
  // for simulations. The call is not to be touched afterwards.
  void Answer(UnaryCall& call, Question question, Compute compute);

 private:
  // The computation of a flight, which waits in the queue in the name of each client who asked: the
  // first turn that comes is taken. Threads: safe.
  class Plan {
   public:
    Plan(Question question, Compute compute)
        : question_(std::move(question)), compute_(std::move(compute)) {}

    const Question& question() const { return question_; }
    // REQUIRES: by whoever has begun.
    Compute TakeCompute() { return std::move(compute_); }

    // False: the client has a place already, or it has begun.
    bool AddPlace(const std::string& client);
    // True if it was the last place of a plan that has not begun: it will not be computed.
    bool LosePlace(const std::string& client);
    // True for one, whose turn it is.
    bool Begin();
    bool HasBegun() const;

   private:
    const Question question_;
    Compute compute_;
    mutable Mutex mutex_;
    std::set<std::string> places_ STEPCAST_GUARDED_BY(mutex_);
    bool has_begun_ STEPCAST_GUARDED_BY(mutex_) = false;
  };
  using Replies = Flights<SharedReplyPointer, Plan>;

  // Has the flight wait in the queue in the name of the ticket's client, too. Where there is no
  // room for it there, it is computed in another's turn, or lands with the refusal.
  void Enqueue(const std::shared_ptr<Replies::Flight>& flight, JobTicket ticket);
  void Run(Replies::Flight& flight);

  // The flights of requests, by their bytes: known without being read.
  class RequestsUnderWay {
   public:
    bool Has(const std::string& key) const;
    void Add(const std::string& key, std::weak_ptr<Replies::Flight> flight);

   private:
    mutable Mutex mutex_;
    std::unordered_map<std::string, std::weak_ptr<Replies::Flight>> flights_
        STEPCAST_GUARDED_BY(mutex_);
    size_t sweep_size_ STEPCAST_GUARDED_BY(mutex_) = 64;  // those that ended are dropped from here
  };
  // The least work that was lately asked of a method: falls at once, and rises slowly.
  class LeastWork {
   public:
    double Seconds(std::string_view method) const;
    void Observe(std::string_view method, double seconds);

   private:
    mutable Mutex mutex_;
    std::map<std::string_view, double> seconds_ STEPCAST_GUARDED_BY(mutex_);
  };

  const CallEnvironment& environment_;
  LeastWork least_;
  RequestsUnderWay under_way_;
  std::atomic<uint32_t> refusals_ = 0;
  RecentAnswers recent_;
  BoundedCache<SharedReply> kept_;
  Replies flights_;
};

}  // namespace stepcast::server
