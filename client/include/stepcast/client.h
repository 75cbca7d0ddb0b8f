// A client of a Stepcast server, which says how fast a training job will run.
//
//   namespace v1 = stepcast::v1;
//   stepcast::client::Client client({.server = "predictor:50051"});
//   v1::PredictThroughputRequest request;
//   request.set_profile("profiles/resnet50");
//   for (int workers : {1, 2, 4, 8}) request.add_worker_counts(workers);
//   absl::StatusOr<v1::PredictThroughputResponse> reply = client.PredictThroughput(request);
//
// Requests and replies: the messages of proto/stepcast/v1, where every field is explained.
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
// UpdateProfile, the uploads and the imports are retried only because they are idempotent by
// request_id: where the request has none, the client sends the same new UUID with every attempt,
// and the server stores once and returns to each attempt what it stored then. Give your own
// request_id to make that hold across calls, too. DeleteProfile is never retried: where the first
// attempt succeeded unseen, a second one would report NOT_FOUND.
//
// Errors: the canonical code and message of the service, with the details of error_details.h. A
// server that cannot be reached is UNAVAILABLE; one that speaks TLS where the client does not, has
// a certificate that is not trusted and the like is FAILED_PRECONDITION with a reason, for example
// SERVER_SPEAKS_TLS (client/src/connection_probe.h names them). The library prints nothing and
// throws nothing.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "stepcast/client_options.h"
#include "stepcast/job_client.h"
#include "stepcast/v1/prediction_service.pb.h"
#include "stepcast/v1/profile_service.pb.h"

namespace stepcast::client {

class Connection;
struct ImportStreams;

// The files of a recording, which may be larger than memory.
struct RecordingFiles {
  std::string recording;
  std::string graph;  // a serialised GraphDef; empty: none
  // Recordings of several workers of one job, at least two; `recording` is empty then.
  std::vector<std::string> recordings = {};
  // Hears, on any thread, how many bytes of the recordings have been read; from 0 again if the call
  // is repeated. Empty: nobody does.
  std::function<void(int64_t bytes)> on_read = {};
};

// A function that takes the next piece of a trace, which may end within a character.
// Not OK: no more is wanted, and why.
using TracePieces = std::function<absl::Status(std::string_view piece)>;

// An empty reply of the unary method that takes the request. REQUIRES: there is one.
std::unique_ptr<google::protobuf::Message> NewReplyTo(const google::protobuf::Message& request);

class Client {
 public:
  explicit Client(const ClientOptions& options = {});
  // On a connection of another kind. For tests, and for programs that need no server.
  Client(std::shared_ptr<Connection> connection, const ClientOptions& options);

  // Stores a profile that fits into one message. Errors: INVALID_ARGUMENT with every fault and its
  // path; ALREADY_EXISTS if the id is taken by other content.
  absl::StatusOr<v1::Profile> CreateProfile(v1::CreateProfileRequest request,
                                            const CallOptions& call = {}) const;

  // Replaces a stored profile that fits into one message in place: who reads it meanwhile has one
  // or the other. Errors: INVALID_ARGUMENT as above; NOT_FOUND, unless missing is allowed; ABORTED
  // if profile.etag is set and not the stored one's. A larger one: UploadProfile with
  // allow_replace.
  absl::StatusOr<v1::Profile> UpdateProfile(v1::UpdateProfileRequest request,
                                            const CallOptions& call = {}) const;

  // CreateProfile for a profile of any size, sent in chunks: one in memory, one already encoded, or
  // a file, which may be compressed by gzip. An unset encoding is found out from the content.
  absl::StatusOr<v1::Profile> UploadProfile(const v1::Profile& profile,
                                            v1::UploadProfileRequest::Header header = {},
                                            const CallOptions& call = {}) const;
  absl::StatusOr<v1::Profile> UploadProfileBytes(std::string_view bytes,
                                                 v1::UploadProfileRequest::Header header = {},
                                                 const CallOptions& call = {}) const;
  absl::StatusOr<v1::Profile> UploadProfileFile(const std::string& path,
                                                v1::UploadProfileRequest::Header header = {},
                                                const CallOptions& call = {}) const;

  // Makes a profile of `text`, in the format that the header names, and stores it. The model zoo
  // needs no text.
  absl::StatusOr<v1::ImportProfileResponse> ImportProfile(v1::ImportProfileRequest::Header header,
                                                          std::string_view text = {},
                                                          const CallOptions& call = {}) const;
  // The same of files, read while they are sent. Errors of files: reason FILE_UNREADABLE.
  absl::StatusOr<v1::ImportProfileResponse> ImportProfileFiles(
      v1::ImportProfileRequest::Header header, const RecordingFiles& files,
      const CallOptions& call = {}) const;
  // The same of streams that are open already. For programs of this tree.
  absl::StatusOr<v1::ImportProfileResponse> ImportProfileStreams(
      v1::ImportProfileRequest::Header header, const ImportStreams& streams,
      const CallOptions& call = {}) const;

  // Errors: NOT_FOUND.
  absl::StatusOr<v1::Profile> GetProfile(const v1::GetProfileRequest& request,
                                         const CallOptions& call = {}) const;
  // One page.
  absl::StatusOr<v1::ListProfilesResponse> ListProfiles(const v1::ListProfilesRequest& request = {},
                                                        const CallOptions& call = {}) const;
  // All pages from request.page_token on as one, each with a deadline of its own.
  // Errors: OUT_OF_RANGE, reason TOO_MANY_PROFILES, if there are more than `max`.
  absl::StatusOr<v1::ListProfilesResponse> ListAllProfiles(v1::ListProfilesRequest request = {},
                                                           size_t max = 100'000,
                                                           const CallOptions& call = {}) const;
  // Errors: NOT_FOUND; ABORTED if the etag is not the stored one's.
  absl::Status DeleteProfile(const v1::DeleteProfileRequest& request,
                             const CallOptions& call = {}) const;

  absl::StatusOr<v1::PredictThroughputResponse> PredictThroughput(
      const v1::PredictThroughputRequest& request, const CallOptions& call = {}) const;
  absl::StatusOr<v1::RecommendWorkersResponse> RecommendWorkers(
      const v1::RecommendWorkersRequest& request, const CallOptions& call = {}) const;
  absl::StatusOr<v1::OptimizeOrderResponse> OptimizeOrder(const v1::OptimizeOrderRequest& request,
                                                          const CallOptions& call = {}) const;
  absl::StatusOr<v1::OptimizeCommunicationResponse> OptimizeCommunication(
      const v1::OptimizeCommunicationRequest& request, const CallOptions& call = {}) const;
  // A bad job has its own status in the reply and does not fail the call.
  absl::StatusOr<v1::AllocateWorkersResponse> AllocateWorkers(
      const v1::AllocateWorkersRequest& request, const CallOptions& call = {}) const;
  absl::StatusOr<v1::CompareModelsResponse> CompareModels(const v1::CompareModelsRequest& request,
                                                          const CallOptions& call = {}) const;
  absl::StatusOr<v1::DiagnoseJobResponse> DiagnoseJob(const v1::DiagnoseJobRequest& request,
                                                      const CallOptions& call = {}) const;
  absl::StatusOr<v1::OptimizeJobResponse> OptimizeJob(const v1::OptimizeJobRequest& request,
                                                      const CallOptions& call = {}) const;
  absl::StatusOr<v1::RecommendLayoutResponse> RecommendLayout(
      const v1::RecommendLayoutRequest& request, const CallOptions& call = {}) const;
  // From measured runs; nothing is simulated.
  absl::StatusOr<v1::FitRunsResponse> FitRuns(const v1::FitRunsRequest& request,
                                              const CallOptions& call = {}) const;
  // From measurements; nothing is simulated.
  absl::StatusOr<v1::FitParsingOverheadResponse> FitParsingOverhead(
      const v1::FitParsingOverheadRequest& request, const CallOptions& call = {}) const;
  // From a benchmark of collectives; nothing is simulated.
  absl::StatusOr<v1::FitCollectivesResponse> FitCollectives(
      const v1::FitCollectivesRequest& request, const CallOptions& call = {}) const;
  // From measurements of all-reduces beside computation; nothing is simulated.
  absl::StatusOr<v1::FitContentionResponse> FitContention(const v1::FitContentionRequest& request,
                                                          const CallOptions& call = {}) const;
  // Hands each piece of the trace to `take`, on this thread, as it comes. The server waits while
  // `take` works. Where that fails the call is cancelled and fails with the same status. Errors:
  // after some pieces, too; the pieces taken are no whole trace then.
  absl::Status GenerateTrace(const v1::GenerateTraceRequest& request, const TracePieces& take,
                             const CallOptions& call = {}) const;

  // Any unary method of the service, by the type of its request. REQUIRES: there is one, and the
  // reply is of its type.
  absl::Status Call(const google::protobuf::Message& request, google::protobuf::Message& reply,
                    const CallOptions& call = {}) const;

  // Computations that outlive their call, over the same connection.
  JobClient Jobs() const;

 private:
  template <typename Reply>
  absl::StatusOr<Reply> Ask(const google::protobuf::Message& request,
                            const CallOptions& call) const;

  std::shared_ptr<Connection> connection_;
  ClientOptions options_;
};

}  // namespace stepcast::client
