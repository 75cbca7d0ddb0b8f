#include "server/rpc/shared_answers.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "server/convert/any_message.h"
#include "server/convert/sha256.h"
#include "server/handlers/expected_work.h"
#include "server/rpc/calls.h"

namespace stepcast::server {

namespace {

// One part in so many of the room for answers is for those known by their requests' bytes.
constexpr size_t kRecentPart = 4;
// The rise of the least work with each larger question: by 2 % of it.
constexpr double kRise = 1.02;
// One in so many requests that would be refused is read nevertheless.
constexpr uint32_t kReadOneIn = 32;

}  // namespace

bool SharedAnswers::RequestsUnderWay::Has(const std::string& key) const {
  MutexLock lock(mutex_);
  const auto found = flights_.find(key);
  return found != flights_.end() && !found->second.expired();
}

void SharedAnswers::RequestsUnderWay::Add(const std::string& key,
                                          std::weak_ptr<Replies::Flight> flight) {
  MutexLock lock(mutex_);
  if (flights_.size() >= sweep_size_) {
    std::erase_if(flights_, [](const auto& entry) { return entry.second.expired(); });
    sweep_size_ = 2 * flights_.size() + 64;
  }
  flights_.insert_or_assign(key, std::move(flight));
}

double SharedAnswers::LeastWork::Seconds(std::string_view method) const {
  MutexLock lock(mutex_);
  const auto found = seconds_.find(method);
  return found == seconds_.end() ? 0 : found->second;
}

void SharedAnswers::LeastWork::Observe(std::string_view method, double seconds) {
  MutexLock lock(mutex_);
  const auto [at, is_first] = seconds_.emplace(method, seconds);
  if (!is_first) at->second = std::min(seconds, at->second * kRise);
}

SharedAnswers::SharedAnswers(const CallEnvironment& environment)
    : environment_(environment),
      recent_(static_cast<size_t>(environment.max_answer_cache_bytes) / kRecentPart,
              environment.request_cache),
      kept_(
          static_cast<size_t>(environment.max_answer_cache_bytes) / kRecentPart * (kRecentPart - 1),
          environment.answer_cache) {}

std::string SharedAnswers::KeyOf(std::string_view method, std::string_view content,
                                 const google::protobuf::MessageLite& request) {
  if (content.empty()) return "";
  return Sha256Hex(std::string(method).append("\n").append(content).append("\n").append(
      DeterministicBytes(request)));
}

SharedAnswers::Request SharedAnswers::RequestOf(const UnaryCall& call, std::string_view method,
                                                uint64_t generation) {
  std::string key =
      call.BytesAfter(std::string(method).append("\n"), RecentAnswers::kMaxRequestBytes);
  return {.method = method, .key = std::move(key), .generation = generation};
}

bool SharedAnswers::AnswerAtOnce(UnaryCall& call, const Request& request) {
  if (request.key.empty() || !call.state().admitted().ok()) return false;
  const SharedReplyPointer reply = recent_.Find(request.key, request.generation);
  if (reply == nullptr) return false;
  environment_.sharing.OnShared(request.method, SharedFrom::kCache);
  call.Reply(reply->shared);
  return true;
}

bool SharedAnswers::RefuseAtOnce(UnaryCall& call, const Request& request) {
  if (request.key.empty() || !call.state().admitted().ok() || under_way_.Has(request.key))
    return false;
  JobTicket ticket = call.state().Ticket({.method = std::string(request.method)});
  ticket.expected_seconds = least_.Seconds(request.method);
  ticket.is_least = true;
  const absl::Status refusal = environment_.simulation_jobs.Refusal(ticket);
  // A deadline that the work alone does not meet is told with what was asked, once that is read.
  if (refusal.ok() || absl::IsDeadlineExceeded(refusal)) return false;
  if (refusals_.fetch_add(1, std::memory_order_relaxed) % kReadOneIn == 0) return false;
  call.Fail(refusal);
  return true;
}

bool SharedAnswers::Plan::AddPlace(const std::string& client) {
  MutexLock lock(mutex_);
  return !has_begun_ && places_.insert(client).second;
}

bool SharedAnswers::Plan::LosePlace(const std::string& client) {
  MutexLock lock(mutex_);
  places_.erase(client);
  return !has_begun_ && places_.empty();
}

bool SharedAnswers::Plan::Begin() {
  MutexLock lock(mutex_);
  return !std::exchange(has_begun_, true);
}

bool SharedAnswers::Plan::HasBegun() const {
  MutexLock lock(mutex_);
  return has_begun_;
}

void SharedAnswers::Answer(UnaryCall& call, Question question, Compute compute) {
  const bool is_shared = !question.key.empty();
  // No other call has this one's address while it lasts.
  const std::string key =
      is_shared ? question.key : absl::StrCat(reinterpret_cast<uintptr_t>(&call));
  JobTicket ticket = call.state().Ticket(question.work);
  const auto plan = std::make_shared<Plan>(std::move(question), std::move(compute));
  const Request& request = plan->question().request;
  const Replies::Boarding boarding = flights_.Board(key, call, plan);
  if (!boarding.is_first) {
    environment_.sharing.OnShared(request.method, SharedFrom::kFlight);
    return Enqueue(boarding.flight, std::move(ticket));
  }
  // Looked for only by who has boarded: an answer is kept before its flight ends, so it cannot be
  // missed in between.
  if (is_shared) {
    if (SharedReplyPointer kept = kept_.Find(key)) {
      environment_.sharing.OnShared(request.method, SharedFrom::kCache);
      if (!request.key.empty()) recent_.Keep(request.key, kept, request.generation);
      plan->Begin();
      return boarding.flight->Land(std::move(kept));
    }
  }
  if (!request.key.empty()) under_way_.Add(request.key, boarding.flight);
  least_.Observe(request.method, ticket.expected_seconds);
  Enqueue(boarding.flight, std::move(ticket));
}

void SharedAnswers::Enqueue(const std::shared_ptr<Replies::Flight>& flight, JobTicket ticket) {
  if (!flight->plan().AddPlace(ticket.client)) return;
  const std::string client = ticket.client;
  auto job = [this, flight, client](const absl::Status& taken) {
    if (!taken.ok()) {
      if (flight->plan().LosePlace(client)) flight->Land(taken);
    } else if (flight->plan().Begin()) {
      Run(*flight);
    }
  };
  const absl::Status submitted =
      environment_.simulation_jobs.Submit(std::move(ticket), std::move(job), [flight] {
        const auto explain = [&](const absl::Status& gone) {
          return SayWhatWasAsked(gone, flight->plan().question().work, Remedy::kStartAJob);
        };
        return flight->plan().HasBegun() || !flight->Check(explain).ok();
      });
  if (!submitted.ok() && flight->plan().LosePlace(client)) {
    flight->Land(SayWhatWasAsked(submitted, flight->plan().question().work, Remedy::kStartAJob));
  }
}

void SharedAnswers::Run(Replies::Flight& flight) {
  const Question& question = flight.plan().question();
  const ExpectedWork& work = question.work;
  const JobLimit limit(environment_);
  WorkProgress progress(work, environment_.clock, Remedy::kStartAJob);
  const auto stop = [&] {
    progress.Count();
    absl::Status status = limit.Check();
    return status.ok()
               ? flight.Check([&](const absl::Status& gone) { return progress.Explain(gone); })
               : status;
  };
  if (const absl::Status status = stop(); !status.ok()) return flight.Land(status);
  const int64_t start_ns = environment_.clock.MonotonicNs();
  absl::StatusOr<ComputedReply> computed = flight.plan().TakeCompute()(stop);
  if (!computed.ok()) return flight.Land(progress.Explain(computed.status()));
  if (computed->is_final) {
    environment_.costs.Observe(
        {.group = work.method, .kind = work.profile, .size = work.operations},
        static_cast<double>(environment_.clock.MonotonicNs() - start_ns) * 1e-9);
    if (!question.key.empty()) {
      const grpc::ByteBuffer& shared = computed->reply.shared;
      const auto kept =
          std::make_shared<const SharedReply>(SharedReply{.computed = shared, .shared = shared});
      kept_.Keep(question.key, kept, shared.Length());
      if (!question.request.key.empty())
        recent_.Keep(question.request.key, kept, question.request.generation);
    }
  }
  flight.Land(std::make_shared<const SharedReply>(std::move(computed->reply)));
}

}  // namespace stepcast::server
