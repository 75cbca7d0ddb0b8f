// A peer's result as bytes, to leave the process that made it.
#pragma once

#include <string>

#include "tests/bench/peers/peer_result.h"

namespace stepcast::bench {

std::string ToBytes(const PeerResult& result);
// REQUIRES: ToBytes made them, on the same machine.
PeerResult FromBytes(const std::string& bytes);

}  // namespace stepcast::bench
