#include "client/cli/priority_file.h"

#include <charconv>

#include "absl/strings/str_cat.h"
#include "client/cli/characters.h"

namespace stepcast::client {

namespace {

absl::Status Refuse(int number, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", std::string(why)));
}

}  // namespace

absl::StatusOr<std::map<std::string, int32_t>> ParsePriorities(std::string_view text) {
  std::map<std::string, int32_t> priorities;
  int number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    const size_t tab = line.rfind('\t');
    if (tab == std::string_view::npos) return Refuse(number, "no tab between name and rank");
    const std::string_view rank_text = line.substr(tab + 1);
    int32_t rank = 0;
    const auto [stop, error] =
        std::from_chars(rank_text.data(), rank_text.data() + rank_text.size(), rank);
    if (error != std::errc() || stop != rank_text.data() + rank_text.size()) {
      return Refuse(number, absl::StrCat(InQuotes(rank_text), " is no rank"));
    }
    const std::string name(line.substr(0, tab));
    if (!priorities.emplace(name, rank).second)
      return Refuse(number, absl::StrCat(InQuotes(name), " comes twice"));
  }
  return priorities;
}

std::string PriorityText(const TransferOrderResult& order) {
  std::string text;
  for (const RankedTransfer& transfer : order.transfers)
    absl::StrAppend(&text, transfer.name, "\t", transfer.server_rank, "\n");
  return text;
}

}  // namespace stepcast::client
