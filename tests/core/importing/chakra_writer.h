// Chakra execution traces, as converters write them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/importing/chakra/chakra_reader.h"

namespace stepcast::testing {

// Protobuf messages, each after its length; `packed`: their lists of numbers.
std::string WriteChakraWire(const std::vector<ChakraNode>& nodes, bool packed = true);
// The same as JSON: with the keys of a workload graph, or with attributes and numbers in texts as
// proto JSON has them.
std::string WriteChakraJson(const std::vector<ChakraNode>& nodes, bool attributes = false);

// A step of one rank, a function of its seed: computations on a device or two streams of it that
// wait for each other, gradients that are reduced, host nodes that launch all of them, and an
// optimizer that waits for what was reduced. Ids are in no order, one of them is 0.
std::vector<ChakraNode> RandomChakraTrace(uint64_t seed);

}  // namespace stepcast::testing
