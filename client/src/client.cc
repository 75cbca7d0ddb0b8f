#include "stepcast/client.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/client_call.h"
#include "client/src/connection.h"
#include "client/src/convert/allocation_proto.h"
#include "client/src/convert/calibration_proto.h"
#include "client/src/convert/comparison_proto.h"
#include "client/src/convert/order_proto.h"
#include "client/src/convert/prediction_proto.h"
#include "client/src/convert/profile_proto.h"
#include "client/src/convert/profile_requests_proto.h"
#include "client/src/convert/recommendation_proto.h"
#include "client/src/convert/trace_proto.h"
#include "client/src/file_stream.h"
#include "client/src/grpc_stub.h"
#include "client/src/local_error.h"
#include "client/src/remote_connection.h"
#include "client/src/retry_environment.h"

namespace stepcast::client {

namespace {

v1::UploadProfileRequest::Header UploadHeader(const StoreOptions& store, ProfileEncoding encoding) {
  static_assert(static_cast<int>(ProfileEncoding::kBinary) == v1::UploadProfileRequest::BINARY);
  static_assert(static_cast<int>(ProfileEncoding::kJson) == v1::UploadProfileRequest::JSON);
  static_assert(static_cast<int>(ProfileEncoding::kText) == v1::UploadProfileRequest::TEXT);
  v1::UploadProfileRequest::Header header;
  header.set_profile_id(store.profile_id);
  header.set_request_id(Identified(store.request_id));
  header.set_validate_only(store.validate_only);
  header.set_encoding(static_cast<v1::UploadProfileRequest::Encoding>(encoding));
  return header;
}

v1::ImportProfileRequest::Header ImportHeader(const ImportOptions& import) {
  v1::ImportProfileRequest::Header header;
  ToProto(import, header);
  header.set_request_id(Identified(import.store.request_id));
  return header;
}

absl::StatusOr<ImportProfileResponse> ImportFiles(Connection& connection,
                                                  const v1::ImportProfileRequest::Header& header,
                                                  const RecordingFiles& files, const Call& call) {
  const absl::StatusOr<std::unique_ptr<FileStream>> recording = FileStream::Open(files.recording);
  if (!recording.ok()) return recording.status();
  absl::StatusOr<std::unique_ptr<FileStream>> graph;
  if (!files.graph.empty()) graph = FileStream::Open(files.graph);
  if (!files.graph.empty() && !graph.ok()) return graph.status();
  return Converted<ImportProfileResponse>(connection.ImportProfile(
      header, {.recording = **recording, .graph = files.graph.empty() ? nullptr : graph->get()},
      call));
}

}  // namespace

Client::Client(const ClientOptions& options)
    : Client(MakeRemoteConnection(MakeGrpcStub(options), MakeSystemRetryEnvironment()), options) {}

Client::Client(std::shared_ptr<Connection> connection, const ClientOptions& options)
    : connection_(std::move(connection)), options_(options) {}

absl::StatusOr<Profile> Client::CreateProfile(const Profile& profile, const StoreOptions& store,
                                              const CallOptions& call) const {
  v1::CreateProfileRequest message;
  ToProto(profile, *message.mutable_profile());
  message.set_profile_id(store.profile_id);
  message.set_request_id(Identified(store.request_id));
  message.set_validate_only(store.validate_only);
  return Converted<Profile>(connection_->CreateProfile(message, InForce(options_, call)));
}

absl::StatusOr<Profile> Client::UploadProfile(const Profile& profile, const StoreOptions& store,
                                              const CallOptions& call) const {
  v1::Profile message;
  ToProto(profile, message);
  return UploadProfileBytes(message.SerializeAsString(), ProfileEncoding::kBinary, store, call);
}

absl::StatusOr<Profile> Client::UploadProfileBytes(std::string_view bytes, ProfileEncoding encoding,
                                                   const StoreOptions& store,
                                                   const CallOptions& call) const {
  if (encoding == ProfileEncoding::kUnspecified) encoding = DetectProfileEncoding(bytes);
  return Converted<Profile>(
      connection_->UploadProfile(UploadHeader(store, encoding), bytes, InForce(options_, call)));
}

absl::StatusOr<Profile> Client::UploadProfileFile(const std::string& path,
                                                  const StoreOptions& store,
                                                  const CallOptions& call) const {
  const absl::StatusOr<std::string> bytes = ReadFile(path);
  if (!bytes.ok()) return bytes.status();
  return UploadProfileBytes(*bytes, ProfileEncoding::kUnspecified, store, call);
}

absl::StatusOr<ImportProfileResponse> Client::ImportLayerProfile(std::string_view text,
                                                                 const LayerProfileOptions& layers,
                                                                 const ImportOptions& import,
                                                                 const CallOptions& call) const {
  v1::ImportProfileRequest::Header header = ImportHeader(import);
  ToProto(layers, *header.mutable_layer_profile());
  TextStream stream(text);
  return Converted<ImportProfileResponse>(
      connection_->ImportProfile(header, {.recording = stream}, InForce(options_, call)));
}

absl::StatusOr<ImportProfileResponse> Client::ImportRunMetadata(const RecordingFiles& files,
                                                                const RunMetadataOptions& options,
                                                                const ImportOptions& import,
                                                                const CallOptions& call) const {
  v1::ImportProfileRequest::Header header = ImportHeader(import);
  ToProto(options, *header.mutable_run_metadata());
  return ImportFiles(*connection_, header, files, InForce(options_, call));
}

absl::StatusOr<ImportProfileResponse> Client::ImportTimeline(const RecordingFiles& files,
                                                             const TimelineOptions& options,
                                                             const ImportOptions& import,
                                                             const CallOptions& call) const {
  v1::ImportProfileRequest::Header header = ImportHeader(import);
  ToProto(options, *header.mutable_timeline());
  return ImportFiles(*connection_, header, files, InForce(options_, call));
}

absl::StatusOr<ImportProfileResponse> Client::ImportZooModel(const ModelZooOptions& zoo,
                                                             const ImportOptions& import,
                                                             const CallOptions& call) const {
  v1::ImportProfileRequest::Header header = ImportHeader(import);
  ToProto(zoo, *header.mutable_model_zoo());
  TextStream nothing("");
  return Converted<ImportProfileResponse>(
      connection_->ImportProfile(header, {.recording = nothing}, InForce(options_, call)));
}

absl::StatusOr<Profile> Client::GetProfile(const GetProfileRequest& request,
                                           const CallOptions& call) const {
  v1::GetProfileRequest message;
  ToProto(request, message);
  return Converted<Profile>(connection_->GetProfile(message, InForce(options_, call)));
}

absl::StatusOr<ListProfilesResponse> Client::ListProfiles(const ListProfilesRequest& request,
                                                          const CallOptions& call) const {
  v1::ListProfilesRequest message;
  ToProto(request, message);
  return Converted<ListProfilesResponse>(
      connection_->ListProfiles(message, InForce(options_, call)));
}

absl::StatusOr<std::vector<Profile>> Client::ListAllProfiles(ListProfilesRequest request,
                                                             size_t max,
                                                             const CallOptions& call) const {
  std::vector<Profile> profiles;
  do {
    absl::StatusOr<ListProfilesResponse> page = ListProfiles(request, call);
    if (!page.ok()) return page.status();
    for (Profile& profile : page->profiles) profiles.push_back(std::move(profile));
    if (profiles.size() > max) {
      return MakeLocalError(absl::StatusCode::kOutOfRange, "TOO_MANY_PROFILES",
                            absl::StrCat("there are more than ", max, " profiles"),
                            {{"max", absl::StrCat(max)}});
    }
    // A server that repeats a token would keep us here for ever.
    if (!page->next_page_token.empty() && page->next_page_token == request.page_token) {
      return MakeLocalError(absl::StatusCode::kInternal, "PAGE_TOKEN_REPEATED",
                            "the server gave the same page token twice");
    }
    request.page_token = page->next_page_token;
  } while (!request.page_token.empty());
  return profiles;
}

absl::Status Client::DeleteProfile(const DeleteProfileRequest& request,
                                   const CallOptions& call) const {
  v1::DeleteProfileRequest message;
  ToProto(request, message);
  return connection_->DeleteProfile(message, InForce(options_, call));
}

absl::StatusOr<PredictThroughputResponse> Client::PredictThroughput(
    const PredictThroughputRequest& request, const CallOptions& call) const {
  v1::PredictThroughputRequest message;
  ToProto(request, message);
  return Converted<PredictThroughputResponse>(
      connection_->PredictThroughput(message, InForce(options_, call)));
}

absl::StatusOr<RecommendWorkersResponse> Client::RecommendWorkers(
    const RecommendWorkersRequest& request, const CallOptions& call) const {
  v1::RecommendWorkersRequest message;
  ToProto(request, message);
  return Converted<RecommendWorkersResponse>(
      connection_->RecommendWorkers(message, InForce(options_, call)));
}

absl::StatusOr<OptimizeOrderResponse> Client::OptimizeOrder(const OptimizeOrderRequest& request,
                                                            const CallOptions& call) const {
  v1::OptimizeOrderRequest message;
  ToProto(request, message);
  return Converted<OptimizeOrderResponse>(
      connection_->OptimizeOrder(message, InForce(options_, call)));
}

absl::StatusOr<AllocateWorkersResponse> Client::AllocateWorkers(
    const AllocateWorkersRequest& request, const CallOptions& call) const {
  v1::AllocateWorkersRequest message;
  ToProto(request, message);
  return Converted<AllocateWorkersResponse>(
      connection_->AllocateWorkers(message, InForce(options_, call)));
}

absl::StatusOr<CompareModelsResponse> Client::CompareModels(const CompareModelsRequest& request,
                                                            const CallOptions& call) const {
  v1::CompareModelsRequest message;
  ToProto(request, message);
  return Converted<CompareModelsResponse>(
      connection_->CompareModels(message, InForce(options_, call)));
}

absl::StatusOr<FitParsingOverheadResponse> Client::FitParsingOverhead(
    const FitParsingOverheadRequest& request, const CallOptions& call) const {
  v1::FitParsingOverheadRequest message;
  ToProto(request, message);
  return Converted<FitParsingOverheadResponse>(
      connection_->FitParsingOverhead(message, InForce(options_, call)));
}

absl::Status Client::GenerateTrace(const GenerateTraceRequest& request, const TracePieces& take,
                                   const CallOptions& call) const {
  v1::GenerateTraceRequest message;
  ToProto(request, message);
  return connection_->GenerateTrace(message, take, InForce(options_, call));
}

JobClient Client::Jobs() const { return JobClient(connection_, options_); }

}  // namespace stepcast::client
