// The tensors that PyTorch's autograd keeps of a forward pass, told from the shapes of its
// operations' inputs.
//
// Source: torch/csrc/autograd, tools/autograd/derivatives.yaml of PyTorch 1.8 to 2.5: what each
// operation's gradient needs. Threads: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"

namespace stepcast {

// An operation that autograd has a gradient of, as it was recorded.
struct TensorOperation {
  static constexpr size_t kInputs = 4;

  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t sequence = 0;                             // of the node that it made, or the next one did
  std::array<int32_t, kInputs> shapes = {};         // of its first inputs; -1: none, or no tensor
  std::array<int16_t, kInputs> element_bytes = {};  // of them; 0: not known
  uint8_t rule = 0;                                 // RuleOfTensorOperation
};

// All of a recording.
struct TensorOperations {
  std::vector<TensorOperation> operations;  // by start, of equal ones the longest first
  std::vector<std::vector<int64_t>> shapes;
  bool are_too_many = false;  // none were kept
};

// The rule of an operation by its name ("aten::relu_"); none: nothing is known of what it keeps.
std::optional<uint8_t> RuleOfTensorOperation(std::string_view name);

struct SavedTensors {
  int64_t bytes = 0;       // of the tensors, each once
  int64_t operations = 0;  // whose gradients need some
  int64_t run_again = 0;   // of the forward pass, that the backward pass runs once more
};

// The tensors kept by operations that begin in a span of time and made one of `nodes`, the sequence
// numbers of the functions that the backward pass ran: of those with the same number the last one
// did. Operations within others are part of them.
//
// A recording does not say which tensor an input is, so that is inferred: it is the latest tensor
// of its shape that nothing has read yet; where there is none, one that was read before, and one
// that is kept already before others; else it was not made by an operation: a parameter, which is
// not counted, where one has as many elements (`parameter_elements`), or a part of the batch. A
// concatenation, whose inputs not all versions record, reads all that nothing has read yet.
// Operations that run again between `to_ns` and `until_ns` (activation checkpointing) keep nothing
// but the inputs of the first one of a piece.
// Cost: linear.
SavedTensors FindSavedTensors(const TensorOperations& tensors, int64_t from_ns, int64_t to_ns,
                              const absl::flat_hash_set<int64_t>& nodes,
                              const absl::flat_hash_set<int64_t>& parameter_elements,
                              int64_t until_ns = std::numeric_limits<int64_t>::min());

}  // namespace stepcast
