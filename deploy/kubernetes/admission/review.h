// AdmissionReviews of Kubernetes (admission.k8s.io/v1, and v1beta1), as a webhook reads and answers
// them.
//
// A review may have megabytes, of which little matters here. Reading keeps nothing but the fields
// that a training job's counts, labels and annotations are in (kKeptFields in review.cc), so that
// memory does not grow with what is skipped, however deep it is nested.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace stepcast::admission {

// Nesting beyond which a review is refused: more than objects of Kubernetes have.
inline constexpr int kMaxDepth = 512;
// Values that are kept at most; a job of any kind has fewer than a hundred.
inline constexpr int kMaxKeptValues = 20'000;

struct Review {
  std::string api_version;  // "admission.k8s.io/v1"
  std::string uid;          // of the request, which the answer repeats
  std::string operation;    // "CREATE"
  std::string group;        // of the object's kind
  std::string kind;         // "PyTorchJob"
  std::string sub_resource;
  std::string name;  // of the object; empty where the cluster makes it up
  bool dry_run = false;
  nlohmann::json object;  // those fields of it that are kept; null: the request has none
};

// INVALID_ARGUMENT, reason REVIEW_INVALID, saying what is wrong: no JSON, nested deeper than
// kMaxDepth, no AdmissionReview of a known version, no request, no uid.
absl::StatusOr<Review> ReadReview(std::string_view text);

// The answer to a review. Admits always: a webhook that only advises has nothing to refuse.
struct ReviewAnswer {
  nlohmann::json patch = nlohmann::json::array();  // RFC 6902; empty: the object stays as it is
  std::vector<std::string> warnings;               // printed by kubectl, a line each
  std::vector<std::pair<std::string, std::string>> audit;  // annotations of the audit event
};

// The AdmissionReview that is sent back, of the version that was asked in.
std::string WriteAnswer(const Review& review, const ReviewAnswer& answer);

}  // namespace stepcast::admission
