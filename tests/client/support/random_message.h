// Random content for any message of the contract.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <random>

namespace stepcast::client {

// Fills every field, down to nested messages: numbers of their whole range, enums of their known
// values, strings of up to eight letters, lists of one to three. Every `optional` field and every
// message is set in one fill in two, and one member of each oneof; with `all`, in every fill.
void FillRandomly(google::protobuf::Message& message, std::mt19937_64& generator, bool all = false);

}  // namespace stepcast::client
