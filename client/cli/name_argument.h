// The name of a resource as people give it, with or without its collection.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stepcast::client {

// `collection` and the id, of either `ID` or `COLLECTION/ID`; none for what cannot be one.
// `collection` ends in a slash.
std::optional<std::string> NameIn(std::string_view collection, std::string_view argument);

}  // namespace stepcast::client
