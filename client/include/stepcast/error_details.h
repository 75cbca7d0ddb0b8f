// The details of an error of the service, beyond its code and message.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/rpc/status.pb.h"

namespace stepcast::client {

// One thing that is wrong with a request.
struct FieldViolation {
  std::string field;        // path, for instance "profile.operations[17].waiting_for[0]"
  std::string description;  // with the offending value

  friend bool operator==(const FieldViolation&, const FieldViolation&) = default;
};

// A named limit that was reached.
struct QuotaViolation {
  std::string subject;
  std::string description;

  friend bool operator==(const QuotaViolation&, const QuotaViolation&) = default;
};

// The resource an error is about.
struct ErrorResource {
  std::string type;
  std::string name;
  std::string description;

  friend bool operator==(const ErrorResource&, const ErrorResource&) = default;
};

struct ErrorDetails {
  std::string reason;  // UPPER_SNAKE_CASE, stable; empty: the status carries no details
  std::string domain;  // "stepcast", for errors of the service
  std::map<std::string, std::string> metadata;  // the values
  std::vector<FieldViolation> violations;       // of INVALID_ARGUMENT
  std::vector<QuotaViolation> quota_violations;
  std::optional<ErrorResource> resource;
  std::optional<std::chrono::nanoseconds> retry_delay;  // how long to wait before trying again

  friend bool operator==(const ErrorDetails&, const ErrorDetails&) = default;
};

// The details that a status returned by Client carries; empty for any other. Never fails: a detail
// that cannot be read is left out.
//
// On the wire they are google.rpc's ErrorInfo, BadRequest, QuotaFailure, ResourceInfo and
// RetryInfo, and the status holds each as a payload under its type URL
// (`type.googleapis.com/google.rpc.ErrorInfo`), which is also where details of other types are.
ErrorDetails GetErrorDetails(const absl::Status& status);

// An error that a reply carries, for instance of one of several jobs, with the same payloads.
absl::Status ToStatus(const google::rpc::Status& error);

}  // namespace stepcast::client
