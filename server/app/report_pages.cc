#include "server/app/report_pages.h"

#include <arpa/inet.h>
#include <google/protobuf/util/time_util.h>
#include <grpcpp/client_context.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

#include "core/base/error.h"
#include "server/report/page.h"
#include "server/report/report.h"
#include "stepcast/v1/prediction_service.grpc.pb.h"
#include "stepcast/v1/profile_service.grpc.pb.h"

namespace stepcast::server {

namespace {

constexpr char kFolder[] = "/report/profiles/";
// Bytes that the server takes as a call's metadata, all together.
constexpr size_t kMaxCredentialBytes = 4096;

// The status that the service meant, with its reason, faults and delay.
absl::Status StatusOf(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  ErrorDetails details;
  google::rpc::Status wire;
  if (!wire.ParseFromString(status.error_details())) wire.Clear();
  for (const google::protobuf::Any& any : wire.details()) {
    google::rpc::ErrorInfo info;
    google::rpc::BadRequest request;
    google::rpc::RetryInfo retry;
    if (any.UnpackTo(&info)) details.reason = info.reason();
    if (any.UnpackTo(&retry)) {
      details.retry_delay_ms = static_cast<int>(
          google::protobuf::util::TimeUtil::DurationToMilliseconds(retry.retry_delay()));
    }
    if (!any.UnpackTo(&request)) continue;
    for (const auto& violation : request.field_violations())
      details.faults.push_back(
          {.field = violation.field(), .description = violation.description()});
  }
  return MakeError(static_cast<absl::StatusCode>(status.error_code()), status.error_message(),
                   std::move(details));
}

absl::Status NotServing() {
  return MakeError(absl::StatusCode::kUnavailable, "starting or shutting down",
                   {.reason = "NOT_SERVING"});
}

// This server, asked as by its caller.
class OwnSource final : public ReportSource {
 public:
  using Deadline = std::chrono::system_clock::time_point;

  OwnSource(const std::shared_ptr<grpc::Channel>& channel,
            const std::vector<std::string>& authorizations, Deadline deadline,
            const std::atomic<bool>& stopped)
      : stopped_(stopped),
        profiles_(v1::ProfileService::NewStub(channel)),
        predictions_(v1::PredictionService::NewStub(channel)),
        authorizations_(authorizations),
        deadline_(deadline) {}

  absl::StatusOr<v1::Profile> GetProfile(const v1::GetProfileRequest& request) override {
    return Ask<v1::Profile>(*profiles_, &v1::ProfileService::Stub::GetProfile, request);
  }
  absl::StatusOr<v1::PredictThroughputResponse> PredictThroughput(
      const v1::PredictThroughputRequest& request) override {
    return Ask<v1::PredictThroughputResponse>(
        *predictions_, &v1::PredictionService::Stub::PredictThroughput, request);
  }
  absl::StatusOr<v1::RecommendWorkersResponse> RecommendWorkers(
      const v1::RecommendWorkersRequest& request) override {
    return Ask<v1::RecommendWorkersResponse>(
        *predictions_, &v1::PredictionService::Stub::RecommendWorkers, request);
  }
  absl::StatusOr<v1::OptimizeOrderResponse> OptimizeOrder(
      const v1::OptimizeOrderRequest& request) override {
    return Ask<v1::OptimizeOrderResponse>(*predictions_,
                                          &v1::PredictionService::Stub::OptimizeOrder, request);
  }
  absl::StatusOr<v1::OptimizeCommunicationResponse> OptimizeCommunication(
      const v1::OptimizeCommunicationRequest& request) override {
    return Ask<v1::OptimizeCommunicationResponse>(
        *predictions_, &v1::PredictionService::Stub::OptimizeCommunication, request);
  }
  absl::StatusOr<v1::CompareModelsResponse> CompareModels(
      const v1::CompareModelsRequest& request) override {
    return Ask<v1::CompareModelsResponse>(*predictions_,
                                          &v1::PredictionService::Stub::CompareModels, request);
  }
  absl::StatusOr<v1::DiagnoseJobResponse> DiagnoseJob(
      const v1::DiagnoseJobRequest& request) override {
    return Ask<v1::DiagnoseJobResponse>(*predictions_, &v1::PredictionService::Stub::DiagnoseJob,
                                        request);
  }
  absl::Status GenerateTrace(const v1::GenerateTraceRequest& request,
                             const std::function<absl::Status(std::string_view)>& take) override {
    if (stopped_) return NotServing();
    grpc::ClientContext context;
    Prepare(context);
    const auto reader = predictions_->GenerateTrace(&context, request);
    v1::GenerateTraceResponse piece;
    absl::Status taken;
    while (taken.ok() && reader->Read(&piece)) taken = take(piece.chunk());
    if (!taken.ok()) context.TryCancel();
    const absl::Status status = StatusOf(reader->Finish());
    return taken.ok() ? status : taken;
  }

 private:
  void Prepare(grpc::ClientContext& context) const {
    context.set_deadline(deadline_);
    for (const std::string& authorization : authorizations_)
      context.AddMetadata("authorization", authorization);
  }

  template <typename Reply, typename Stub, typename Method, typename Request>
  absl::StatusOr<Reply> Ask(Stub& stub, Method method, const Request& request) const {
    if (stopped_) return NotServing();
    grpc::ClientContext context;
    Prepare(context);
    Reply reply;
    const absl::Status status = StatusOf((stub.*method)(&context, request, &reply));
    if (!status.ok()) return status;
    return reply;
  }

  const std::atomic<bool>& stopped_;
  const std::unique_ptr<v1::ProfileService::Stub> profiles_;
  const std::unique_ptr<v1::PredictionService::Stub> predictions_;
  const std::vector<std::string>& authorizations_;
  const Deadline deadline_;
};

struct HttpCode {
  int code;
  const char* reason;
};

HttpCode HttpCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnauthenticated:
      return {401, "Unauthorized"};
    case absl::StatusCode::kPermissionDenied:
      return {403, "Forbidden"};
    case absl::StatusCode::kNotFound:
      return {404, "Not Found"};
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return {400, "Bad Request"};
    case absl::StatusCode::kResourceExhausted:
      return {429, "Too Many Requests"};
    case absl::StatusCode::kUnavailable:
      return {503, "Service Unavailable"};
    case absl::StatusCode::kDeadlineExceeded:
      return {504, "Gateway Timeout"};
    default:
      return {500, "Internal Server Error"};
  }
}

HttpReply Refusal(const absl::Status& status) {
  const ErrorDetails details = DetailsOf(status);
  const HttpCode code = HttpCodeOf(status);
  HttpReply reply{.code = code.code, .reason = code.reason};
  reply.body = absl::StrCat(absl::StatusCodeToString(status.code()), ": ",
                            details.reason.empty() ? "" : absl::StrCat(details.reason, ": "),
                            status.message(), "\n");
  for (const Fault& fault : details.faults)
    absl::StrAppend(&reply.body, "  ", fault.field, ": ", fault.description, "\n");
  if (code.code == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  const bool is_for_later = code.code == 429 || code.code == 503;
  if (is_for_later) {
    const int delay_ms = details.retry_delay_ms > 0 ? details.retry_delay_ms : kRetryDelayMs;
    reply.headers.emplace_back("Retry-After", absl::StrCat((delay_ms + 999) / 1000));
  }
  return reply;
}

// Credentials that gRPC takes as metadata; any others it would take for a fault of this program.
absl::Status CheckCredentials(const std::vector<std::string>& authorizations) {
  for (const std::string& authorization : authorizations) {
    const bool is_plain = std::all_of(authorization.begin(), authorization.end(),
                                      [](char c) { return c >= 0x20 && c <= 0x7e; });
    if (!is_plain || authorization.size() > kMaxCredentialBytes)
      return MakeError(absl::StatusCode::kUnauthenticated, "authorization must be `Bearer TOKEN`",
                       {.reason = "CREDENTIALS_MALFORMED", .metadata = {{"scheme", "Bearer"}}});
  }
  return absl::OkStatus();
}

// A name that any site may point at this machine is not trusted to mean it: a page of that site
// could read what only this machine may.
bool IsLocalName(std::string host) {
  if (const size_t colon = host.rfind(':');
      colon != std::string::npos && host.find(']', colon) == std::string::npos)
    host.resize(colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  in_addr v4{};
  in6_addr v6{};
  return absl::EqualsIgnoreCase(host, "localhost") || inet_pton(AF_INET, host.c_str(), &v4) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &v6) == 1;
}

}  // namespace

void ReportPages::Serve(std::shared_ptr<grpc::Channel> channel) {
  MutexLock lock(mutex_);
  channel_ = std::move(channel);
}

void ReportPages::Stop() {
  stopped_ = true;
  MutexLock lock(mutex_);
  channel_ = nullptr;
}

HttpReply ReportPages::Answer(const HttpRequest& request) {
  if (options_.only_local && !IsLocalName(request.host)) {
    return {.code = 421,
            .reason = "Misdirected Request",
            .body = "This server is asked by an address or as localhost, not by another name.\n"};
  }
  if (!absl::StartsWith(request.path, kFolder))
    return Refusal(MakeError(absl::StatusCode::kNotFound, "there is no such page",
                             {.reason = "PAGE_UNKNOWN"}));
  absl::StatusOr<ReportRequest> asked = ReadReportQuery(
      std::string_view(request.path).substr(std::string_view(kFolder).size()), request.query);
  if (!asked.ok()) return Refusal(asked.status());
  asked->made_at_seconds = absl::ToUnixSeconds(absl::Now());
  if (const absl::Status shown = CheckCredentials(request.authorizations); !shown.ok())
    return Refusal(shown);

  std::shared_ptr<grpc::Channel> channel;
  std::shared_ptr<void> place;
  {
    MutexLock lock(mutex_);
    channel = channel_;
    // One holder is this object.
    if (pages_.use_count() <= options_.max_pages) place = pages_;
  }
  if (channel == nullptr) return Refusal(NotServing());
  if (place == nullptr)
    return Refusal(MakeError(
        absl::StatusCode::kUnavailable,
        absl::StrCat("as many pages are being made as may be at one time, ", options_.max_pages),
        {.reason = "TOO_MANY_PAGES", .retry_delay_ms = kRetryDelayMs}));
  const auto deadline = std::chrono::system_clock::now() +
                        std::chrono::duration_cast<std::chrono::system_clock::duration>(
                            std::chrono::duration<double>(options_.max_seconds));
  OwnSource source(channel, request.authorizations, deadline, stopped_);
  absl::StatusOr<ReportPage> page = MakeReportPage(source, *asked);
  HttpReply reply = page.ok() ? HttpReply{.type = "text/html; charset=utf-8",
                                          .headers = {{"Content-Security-Policy",
                                                       PagePolicy() + "; frame-ancestors 'none'"}},
                                          .body = std::move(page->html)}
                              : Refusal(page.status());
  reply.headers.emplace_back("X-Content-Type-Options", "nosniff");
  reply.headers.emplace_back("Referrer-Policy", "no-referrer");
  reply.held = std::move(place);
  return reply;
}

}  // namespace stepcast::server
