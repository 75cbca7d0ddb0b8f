#include "core/trace/text_pieces.h"

#include <algorithm>

namespace stepcast {

void TextPieces::Append(std::string_view text) {
  while (status_.ok() && !text.empty()) {
    if (piece_.capacity() < kPieceBytes) piece_.reserve(kPieceBytes);
    const size_t taken = std::min(kPieceBytes - piece_.size(), text.size());
    piece_.append(text.substr(0, taken));
    text.remove_prefix(taken);
    if (piece_.size() == kPieceBytes) PassOn();
  }
}

void TextPieces::Finish() {
  if (status_.ok() && !piece_.empty()) PassOn();
}

void TextPieces::PassOn() { status_ = sink_(std::exchange(piece_, {})); }

}  // namespace stepcast
