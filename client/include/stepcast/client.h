// Asks a Stepcast server how fast a training job will run.
//
//   stepcast::client::Client client({.server = "predictor:50051"});
//   auto reply = client.PredictThroughput({.source = "profiles/resnet50", .worker_counts = {1, 2,
//   4, 8}}); if (!reply.ok()) return reply.status();  // GetErrorDetails(reply.status()) has the
//   reason and every violation
//
// Thread safety: any number of threads may call the same object at once. Copying is cheap; copies
// share one connection, which closes with the last of them. Constructing does no input or output
// and cannot fail: the first call connects, and says so if it cannot.
//
// Deadlines: each call blocks until there is an answer, at most ClientOptions::timeout (60 s),
// whatever it retries meanwhile; CallOptions says otherwise for one call. Past it the call fails
// with DEADLINE_EXCEEDED, and the server stops working on it.
//
// Idempotency and retries: GetProfile, ListProfiles, the predictions and, until its first piece has
// come, GenerateTrace change nothing and are retried as RetryPolicy says. CreateProfile,
// UploadProfile and the imports are retried only because they are idempotent by request_id: the
// client sends the same UUID with every attempt, and the server stores once and returns to each
// attempt what it stored then. Give your own request_id to make that hold across calls, too.
// DeleteProfile is never retried: where the first attempt succeeded unseen, a second one would
// report NOT_FOUND.
//
// Errors: the canonical code and message of the service, with the details of error_details.h. The
// library prints nothing and throws nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "stepcast/allocation.h"
#include "stepcast/calibration.h"
#include "stepcast/client_options.h"
#include "stepcast/comparison.h"
#include "stepcast/job_client.h"
#include "stepcast/order.h"
#include "stepcast/prediction.h"
#include "stepcast/profile.h"
#include "stepcast/profile_encoding.h"
#include "stepcast/profile_requests.h"
#include "stepcast/recommendation.h"
#include "stepcast/trace.h"

namespace stepcast::client {

class Connection;

class Client {
 public:
  explicit Client(const ClientOptions& options = {});
  // On a connection of another kind. For tests, and for the local one that needs no server.
  Client(std::shared_ptr<Connection> connection, const ClientOptions& options);

  // Stores a profile that fits into one message. Errors: INVALID_ARGUMENT with every fault and its
  // path; ALREADY_EXISTS if the id is taken by other content.
  absl::StatusOr<Profile> CreateProfile(const Profile& profile, const StoreOptions& store = {},
                                        const CallOptions& call = {}) const;

  // The same for a profile of any size, sent in chunks: one in memory, one already encoded
  // (kUnspecified: by content), or a file in any encoding.
  absl::StatusOr<Profile> UploadProfile(const Profile& profile, const StoreOptions& store = {},
                                        const CallOptions& call = {}) const;
  absl::StatusOr<Profile> UploadProfileBytes(std::string_view bytes, ProfileEncoding encoding,
                                             const StoreOptions& store = {},
                                             const CallOptions& call = {}) const;
  absl::StatusOr<Profile> UploadProfileFile(const std::string& path, const StoreOptions& store = {},
                                            const CallOptions& call = {}) const;

  // Makes a profile of measured times per layer, of what TensorFlow recorded, or of a published
  // architecture, and stores it. Files are read while they are sent. Errors of files: reason
  // FILE_UNREADABLE.
  absl::StatusOr<ImportProfileResponse> ImportLayerProfile(std::string_view text,
                                                           const LayerProfileOptions& layers,
                                                           const ImportOptions& import = {},
                                                           const CallOptions& call = {}) const;
  absl::StatusOr<ImportProfileResponse> ImportRunMetadata(const RecordingFiles& files,
                                                          const RunMetadataOptions& options,
                                                          const ImportOptions& import = {},
                                                          const CallOptions& call = {}) const;
  absl::StatusOr<ImportProfileResponse> ImportTimeline(const RecordingFiles& files,
                                                       const TimelineOptions& options,
                                                       const ImportOptions& import = {},
                                                       const CallOptions& call = {}) const;
  absl::StatusOr<ImportProfileResponse> ImportZooModel(const ModelZooOptions& zoo,
                                                       const ImportOptions& import = {},
                                                       const CallOptions& call = {}) const;

  // Errors: NOT_FOUND.
  absl::StatusOr<Profile> GetProfile(const GetProfileRequest& request,
                                     const CallOptions& call = {}) const;
  // One page.
  absl::StatusOr<ListProfilesResponse> ListProfiles(const ListProfilesRequest& request = {},
                                                    const CallOptions& call = {}) const;
  // All pages from request.page_token on, each with a deadline of its own. Errors: OUT_OF_RANGE,
  // reason TOO_MANY_PROFILES, if there are more than `max`.
  absl::StatusOr<std::vector<Profile>> ListAllProfiles(ListProfilesRequest request = {},
                                                       size_t max = 100'000,
                                                       const CallOptions& call = {}) const;
  // Errors: NOT_FOUND; ABORTED if the etag is not the stored one's.
  absl::Status DeleteProfile(const DeleteProfileRequest& request,
                             const CallOptions& call = {}) const;

  absl::StatusOr<PredictThroughputResponse> PredictThroughput(
      const PredictThroughputRequest& request, const CallOptions& call = {}) const;
  absl::StatusOr<RecommendWorkersResponse> RecommendWorkers(const RecommendWorkersRequest& request,
                                                            const CallOptions& call = {}) const;
  absl::StatusOr<OptimizeOrderResponse> OptimizeOrder(const OptimizeOrderRequest& request,
                                                      const CallOptions& call = {}) const;
  // A bad job has its own status in the reply and does not fail the call.
  absl::StatusOr<AllocateWorkersResponse> AllocateWorkers(const AllocateWorkersRequest& request,
                                                          const CallOptions& call = {}) const;
  absl::StatusOr<CompareModelsResponse> CompareModels(const CompareModelsRequest& request,
                                                      const CallOptions& call = {}) const;
  // From measurements; nothing is simulated.
  absl::StatusOr<FitParsingOverheadResponse> FitParsingOverhead(
      const FitParsingOverheadRequest& request, const CallOptions& call = {}) const;
  // Hands each piece of the trace to `take`, on this thread, as it comes. The server waits while
  // `take` works. Where that fails the call is cancelled and fails with the same status. Errors:
  // after some pieces, too; what was taken is no whole trace then.
  absl::Status GenerateTrace(const GenerateTraceRequest& request, const TracePieces& take,
                             const CallOptions& call = {}) const;

  // Computations that outlive their call, over the same connection.
  JobClient Jobs() const;

 private:
  std::shared_ptr<Connection> connection_;
  ClientOptions options_;
};

}  // namespace stepcast::client
