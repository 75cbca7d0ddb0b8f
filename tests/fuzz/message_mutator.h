// Messages changed field by field, so that what is made of one is nearly always one again.
//
// By reflection, for any type. A function of the message and the generator. Threads: none.
#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "tests/fuzz/fuzz_target.h"

namespace stepcast::fuzz {

// Sets, clears, adds, leaves out, repeats or moves one value somewhere in `message`. Numbers become
// ones at an edge as often as any; of text in fields of type string every byte is ASCII, since a
// message with anything else is refused before it is looked at.
void MutateMessage(google::protobuf::Message& message, const Mutation& mutation);

// The same to a serialised message of `prototype`'s type; to its bytes one time in eight.
std::string MutateSerialised(const google::protobuf::Message& prototype, std::string bytes,
                             const Mutation& mutation);

}  // namespace stepcast::fuzz
