// A long text, cut into pieces of bounded size as it grows.
//
// Threads: none. Memory: one piece, and what is appended at once.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace stepcast {

// Takes the next piece of a text. May block until there is room for it. Not OK: no more is wanted,
// and why.
using TextSink = absl::FunctionRef<absl::Status(std::string piece)>;

class TextPieces {
 public:
  static constexpr size_t kPieceBytes = size_t{64} << 10;

  // `sink` must outlive it.
  explicit TextPieces(TextSink sink) : sink_(sink) {}

  // Passes on every piece that is full. Once the sink has failed, does nothing.
  void Append(std::string_view text);
  // Passes on what is left. Call once, in the end.
  void Finish();
  // The error of the sink; OK where it has not failed.
  const absl::Status& status() const { return status_; }

 private:
  void PassOn();

  TextSink sink_;
  std::string piece_;
  absl::Status status_;
};

}  // namespace stepcast
