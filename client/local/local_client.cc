#include "client/local/local_client.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "client/src/connection.h"
#include "client/src/local_error.h"
#include "client/src/wire_status.h"

#include "core/base/error.h"
#include "core/importing/byte_source.h"
#include "core/importing/gunzip_source.h"
#include "core/importing/recording_options.h"
#include "core/model/profile_limits.h"
#include "server/base/clock.h"
#include "server/convert/allocation_convert.h"
#include "server/convert/calibration_convert.h"
#include "server/convert/comparison_convert.h"
#include "server/convert/order_convert.h"
#include "server/convert/prediction_convert.h"
#include "server/convert/profile_convert.h"
#include "server/convert/profile_service_convert.h"
#include "server/convert/recommendation_convert.h"
#include "server/convert/trace_convert.h"
#include "server/convert/wire_error.h"
#include "server/handlers/prediction_handler.h"
#include "server/handlers/profile_handler.h"
#include "server/handlers/work_progress.h"
#include "server/jobs/job_pool.h"
#include "server/jobs/pool_executor.h"
#include "server/store/memory_profile_store.h"

namespace stepcast::client {

namespace {

namespace longrunning = google::longrunning;

// The status that a client of a server would see.
absl::Status AsSeenByClients(const absl::Status& status) {
  if (status.ok()) return status;
  const server::WireError wire = server::ToWireError(status);
  return StatusFromWire(status.code(), wire.message, wire.details);
}

template <typename Answer>
auto Reply(const absl::StatusOr<Answer>& answer)
    -> absl::StatusOr<decltype(server::ToWire(*answer))> {
  if (!answer.ok()) return AsSeenByClients(answer.status());
  return server::ToWire(*answer);
}

// What a call's deadline is to the engine. Threads: safe.
class Deadline {
 public:
  Deadline(const server::Clock& clock, const Call& call)
      : clock_(clock), start_ns_(clock.MonotonicNs()), timeout_ns_(call.timeout.count()) {}

  absl::Status operator()() const {
    if (clock_.MonotonicNs() - start_ns_ < timeout_ns_) return absl::OkStatus();
    return MakeError(absl::StatusCode::kDeadlineExceeded, "the call's time ran out",
                     {.reason = "DEADLINE_EXCEEDED"});
  }

 private:
  const server::Clock& clock_;
  int64_t start_ns_;
  int64_t timeout_ns_;
};

template <typename Answer>
auto Compute(absl::StatusOr<server::Computation<Answer>> computation, const server::Clock& clock,
             const Deadline& deadline) {
  if (!computation.ok()) return Reply<Answer>(computation.status());
  // There are no jobs here.
  server::WorkProgress progress(computation->work(), clock, server::Remedy::kAskForLess);
  absl::StatusOr<Answer> answer = (*std::move(computation))([&] {
    progress.Count();
    return deadline();
  });
  return Reply<Answer>(answer.ok() ? std::move(answer) : progress.Explain(answer.status()));
}

// The calling thread computes, too, so one less than these helps it.
int Processors() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

// The client's stream as the importers' source. Reads it once.
class StreamSource final : public ByteSource {
 public:
  explicit StreamSource(ByteStream& stream) : stream_(stream) {}
  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    return stream_.Read(buffer, size);
  }

 private:
  ByteStream& stream_;
};

// A person's own file, read block by block, has no limit but the profile's.
GunzipSource::Options Gunzip(const char* where) {
  return {.admit = [](int64_t) { return absl::OkStatus(); },
          .damaged = [where](const std::string& why) { return ImportFault(where, why); }};
}

// Nobody would go on with a job once this process is gone.
absl::Status NoJobs() {
  return MakeLocalError(absl::StatusCode::kUnimplemented, "NO_JOBS",
                        "without a server there are no jobs");
}

class LocalConnection : public Connection {
 public:
  absl::StatusOr<v1::Profile> CreateProfile(const v1::CreateProfileRequest& request,
                                            const Call& call) override {
    return Reply(profiles_.Create(server::FromWire(request), Deadline(clock_, call)));
  }
  absl::StatusOr<v1::Profile> UploadProfile(const v1::UploadProfileRequest::Header& header,
                                            std::string_view bytes, const Call& call) override {
    return Reply(
        profiles_.Upload(server::FromWire(header), std::string(bytes), Deadline(clock_, call)));
  }
  absl::StatusOr<v1::ImportProfileResponse> ImportProfile(
      const v1::ImportProfileRequest::Header& header, const ImportStreams& streams,
      const Call& call) override {
    const Deadline deadline(clock_, call);
    StreamSource recording(streams.recording);
    GunzipSource recorded(recording, Gunzip(kAtRecording));
    std::optional<StreamSource> graph;
    std::optional<GunzipSource> graph_read;
    if (streams.graph != nullptr)
      graph_read.emplace(graph.emplace(*streams.graph), Gunzip(kAtGraph));
    return Reply(profiles_.Import(
        server::FromWire(header),
        {.recording = recorded, .graph = graph_read ? &*graph_read : nullptr}, deadline));
  }
  absl::StatusOr<v1::Profile> GetProfile(const v1::GetProfileRequest& request,
                                         const Call&) override {
    return Reply(profiles_.Get(server::FromWire(request)));
  }
  absl::StatusOr<v1::ListProfilesResponse> ListProfiles(const v1::ListProfilesRequest& request,
                                                        const Call&) override {
    return Reply(profiles_.List(server::FromWire(request)));
  }
  absl::Status DeleteProfile(const v1::DeleteProfileRequest& request, const Call&) override {
    return AsSeenByClients(profiles_.Delete(server::FromWire(request)));
  }
  absl::StatusOr<v1::PredictThroughputResponse> PredictThroughput(
      const v1::PredictThroughputRequest& request, const Call& call) override {
    const Deadline deadline(clock_, call);
    return Compute<server::PredictThroughputAnswer>(
        predictions_.PredictThroughput(server::FromWire(request)), clock_, deadline);
  }
  absl::StatusOr<v1::RecommendWorkersResponse> RecommendWorkers(
      const v1::RecommendWorkersRequest& request, const Call& call) override {
    const Deadline deadline(clock_, call);
    return Compute<server::RecommendWorkersAnswer>(
        predictions_.RecommendWorkers(server::FromWire(request)), clock_, deadline);
  }
  absl::StatusOr<v1::OptimizeOrderResponse> OptimizeOrder(const v1::OptimizeOrderRequest& request,
                                                          const Call& call) override {
    const Deadline deadline(clock_, call);
    return Compute<server::OptimizeOrderAnswer>(
        predictions_.OptimizeOrder(server::FromWire(request)), clock_, deadline);
  }
  absl::StatusOr<v1::AllocateWorkersResponse> AllocateWorkers(
      const v1::AllocateWorkersRequest& request, const Call& call) override {
    const Deadline deadline(clock_, call);
    return Compute<server::AllocateWorkersAnswer>(
        predictions_.AllocateWorkers(server::FromWire(request)), clock_, deadline);
  }
  absl::StatusOr<v1::CompareModelsResponse> CompareModels(const v1::CompareModelsRequest& request,
                                                          const Call& call) override {
    const Deadline deadline(clock_, call);
    return Compute<server::CompareModelsAnswer>(
        predictions_.CompareModels(server::FromWire(request)), clock_, deadline);
  }
  absl::StatusOr<v1::FitParsingOverheadResponse> FitParsingOverhead(
      const v1::FitParsingOverheadRequest& request, const Call& call) override {
    const Deadline deadline(clock_, call);
    return Compute<server::FitParsingOverheadAnswer>(
        predictions_.FitParsingOverhead(server::FromWire(request)), clock_, deadline);
  }

  absl::Status GenerateTrace(const v1::GenerateTraceRequest& request, TakeChunk take,
                             const Call& call) override {
    const Deadline deadline(clock_, call);
    absl::StatusOr<server::TraceComputation> computation =
        predictions_.GenerateTrace(server::FromWire(request));
    if (!computation.ok()) return AsSeenByClients(computation.status());
    // What `take` says is the caller's own, and goes back as it is.
    absl::Status taken;
    const auto sink = [&](const std::string& piece) { return taken = take(piece); };
    server::WorkProgress progress(computation->work, clock_, server::Remedy::kAskForLess);
    const auto stop = [&] {
      progress.Count();
      return deadline();
    };
    const absl::Status status = progress.Explain(std::move(computation->run)(sink, stop).status());
    return taken.ok() ? AsSeenByClients(status) : taken;
  }

  absl::StatusOr<longrunning::Operation> StartJob(const v1::StartJobRequest&,
                                                  const Call&) override {
    return NoJobs();
  }
  absl::StatusOr<longrunning::Operation> GetOperation(const longrunning::GetOperationRequest&,
                                                      const Call&) override {
    return NoJobs();
  }
  absl::StatusOr<longrunning::ListOperationsResponse> ListOperations(
      const longrunning::ListOperationsRequest&, const Call&) override {
    return NoJobs();
  }
  absl::StatusOr<longrunning::Operation> AwaitOperation(const std::string&, const Call&) override {
    return NoJobs();
  }
  absl::Status CancelOperation(const longrunning::CancelOperationRequest&, const Call&) override {
    return NoJobs();
  }
  absl::Status DeleteOperation(const longrunning::DeleteOperationRequest&, const Call&) override {
    return NoJobs();
  }

 private:
  server::RealClock clock_;
  server::MemoryProfileStore store_{server::StoreLimits{}, clock_};
  server::ProfileHandler profiles_{store_, ProfileLimits{}};
  server::JobPool jobs_{{.threads = Processors(), .helpers = Processors() - 1}};
  const server::PoolExecutor executor_{jobs_};
  server::PredictionHandler predictions_{{.store = store_, .clock = clock_, .executor = executor_},
                                         ProfileLimits{}};
};

}  // namespace

Client MakeLocalClient(const ClientOptions& options) {
  return Client(std::make_shared<LocalConnection>(), options);
}

}  // namespace stepcast::client
