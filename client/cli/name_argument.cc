#include "client/cli/name_argument.h"

#include <algorithm>

namespace stepcast::client {

std::optional<std::string> NameIn(std::string_view collection, std::string_view argument) {
  if (argument.substr(0, collection.size()) == collection)
    argument.remove_prefix(collection.size());
  const auto is_of_ids = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  if (argument.empty() || !std::all_of(argument.begin(), argument.end(), is_of_ids))
    return std::nullopt;
  return std::string(collection).append(argument);
}

}  // namespace stepcast::client
