// The descriptions of faults at limits that were passed.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

#include "core/base/quoted.h"

namespace stepcast {

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
