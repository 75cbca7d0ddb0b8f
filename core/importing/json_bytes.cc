#include "core/importing/json_bytes.h"

#include "absl/status/statusor.h"

namespace stepcast {

bool JsonBytes::Fill() {
  if (!status_.ok()) return false;
  if (position() - token_from_ > kMaxTokenBytes) {
    status_ = absl::ResourceExhaustedError(
        "a text, a number or the space between two is longer than a mebibyte");
    return false;
  }
  status_ = stop_();
  if (!status_.ok()) return false;
  const absl::StatusOr<size_t> read = source_.Read(buffer_.data(), buffer_.size());
  status_ = read.status();
  before_ += static_cast<int64_t>(size_);
  at_ = 0;
  size_ = read.ok() ? *read : 0;
  return size_ > 0;
}

}  // namespace stepcast
