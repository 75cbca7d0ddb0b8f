// The faults found so far in one input, and the descriptions of those at limits that were passed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"

namespace stepcast {

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
