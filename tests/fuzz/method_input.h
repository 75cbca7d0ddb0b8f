// Inputs that are a request of one of several methods: the first byte says which, the rest is the
// message.
//
// Threads: pure functions.
#pragma once

#include <google/protobuf/message.h>

#include <cstddef>
#include <string>

#include "absl/types/span.h"

#include "tests/fuzz/fuzz_target.h"

namespace stepcast::fuzz {

// Any first byte means one of the methods.
inline size_t MethodOf(char first, size_t methods) {
  return static_cast<unsigned char>(first) % methods;
}

inline std::string MethodInput(size_t method, const google::protobuf::Message& request) {
  return static_cast<char>(method) + request.SerializeAsString();
}

// Mutates the message as one of its method's type, which is that of its prototype; one time in 32
// the whole input, byte by byte.
std::string MutateRequest(absl::Span<const google::protobuf::Message* const> prototypes,
                          std::string input, const Mutation& mutation);

}  // namespace stepcast::fuzz
