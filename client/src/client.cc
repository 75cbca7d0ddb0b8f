#include "stepcast/client.h"

#include <google/protobuf/empty.pb.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/src/byte_stream.h"
#include "client/src/connection.h"
#include "client/src/error_status.h"
#include "client/src/remote_connection.h"
#include "client/src/retry.h"
#include "client/src/stub.h"

#include "stepcast/error_details.h"
#include "stepcast/job_client.h"
#include "stepcast/profile_encoding.h"

namespace stepcast::client {

namespace longrunning = google::longrunning;

namespace {

// The most entries of a list, and the error of more.
struct ListBound {
  size_t max = 0;
  const char* noun = "";  // of the entries: `profiles`
  const char* reason = "";
};

// All pages of a list as one: reads page after page from request.page_token on by `read`; `entries`
// gives the list of a page.
// Failure: that of a page; OUT_OF_RANGE, with the bound's reason; INTERNAL, reason
// PAGE_TOKEN_REPEATED, because a server that repeats a token would keep us here for ever.
template <typename Response, typename Request, typename Read, typename Entries>
absl::StatusOr<Response> AllPages(Request request, const ListBound& bound, const Read& read,
                                  const Entries& entries) {
  Response all;
  do {
    absl::StatusOr<Response> page = read(request);
    if (!page.ok()) return page.status();
    for (auto& entry : *entries(*page)) *entries(all)->Add() = std::move(entry);
    if (static_cast<size_t>(entries(all)->size()) > bound.max) {
      return MakeLocalError(absl::StatusCode::kOutOfRange, bound.reason,
                            absl::StrCat("there are more than ", bound.max, " ", bound.noun),
                            {{"max", absl::StrCat(bound.max)}});
    }
    if (!page->next_page_token().empty() && page->next_page_token() == request.page_token()) {
      return MakeLocalError(absl::StatusCode::kInternal, "PAGE_TOKEN_REPEATED",
                            "the server gave the same page token twice");
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return all;
}

}  // namespace

std::unique_ptr<google::protobuf::Message> NewReplyTo(const google::protobuf::Message& request) {
  return std::unique_ptr<google::protobuf::Message>(
      google::protobuf::MessageFactory::generated_factory()
          ->GetPrototype(MethodOf(*request.GetDescriptor()).reply)
          ->New());
}

Client::Client(const ClientOptions& options)
    : Client(MakeRemoteConnection(MakeGrpcStub(options), MakeSystemRetryEnvironment()), options) {}

Client::Client(std::shared_ptr<Connection> connection, const ClientOptions& options)
    : connection_(std::move(connection)), options_(options) {}

absl::Status Client::Call(const google::protobuf::Message& request,
                          google::protobuf::Message& reply, const CallOptions& call) const {
  return CallMethod(*connection_, request, reply, TermsOf(options_, call));
}

template <typename Reply>
absl::StatusOr<Reply> Client::Ask(const google::protobuf::Message& request,
                                  const CallOptions& call) const {
  return CallFor<Reply>(*connection_, request, TermsOf(options_, call));
}

absl::StatusOr<v1::Profile> Client::CreateProfile(v1::CreateProfileRequest request,
                                                  const CallOptions& call) const {
  Identify(request);
  return Ask<v1::Profile>(request, call);
}

absl::StatusOr<v1::Profile> Client::UpdateProfile(v1::UpdateProfileRequest request,
                                                  const CallOptions& call) const {
  Identify(request);
  return Ask<v1::Profile>(request, call);
}

absl::StatusOr<v1::Profile> Client::UploadProfile(const v1::Profile& profile,
                                                  v1::UploadProfileRequest::Header header,
                                                  const CallOptions& call) const {
  header.set_encoding(v1::UploadProfileRequest::BINARY);
  return UploadProfileBytes(profile.SerializeAsString(), std::move(header), call);
}

absl::StatusOr<v1::Profile> Client::UploadProfileBytes(std::string_view bytes,
                                                       v1::UploadProfileRequest::Header header,
                                                       const CallOptions& call) const {
  Identify(header);
  if (header.encoding() == v1::UploadProfileRequest::ENCODING_UNSPECIFIED)
    header.set_encoding(DetectProfileEncoding(bytes));
  return connection_->UploadProfile(header, bytes, TermsOf(options_, call));
}

absl::StatusOr<v1::Profile> Client::UploadProfileFile(const std::string& path,
                                                      v1::UploadProfileRequest::Header header,
                                                      const CallOptions& call) const {
  const absl::StatusOr<std::string> bytes = ReadFile(path);
  if (!bytes.ok()) return bytes.status();
  return UploadProfileBytes(*bytes, std::move(header), call);
}

absl::StatusOr<v1::ImportProfileResponse> Client::ImportProfile(
    v1::ImportProfileRequest::Header header, std::string_view text, const CallOptions& call) const {
  Identify(header);
  TextStream stream(text);
  return connection_->ImportProfile(header, {.recording = stream}, TermsOf(options_, call));
}

namespace {

// The part of a path that says which rank's file it is, else the last one.
std::string NameOfFile(const std::string& path) {
  constexpr size_t kMaxNameBytes = 256;
  const size_t rank = path.rfind("rank");
  const size_t slash = path.rfind('/', rank);
  const std::string name = path.substr(slash == std::string::npos ? 0 : slash + 1);
  return name.substr(name.size() - std::min(name.size(), kMaxNameBytes));
}

// A stream that says how much was read of it and of those that count with it.
class CountedStream final : public ByteStream {
 public:
  // Borrows all; `read`: of all streams together.
  CountedStream(ByteStream& stream, const std::function<void(int64_t)>& on_read, int64_t& read)
      : stream_(stream), on_read_(on_read), all_read_(read) {}

  absl::Status Rewind() override {
    all_read_ -= read_;
    read_ = 0;
    return stream_.Rewind();
  }
  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    absl::StatusOr<size_t> read = stream_.Read(buffer, size);
    if (read.ok()) {
      read_ += static_cast<int64_t>(*read);
      all_read_ += static_cast<int64_t>(*read);
    }
    if (on_read_) on_read_(all_read_);
    return read;
  }

 private:
  ByteStream& stream_;
  const std::function<void(int64_t)>& on_read_;
  int64_t& all_read_;
  int64_t read_ = 0;
};

}  // namespace

absl::StatusOr<v1::ImportProfileResponse> Client::ImportProfileFiles(
    v1::ImportProfileRequest::Header header, const RecordingFiles& files,
    const CallOptions& call) const {
  std::vector<std::string> paths = files.recordings;
  if (paths.empty()) paths.push_back(files.recording);
  std::vector<std::unique_ptr<FileStream>> opened;
  for (const std::string& path : paths) {
    absl::StatusOr<std::unique_ptr<FileStream>> recording = FileStream::Open({.path = path});
    if (!recording.ok()) return recording.status();
    opened.push_back(*std::move(recording));
  }
  absl::StatusOr<std::unique_ptr<FileStream>> graph{std::unique_ptr<FileStream>()};
  if (!files.graph.empty()) graph = FileStream::Open({.path = files.graph});
  if (!graph.ok()) return graph.status();
  ImportStreams streams{
      .recording = *opened.front(), .graph = graph->get(), .on_read = files.on_read};
  for (size_t i = 0; i < paths.size() && paths.size() > 1; ++i)
    streams.recordings.emplace_back(opened[i].get(), paths[i]);
  return ImportProfileStreams(std::move(header), streams, call);
}

absl::StatusOr<v1::ImportProfileResponse> Client::ImportProfileStreams(
    v1::ImportProfileRequest::Header header, const ImportStreams& streams,
    const CallOptions& call) const {
  Identify(header);
  std::deque<CountedStream> counted;
  int64_t read = 0;
  ImportStreams sent{
      .recording = streams.recordings.empty()
                       ? counted.emplace_back(streams.recording, streams.on_read, read)
                       : streams.recording,
      .graph = streams.graph};
  for (const auto& [stream, path] : streams.recordings) {
    sent.recordings.emplace_back(&counted.emplace_back(*stream, streams.on_read, read),
                                 NameOfFile(path));
  }
  return connection_->ImportProfile(header, sent, TermsOf(options_, call));
}

absl::StatusOr<v1::Profile> Client::GetProfile(const v1::GetProfileRequest& request,
                                               const CallOptions& call) const {
  return Ask<v1::Profile>(request, call);
}

absl::StatusOr<v1::ListProfilesResponse> Client::ListProfiles(
    const v1::ListProfilesRequest& request, const CallOptions& call) const {
  return Ask<v1::ListProfilesResponse>(request, call);
}

absl::StatusOr<v1::ListProfilesResponse> Client::ListAllProfiles(v1::ListProfilesRequest request,
                                                                 size_t max,
                                                                 const CallOptions& call) const {
  return AllPages<v1::ListProfilesResponse>(
      std::move(request), {.max = max, .noun = "profiles", .reason = "TOO_MANY_PROFILES"},
      [&](const v1::ListProfilesRequest& page) { return ListProfiles(page, call); },
      [](v1::ListProfilesResponse& page) { return page.mutable_profiles(); });
}

absl::Status Client::DeleteProfile(const v1::DeleteProfileRequest& request,
                                   const CallOptions& call) const {
  google::protobuf::Empty nothing;
  return Call(request, nothing, call);
}

absl::StatusOr<v1::PredictThroughputResponse> Client::PredictThroughput(
    const v1::PredictThroughputRequest& request, const CallOptions& call) const {
  return Ask<v1::PredictThroughputResponse>(request, call);
}

absl::StatusOr<v1::RecommendWorkersResponse> Client::RecommendWorkers(
    const v1::RecommendWorkersRequest& request, const CallOptions& call) const {
  return Ask<v1::RecommendWorkersResponse>(request, call);
}

absl::StatusOr<v1::OptimizeOrderResponse> Client::OptimizeOrder(
    const v1::OptimizeOrderRequest& request, const CallOptions& call) const {
  return Ask<v1::OptimizeOrderResponse>(request, call);
}

absl::StatusOr<v1::OptimizeCommunicationResponse> Client::OptimizeCommunication(
    const v1::OptimizeCommunicationRequest& request, const CallOptions& call) const {
  return Ask<v1::OptimizeCommunicationResponse>(request, call);
}

absl::StatusOr<v1::AllocateWorkersResponse> Client::AllocateWorkers(
    const v1::AllocateWorkersRequest& request, const CallOptions& call) const {
  return Ask<v1::AllocateWorkersResponse>(request, call);
}

absl::StatusOr<v1::CompareModelsResponse> Client::CompareModels(
    const v1::CompareModelsRequest& request, const CallOptions& call) const {
  return Ask<v1::CompareModelsResponse>(request, call);
}

absl::StatusOr<v1::DiagnoseJobResponse> Client::DiagnoseJob(const v1::DiagnoseJobRequest& request,
                                                            const CallOptions& call) const {
  return Ask<v1::DiagnoseJobResponse>(request, call);
}

absl::StatusOr<v1::OptimizeJobResponse> Client::OptimizeJob(const v1::OptimizeJobRequest& request,
                                                            const CallOptions& call) const {
  return Ask<v1::OptimizeJobResponse>(request, call);
}

absl::StatusOr<v1::FitParsingOverheadResponse> Client::FitParsingOverhead(
    const v1::FitParsingOverheadRequest& request, const CallOptions& call) const {
  return Ask<v1::FitParsingOverheadResponse>(request, call);
}

absl::StatusOr<v1::RecommendLayoutResponse> Client::RecommendLayout(
    const v1::RecommendLayoutRequest& request, const CallOptions& call) const {
  return Ask<v1::RecommendLayoutResponse>(request, call);
}

absl::StatusOr<v1::FitRunsResponse> Client::FitRuns(const v1::FitRunsRequest& request,
                                                    const CallOptions& call) const {
  return Ask<v1::FitRunsResponse>(request, call);
}

absl::StatusOr<v1::FitCollectivesResponse> Client::FitCollectives(
    const v1::FitCollectivesRequest& request, const CallOptions& call) const {
  return Ask<v1::FitCollectivesResponse>(request, call);
}

absl::StatusOr<v1::FitContentionResponse> Client::FitContention(
    const v1::FitContentionRequest& request, const CallOptions& call) const {
  return Ask<v1::FitContentionResponse>(request, call);
}

absl::Status Client::GenerateTrace(const v1::GenerateTraceRequest& request, const TracePieces& take,
                                   const CallOptions& call) const {
  return connection_->GenerateTrace(request, take, TermsOf(options_, call));
}

JobClient Client::Jobs() const { return JobClient(connection_, options_); }

JobClient::JobClient(std::shared_ptr<Connection> connection, const ClientOptions& options)
    : connection_(std::move(connection)), options_(options) {}

absl::StatusOr<longrunning::Operation> JobClient::Start(v1::StartJobRequest request,
                                                        const CallOptions& call) const {
  Identify(request);
  return CallFor<longrunning::Operation>(*connection_, request, TermsOf(options_, call));
}

absl::StatusOr<longrunning::Operation> JobClient::Get(const std::string& name,
                                                      const CallOptions& call) const {
  longrunning::GetOperationRequest request;
  request.set_name(name);
  return CallFor<longrunning::Operation>(*connection_, request, TermsOf(options_, call));
}

absl::StatusOr<longrunning::Operation> JobClient::Wait(const std::string& name,
                                                       const CallOptions& call) const {
  return connection_->AwaitOperation(name, TermsOf(options_, call));
}

absl::Status JobClient::Cancel(const std::string& name, const CallOptions& call) const {
  longrunning::CancelOperationRequest request;
  request.set_name(name);
  google::protobuf::Empty nothing;
  return CallMethod(*connection_, request, nothing, TermsOf(options_, call));
}

absl::Status JobClient::Delete(const std::string& name, const CallOptions& call) const {
  longrunning::DeleteOperationRequest request;
  request.set_name(name);
  google::protobuf::Empty nothing;
  return CallMethod(*connection_, request, nothing, TermsOf(options_, call));
}

absl::StatusOr<longrunning::ListOperationsResponse> JobClient::List(
    const longrunning::ListOperationsRequest& request, const CallOptions& call) const {
  return CallFor<longrunning::ListOperationsResponse>(*connection_, request,
                                                      TermsOf(options_, call));
}

absl::StatusOr<longrunning::ListOperationsResponse> JobClient::ListAll(
    longrunning::ListOperationsRequest request, size_t max, const CallOptions& call) const {
  return AllPages<longrunning::ListOperationsResponse>(
      std::move(request), {.max = max, .noun = "jobs", .reason = "TOO_MANY_JOBS"},
      [&](const longrunning::ListOperationsRequest& page) { return List(page, call); },
      [](longrunning::ListOperationsResponse& page) { return page.mutable_operations(); });
}

v1::JobMetadata GetJobMetadata(const longrunning::Operation& job) {
  v1::JobMetadata metadata;
  if (!job.metadata().UnpackTo(&metadata)) metadata.Clear();
  return metadata;
}

absl::Status GetJobStatus(const longrunning::Operation& job) {
  return job.has_error() ? ToStatus(job.error()) : absl::OkStatus();
}

}  // namespace stepcast::client
