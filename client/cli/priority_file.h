// Files that say which transfer goes first: a line each, `name<TAB>rank`. Empty lines, and those that begin with #, mean nothing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#include "stepcast/order.h"

namespace stepcast::client {

// Failure: INVALID_ARGUMENT, with the number of the line: no tab, no rank, a name that comes twice.
absl::StatusOr<std::map<std::string, int32_t>> ParsePriorities(std::string_view text);

// What ParsePriorities reads, in the order of the transfers.
std::string PriorityText(const TransferOrderResult& order);

}  // namespace stepcast::client
