// Error statuses that name the field and the value: an absl::Status with the details that AIP-193
// asks for.
//
// A reason is UPPER_SNAKE_CASE and is part of the contract; the message is for people. Details
// travel as one payload of the status, so every layer passes them on untouched, and only the edge
// of the service turns them into wire messages.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "core/base/message_text.h"

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

// The faults found so far in one input, and the descriptions of those at limits that were passed.

template <typename Part>
const Part& ValueOf(const Part& part) {
  return part;
}
template <typename Part>
const Part& ValueOf(const std::optional<Part>& part) {
  return *part;
}

// A bounded list of faults: it keeps the first kMaxKept and drops the rest, so that a hostile input
// of a million faults does not become gigabytes of text.
class FaultList {
 public:
  static constexpr size_t kMaxKept = 1000;

  void Add(std::string field, std::string description) {
    if (!full())
      faults_.push_back({.field = std::move(field), .description = std::move(description)});
  }
  // A fault of these parts where something is wrong; of optional ones, which must be there then,
  // what they hold.
  template <typename... Parts>
  void AddIf(bool is_wrong, const std::string& field, const Parts&... description) {
    if (is_wrong) Add(field, absl::StrCat(ValueOf(description)...));
  }
  bool empty() const { return faults_.empty(); }
  // Nothing is kept any more: what would only be dropped need not be looked for.
  bool full() const { return faults_.size() >= kMaxKept; }
  std::vector<Fault> Take() && { return std::move(faults_); }

 private:
  std::vector<Fault> faults_;
};

// Names the value, the limit and what it is set to.
inline std::string OverLimit(int64_t value, const char* limit, int64_t max) {
  return absl::StrCat(value, " is above the limit ", limit, " = ", max);
}

// The same for a text of so many bytes.
inline std::string TooLong(const std::string& text, const char* limit, size_t max) {
  return absl::StrCat(Quoted(text), " has ", text.size(), " bytes, which is above the limit ",
                      limit, " = ", max);
}

}  // namespace stepcast
