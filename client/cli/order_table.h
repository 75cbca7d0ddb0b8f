// Orders of transfers, as people read them.
#pragma once

#include <cstddef>
#include <string>

#include "stepcast/order.h"

namespace stepcast::client {

// How many transfers are shown unless somebody says otherwise.
inline constexpr size_t kDefaultTransfers = 10;

// A row a method with the chosen one marked, what the bounds are, and the first `transfers_max`
// transfers of the chosen order.
std::string OrderText(const OptimizeOrderResponse& response, size_t transfers_max);

}  // namespace stepcast::client
