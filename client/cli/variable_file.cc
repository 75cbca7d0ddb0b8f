#include "client/cli/variable_file.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/characters.h"
#include "client/cli/quantity.h"

namespace stepcast::client {

absl::StatusOr<std::map<std::string, int64_t>> ParseVariableSizes(std::string_view text) {
  std::map<std::string, int64_t> sizes;
  int64_t number = 0;
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ++number;
    const absl::string_view content = absl::StripAsciiWhitespace(line);
    if (content.empty() || content.front() == '#') continue;
    // Of the last space on, since a size has none.
    const size_t space = content.find_last_of(" \t");
    if (space == absl::string_view::npos)
      return absl::InvalidArgumentError(absl::StrCat("line ", number, " is not `NAME BYTES`"));
    const absl::string_view bytes = content.substr(space + 1);
    const absl::StatusOr<int64_t> size = ParseBytes({bytes.data(), bytes.size()});
    if (!size.ok())
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", size.status().message()));
    const std::string name(absl::StripTrailingAsciiWhitespace(content.substr(0, space)));
    if (!sizes.emplace(name, *size).second)
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", InQuotes(name), " is there twice"));
  }
  return sizes;
}

}  // namespace stepcast::client
