// Metrics of calls: what gRPC was asked and how it answered, and what the server turned away.
#pragma once

#include <grpcpp/support/server_interceptor.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/clock.h"

namespace stepcast::server {

// Status codes as metrics label them: in Go's spelling, which dashboards expect.
inline constexpr std::array<std::string_view, 17> kCodeNames{
    "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated"};

// Name of a canonical code's number; "Unknown" for any other.
constexpr std::string_view CodeName(int code) {
  return code >= 0 && code < static_cast<int>(kCodeNames.size())
             ? kCodeNames[static_cast<size_t>(code)]
             : "Unknown";
}

// A method of the server; `type` is unary, client_stream, server_stream or bidi_stream.
struct MethodLabels {
  std::string service;
  std::string method;
  std::string type;
};

// Counters of calls by method and code, under go-grpc-prometheus's names.
//
// Every series of a known method is there from the start, at zero. A client can invent methods: all
// unknown ones are one series, `other`. Threads: safe; no locks but the metrics' own. Cost: under a
// microsecond a call.
class CallMetrics {
 public:
  // The registry must outlive it.
  CallMetrics(prometheus::Registry& registry, const std::vector<MethodLabels>& methods);

  // The series of one method.
  struct Method {
    prometheus::Counter* started = nullptr;
    prometheus::Counter* received = nullptr;
    prometheus::Counter* sent = nullptr;
    prometheus::Histogram* seconds = nullptr;
    std::array<prometheus::Counter*, kCodeNames.size()> handled{};
  };

  // `path` is "/service/method".
  Method& Of(std::string_view path);

 private:
  Method Make(const MethodLabels& labels);

  prometheus::Family<prometheus::Counter>& started_;
  prometheus::Family<prometheus::Counter>& handled_;
  prometheus::Family<prometheus::Counter>& received_;
  prometheus::Family<prometheus::Counter>& sent_;
  prometheus::Family<prometheus::Histogram>& seconds_;
  std::map<std::string, Method, std::less<>> methods_;  // unchanged after construction
  Method other_;
};

// An interceptor by which gRPC reports every call, of every service, to the call metrics.
// Borrows both, for as long as the gRPC server lives.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallInterceptorFactory(
    CallMetrics& metrics, const Clock& clock);

// Reasons for which a call is turned away: not for what it asked, but for who asked, or for what
// there was to do already.
inline constexpr std::string_view kRejectionReasons[] = {"QUEUE_FULL",
                                                         "DEADLINE_UNREACHABLE",
                                                         "MEMORY_EXHAUSTED",
                                                         "STORE_FULL",
                                                         "DISK_FULL",
                                                         "CLIENT_QUOTA_EXCEEDED",
                                                         "JOB_TOO_LONG",
                                                         "STORE_UNAVAILABLE",
                                                         "SPOOL_UNAVAILABLE",
                                                         "TOO_MANY_WAITING",
                                                         "SHUTTING_DOWN",
                                                         "CREDENTIALS_MISSING",
                                                         "CREDENTIALS_MALFORMED",
                                                         "TOKEN_UNKNOWN",
                                                         "CERTIFICATE_UNKNOWN",
                                                         "ROLE_TOO_LOW"};

// Counters of the calls that the server turned away, by reason.
//
// Reasons that are not among kRejectionReasons are no rejections. Every series is there from the
// start, at zero. Threads: safe.
class RejectionMetrics {
 public:
  // The registry must outlive it.
  explicit RejectionMetrics(prometheus::Registry& registry);

  // Calls that failed, each once: the reason in its error.
  void OnFailure(std::string_view reason);

 private:
  std::map<std::string, prometheus::Counter*, std::less<>>
      by_reason_;  // unchanged after construction
};

}  // namespace stepcast::server
