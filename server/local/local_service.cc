#include "server/local/local_service.h"

#include <google/protobuf/empty.pb.h>

#include <algorithm>
#include <cassert>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/importing/common/byte_source.h"
#include "core/importing/common/recording_import.h"
#include "core/model/profile.h"
#include "server/base/clock.h"
#include "server/convert/profile_convert.h"
#include "server/handlers/expected_work.h"
#include "server/handlers/prediction_handler.h"
#include "server/handlers/profile_handler.h"
#include "server/jobs/job_pool.h"
#include "server/jobs/pool_executor.h"
#include "server/methods/prediction_methods.h"
#include "server/store/memory_stores.h"

namespace stepcast::server {

namespace {

using google::protobuf::Message;

// A call's deadline as the engine asks for it. Threads: safe.
class LocalDeadline {
 public:
  LocalDeadline(const Clock& clock, LocalService::Timeout timeout)
      : clock_(clock), start_ns_(clock.MonotonicNs()), timeout_ns_(timeout.count()) {}

  absl::Status operator()() const {
    if (clock_.MonotonicNs() - start_ns_ < timeout_ns_) return absl::OkStatus();
    return MakeError(absl::StatusCode::kDeadlineExceeded, "the call's time ran out",
                     {.reason = "DEADLINE_EXCEEDED"});
  }

 private:
  const Clock& clock_;
  int64_t start_ns_;
  int64_t timeout_ns_;
};

template <typename Answer>
auto WireAnswer(const absl::StatusOr<Answer>& answer) -> absl::StatusOr<decltype(ToWire(*answer))> {
  if (!answer.ok()) return answer.status();
  return ToWire(*answer);
}

// The calling thread computes, too, so one less than these helps it.
int Processors() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

// A person's own file, read block by block, has no limit but the profile's.
GunzipSource::Options Unlimited(const char* where) {
  return {.admit = [](int64_t) { return absl::OkStatus(); },
          .damaged = [where](const std::string& why) { return ImportFault(where, why); }};
}

}  // namespace

class LocalService::Handlers {
 public:
  Handlers() {
    using Deadline = LocalDeadline;
    const std::string profile_service = "/stepcast.v1.ProfileService/";
    Add<v1::CreateProfileRequest>(profile_service + "CreateProfile",
                                  [this](const auto& request, const Deadline& deadline) {
                                    return profiles_.Create(FromWire(request), deadline);
                                  });
    Add<v1::UpdateProfileRequest>(profile_service + "UpdateProfile",
                                  [this](const auto& request, const Deadline& deadline) {
                                    return profiles_.Update(FromWire(request), deadline);
                                  });
    Add<v1::GetProfileRequest>(
        profile_service + "GetProfile",
        [this](const auto& request, const Deadline&) { return profiles_.Get(FromWire(request)); });
    Add<v1::ListProfilesRequest>(
        profile_service + "ListProfiles",
        [this](const auto& request, const Deadline&) { return profiles_.List(FromWire(request)); });
    methods_[profile_service + "DeleteProfile"] = [this](const Message& request, Message&,
                                                         const Deadline&) {
      return profiles_.Delete(FromWire(static_cast<const v1::DeleteProfileRequest&>(request)));
    };
    ForEachPredictionMethod([this]<typename Method>(Method) { AddComputed<Method>(); });
  }

  absl::Status Call(std::string_view path, const Message& request, Message& response,
                    Timeout timeout) {
    const auto method = methods_.find(path);
    if (method != methods_.end())
      return method->second(request, response, LocalDeadline(clock_, timeout));
    // Nobody would go on with a job once this process is gone.
    return MakeError(absl::StatusCode::kUnimplemented, "without a server there are no jobs",
                     {.reason = "NO_JOBS"});
  }

  absl::StatusOr<v1::Profile> UploadProfile(const v1::UploadProfileRequest::Header& header,
                                            std::string_view bytes, Timeout timeout) {
    return WireAnswer(
        profiles_.Upload(FromWire(header), std::string(bytes), LocalDeadline(clock_, timeout)));
  }

  absl::StatusOr<v1::ImportProfileResponse> ImportProfile(
      const v1::ImportProfileRequest::Header& header, const LocalImport& import, Timeout timeout) {
    const LocalDeadline deadline(clock_, timeout);
    GunzipSource recording(import.recording, Unlimited(kAtRecording));
    std::optional<GunzipSource> graph;
    if (import.graph != nullptr) graph.emplace(*import.graph, Unlimited(kAtGraph));
    ImportBytes bytes{.recording = recording, .graph = graph ? &*graph : nullptr};
    std::deque<GunzipSource> recordings;
    for (const RankTrace& each : import.recordings) {
      bytes.recordings.push_back(
          {.recording = &recordings.emplace_back(*each.recording, Unlimited(kAtRecording)),
           .name = each.name});
    }
    return WireAnswer(profiles_.Import(FromWire(header), bytes, deadline));
  }

  absl::Status GenerateTrace(const v1::GenerateTraceRequest& request,
                             const std::function<absl::Status(std::string_view)>& take,
                             Timeout timeout) {
    const LocalDeadline deadline(clock_, timeout);
    absl::StatusOr<TraceComputation> computation = predictions_.GenerateTrace(FromWire(request));
    if (!computation.ok()) return computation.status();
    WorkProgress progress(computation->work, clock_, Remedy::kAskForLess);
    const auto stop = [&] {
      progress.Count();
      return deadline();
    };
    return progress.Explain(std::move(computation->run)(take, stop).status());
  }

 private:
  using Handle =
      std::function<absl::Status(const Message&, Message&, const LocalDeadline& deadline)>;

  template <typename Request, typename Answer>
  void Add(const std::string& path, Answer answer) {
    methods_[path] = [answer = std::move(answer)](const Message& request, Message& response,
                                                  const LocalDeadline& deadline) -> absl::Status {
      assert(request.GetDescriptor() == Request::descriptor());
      const auto reply = answer(static_cast<const Request&>(request), deadline);
      if (!reply.ok()) return reply.status();
      auto wire = ToWire(*reply);
      assert(response.GetDescriptor() == wire.GetDescriptor());
      static_cast<decltype(wire)&>(response) = std::move(wire);
      return absl::OkStatus();
    };
  }

  // A method of the PredictionService, whose handler gives a computation.
  template <typename Method>
  void AddComputed() {
    using Request = typename Method::Request;
    Add<Request>("/stepcast.v1.PredictionService/" + std::string(Method::Name()),
                 [this](const Request& request, const LocalDeadline& deadline) {
                   return Compute(Method::Check(predictions_, request), deadline);
                 });
  }

  template <typename Answer>
  absl::StatusOr<Answer> Compute(absl::StatusOr<Computation<Answer>> computation,
                                 const LocalDeadline& deadline) const {
    if (!computation.ok()) return computation.status();
    // There are no jobs here.
    WorkProgress progress(computation->work(), clock_, Remedy::kAskForLess);
    absl::StatusOr<Answer> answer = (*std::move(computation))([&] {
      progress.Count();
      return deadline();
    });
    if (!answer.ok()) return progress.Explain(answer.status());
    return answer;
  }

  RealClock clock_;
  MemoryProfileStore store_{StoreLimits{}, clock_};
  ProfileHandler profiles_{store_, ProfileLimits{}};
  JobPool jobs_{{.threads = Processors(), .helpers = Processors() - 1}};
  const PoolExecutor executor_{jobs_};
  PredictionHandler predictions_{{.store = store_, .clock = clock_, .executor = executor_},
                                 ProfileLimits{}};
  std::map<std::string, Handle, std::less<>> methods_;  // by path
};

LocalService::LocalService() : handlers_(std::make_unique<Handlers>()) {}
LocalService::~LocalService() = default;

absl::Status LocalService::Call(std::string_view path, const Message& request, Message& response,
                                Timeout timeout) {
  return handlers_->Call(path, request, response, timeout);
}

absl::StatusOr<v1::Profile> LocalService::UploadProfile(
    const v1::UploadProfileRequest::Header& header, std::string_view bytes, Timeout timeout) {
  return handlers_->UploadProfile(header, bytes, timeout);
}

absl::StatusOr<v1::ImportProfileResponse> LocalService::ImportProfile(
    const v1::ImportProfileRequest::Header& header, const LocalImport& import, Timeout timeout) {
  return handlers_->ImportProfile(header, import, timeout);
}

absl::Status LocalService::GenerateTrace(
    const v1::GenerateTraceRequest& request,
    const std::function<absl::Status(std::string_view piece)>& take, Timeout timeout) {
  return handlers_->GenerateTrace(request, take, timeout);
}

}  // namespace stepcast::server
