#include "tests/fuzz/method_input.h"

#include <utility>

#include "tests/fuzz/message_mutator.h"

namespace stepcast::fuzz {

std::string MutateRequest(absl::Span<const google::protobuf::Message* const> prototypes,
                          std::string input, const Mutation& mutation) {
  if (input.empty() || mutation.random.Below(32) == 0) return mutation.bytes(std::move(input));
  return input[0] + MutateSerialised(*prototypes[MethodOf(input[0], prototypes.size())],
                                     input.substr(1), mutation);
}

}  // namespace stepcast::fuzz
