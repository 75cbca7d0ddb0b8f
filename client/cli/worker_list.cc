#include "client/cli/worker_list.h"

#include <charconv>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/characters.h"

namespace stepcast::client {

namespace {

constexpr size_t kMaxCounts = 1024;

bool ParseCount(std::string_view text, int32_t& count) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && end == text.data() + text.size() && count >= 1;
}

// One count or one range.
bool ParsePart(std::string_view part, int32_t& first, int32_t& last) {
  const size_t dash = part.find('-');
  if (dash == std::string_view::npos) {
    if (!ParseCount(part, first)) return false;
    last = first;
    return true;
  }
  return ParseCount(part.substr(0, dash), first) && ParseCount(part.substr(dash + 1), last) &&
         first <= last;
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> ParseWorkerList(std::string_view text) {
  std::vector<int32_t> counts;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, comma - at);
    at = comma + 1;
    int32_t first = 0;
    int32_t last = 0;
    if (!ParsePart(part, first, last)) {
      return absl::InvalidArgumentError(absl::StrCat(
          InQuotes(part), " is no number of workers: write for instance 1-16 or 1,2,4"));
    }
    if (counts.size() + static_cast<size_t>(last - first) + 1 > kMaxCounts) {
      return absl::InvalidArgumentError(
          absl::StrCat("more than ", kMaxCounts, " numbers of workers"));
    }
    for (int32_t count = first; count <= last; ++count) counts.push_back(count);
  }
  return counts;
}

}  // namespace stepcast::client
