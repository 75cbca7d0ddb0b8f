// Error statuses that name the field and the value: an absl::Status with the details that AIP-193
// asks for.
//
// A reason is UPPER_SNAKE_CASE and is part of the contract; the message is for people. Details
// travel as one payload of the status, so every layer passes them on untouched, and only the edge
// of the service turns them into wire messages.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace stepcast {

// One thing that is wrong with an input.
struct Fault {
  std::string
      field;  // path, for instance "operations[17].waiting_for[0]"; empty: the input as a whole
  std::string description;  // with the offending value

  friend bool operator==(const Fault&, const Fault&) = default;
};

// The resource an error is about.
struct ResourceDetail {
  std::string type;
  std::string name;

  friend bool operator==(const ResourceDetail&, const ResourceDetail&) = default;
};

// The retry delay that a caller is told where nothing says how long to wait.
inline constexpr int kRetryDelayMs = 1000;

struct ErrorDetails {
  std::string reason;                           // empty: the status carries no details
  std::map<std::string, std::string> metadata;  // the values
  std::vector<Fault> faults;
  size_t faults_left_out = 0;  // found beyond those listed
  ResourceDetail resource;     // empty type: none
  int retry_delay_ms = 0;      // 0: none
  std::string quota_subject;   // the named limit that was reached; empty: none

  friend bool operator==(const ErrorDetails&, const ErrorDetails&) = default;
};

// At most so many faults, and so many bytes of them, are kept in a status: it travels in metadata,
// which has limits.
inline constexpr size_t kMaxFaults = 20;
inline constexpr size_t kMaxFaultBytes = 4096;

absl::Status MakeError(absl::StatusCode code, std::string_view message, ErrorDetails details);

// INVALID_ARGUMENT with every fault up to the limits above; the message names the first and counts
// the rest. REQUIRES: !faults.empty().
absl::Status FaultsError(std::string_view reason, std::vector<Fault> faults);

// The details of a status made above; default-constructed for any other.
ErrorDetails DetailsOf(const absl::Status& status);

// The same faults under a longer path: "steps[0]" becomes "profile.steps[0]". Other statuses are
// returned as they are.
absl::Status UnderPath(std::string_view prefix, const absl::Status& status);

}  // namespace stepcast
