// The source of a request's profile.
//
// Threads: pure functions.
#pragma once

#include "server/convert/prediction_requests.h"
#include "server/convert/profile_convert.h"

namespace stepcast::server {

// Of any message with a `source`: they are all the same.
template <typename Request>
ProfileSource SourceOf(const Request& wire) {
  if (wire.has_inline_profile()) return FromWire(wire.inline_profile());
  if (wire.has_profile()) return wire.profile();
  return std::monostate();
}

}  // namespace stepcast::server
