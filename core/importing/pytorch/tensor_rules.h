// The rules of PyTorch's operations: which tensors one reads, which of them its gradient needs, and
// the shape of its output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stepcast {

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

}  // namespace stepcast
