// Files that say which transfer goes first: a line each, `name<TAB>rank`. Empty lines, and those
// that begin with #, mean nothing.
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

// What ParsePriorities reads, in the order of the transfers: each with how many transfers from the
// same server go before it, which is what TicTac's enforcement at the sender counts to (SysML
// 2019, 5.1).
std::string PriorityText(const TransferOrderResult& order);

}  // namespace stepcast::client
