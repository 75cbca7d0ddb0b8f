// The tensors that PyTorch's autograd keeps of a forward pass, told from the shapes of its
// operations' inputs.
//
// Source: torch/csrc/autograd, tools/autograd/derivatives.yaml of PyTorch 1.8 to 2.5: what each
// operation's gradient needs. Threads: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"

namespace stepcast {

// The rules of PyTorch's operations (tensor_rules.cc): which tensors one reads, which of them its
// gradient needs, and the shape of its output.

// The rule of an operation that nothing is known of but its inputs.
inline constexpr uint8_t kUnknownTensorRule = 255;

// The output of an operation, as far as its inputs' shapes tell.
enum class OutputForm : uint8_t {
  kNone,      // nothing that is read: a scalar, or not known
  kSame,      // a new tensor of the first input's shape
  kInPlace,   // the first input itself
  kLarger,    // a new tensor of the first two inputs' larger shape
  kView,      // the first input's elements in another shape
  kPermuted,  // the same, with its dimensions in another order
  kSqueezed,  // the same, with more or fewer dimensions of 1
  kPart,      // some of the first input's elements
  kExpanded,  // the first input's elements, some of them several times
  kChannels,  // of a convolution: as many channels as its weights say
  kPooled,    // as many channels as the first input
  kProduct,   // of matrices, the last two inputs that are read
  kReduced,   // some of the first input's dimensions, as a mean over the others has
  kRows,      // of a table, one for each index
  kAny        // a new tensor of an unknown shape
};

inline constexpr uint8_t kFirst = 1;
inline constexpr uint8_t kSecond = 2;
inline constexpr uint8_t kThird = 4;
inline constexpr uint8_t kBoth = kFirst | kSecond;

struct TensorRule {
  std::string_view name;
  uint8_t reads = 0;  // inputs
  uint8_t keeps = 0;  // of them, those that its gradient needs
  OutputForm output = OutputForm::kNone;
  bool keeps_output = false;
  int64_t mask_bytes = 0;        // that it keeps besides, for each element of the first input
  int64_t index_bytes = 0;       // likewise, for each element of the output
  bool reads_all = false;        // that nothing has read yet
  bool keeps_if_both = false;    // a factor is needed for the other's gradient
  int64_t statistics_bytes = 0;  // likewise, for each mean of a normalization
  size_t statistics_input = 0;   // which has an element for each channel
  bool is_dropout_mask = false;  // makes the mask of the dropout around it, a byte for an element
};

// The rule of that index; of an unknown operation where there is none.
const TensorRule& TensorRuleAt(uint8_t index);
// The index of the rule of an operation, `addmm`.
std::optional<uint8_t> TensorRuleNamed(std::string_view name);
// True if the output is elements of the first input.
bool IsView(const TensorRule& rule);

// An operation that autograd has a gradient of, as it was recorded.
struct TensorOperation {
  static constexpr size_t kInputs = 4;

  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t sequence = 0;                             // of the node that it made, or the next one did
  std::array<int32_t, kInputs> shapes = {};         // of its first inputs; -1: none, or no tensor
  std::array<int16_t, kInputs> element_bytes = {};  // of them; 0: not known
  uint8_t rule = 0;                                 // RuleOfTensorOperation, or kUnknownTensorRule
  int16_t function = -1;                            // of kUnknownTensorRule: place in functions
};

// All of a recording.
struct TensorOperations {
  std::vector<TensorOperation> operations;  // by start, of equal ones the longest first
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::string> functions;  // names of operations of kUnknownTensorRule
  bool are_too_many = false;           // none were kept
};

// The rule of an operation by its name ("aten::relu_"); none: nothing is known of what it keeps.
std::optional<uint8_t> RuleOfTensorOperation(std::string_view name);

// Operations of the forward pass, one after the other, that hand on one tensor and no other.
struct ForwardLink {
  std::string name;            // of its first operation that has inputs of its own
  int64_t start_ns = 0;        // of its first
  int64_t first_sequence = 0;  // of the nodes it made, which are below those of the next link
  int64_t kept_bytes = 0;      // its share of SavedTensors::bytes
  int64_t output_bytes = 0;    // of what it hands on; of the last one 0
};

struct SavedTensors {
  int64_t bytes = 0;       // of the tensors, each once
  int64_t operations = 0;  // whose gradients need some
  int64_t run_again = 0;   // of the forward pass, that the backward pass runs once more
  // The forward pass, cut wherever one tensor alone is needed after the cut of what was made before
  // it; inputs of the batch and parameters do not count. Empty: there was no operation.
  std::vector<ForwardLink> links;
};

// A function that the backward pass ran, but for gradients of parameters.
struct BackwardNode {
  int64_t start_ns = 0;
  int64_t end_ns = 0;    // of all that ran within it
  int64_t sequence = 0;  // of the operation that it undoes
  // Elements of its inputs' gradients that were added to what other functions had made of them, so
  // that what each input is was read once more afterwards.
  std::vector<int64_t> added;
};

// The tensors kept by operations that begin in a span of time and made one of `nodes`: of those
// with the same number the last one did. Operations within others are part of them.
//
// A recording does not say which tensor an input is, so that is inferred: it is the latest tensor
// of its shape that nothing has read yet; where there is none, one that was read before, and one
// that is known to be read again, or is kept already, before others; else it was not made by an
// operation: a parameter, which is not counted, where one has as many elements
// (`parameter_elements`), or a part of the batch. A concatenation, whose inputs not all versions
// record, reads all that nothing has read yet. Operations that run again within the nodes
// (activation checkpointing) keep nothing but what their piece reads of what was there; what runs
// beside them is another forward pass. REQUIRES: nodes by start. Cost: linear.
SavedTensors FindSavedTensors(const TensorOperations& tensors, int64_t from_ns, int64_t to_ns,
                              const std::vector<BackwardNode>& nodes,
                              const absl::flat_hash_set<int64_t>& parameter_elements);

// The operations of a pass that are within no other, and those that the backward pass runs again
// (outer_operations.cc).

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
