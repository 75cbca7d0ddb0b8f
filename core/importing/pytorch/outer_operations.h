// The operations of a pass that are within no other, and those that the backward pass runs again.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/importing/pytorch/saved_tensors.h"

namespace stepcast {

// The begin of names of the library's operations.
inline constexpr std::string_view kTensorLibrary = "aten::";
bool IsOfTensorLibrary(std::string_view name);

// An operation within no other, but for those of the library that nothing is known of but what
// they call.
struct OuterOperation {
  const TensorOperation* operation = nullptr;
  // Bytes of an element of a dropout's mask; -1: a copy of what it changes in place is kept, as the
  // copying within it tells; 0: neither is known.
  int64_t mask_bytes = 0;
};

// Operations that begin in a span of time.
std::vector<OuterOperation> OuterOperations(const TensorOperations& tensors, int64_t from_ns,
                                            int64_t to_ns);

// Pieces by operation of the forward pass; 0: it does not run again. Those that do run again in the
// backward pass in the same order, the last piece first, and after each the backward pass runs its
// functions. The backward pass itself records no sequence numbers, so that its own operations are
// not among them; what runs beside its functions is another forward pass. REQUIRES: nodes by
// start.
std::vector<size_t> PiecesRunAgain(const TensorOperations& tensors,
                                   const std::vector<OuterOperation>& forward,
                                   const std::vector<BackwardNode>& nodes);

}  // namespace stepcast
