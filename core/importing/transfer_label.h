// The label that TensorFlow writes beside a received tensor: `[1.5MB] [812.4Mb/s]
// edge_12_conv1/weights/read from DEVICE to DEVICE`.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stepcast {

// Views into the label.
struct TransferLabel {
  std::string_view tensor;
  std::string_view source;
  std::string_view destination;
  std::optional<int64_t> bytes;  // empty: the label has none
  bool rounded = false;          // to a tenth of a MiB
};

// Empty if the label is of another form. Any number of bracketed parts may come first; of them only
// a size is read.
std::optional<TransferLabel> ParseTransferLabel(std::string_view label);

// The node that sends a tensor: of `edge_12_conv1/weights/read` what follows the number. A name of
// another form is returned as it is.
std::string_view SenderOf(std::string_view tensor);

}  // namespace stepcast
