#include "core/base/number_text.h"

#include <cmath>

#include "absl/strings/str_format.h"

namespace stepcast {

std::string NumberText(double value) {
  const double size = std::abs(value);
  return size >= 9999.5 && size < 1e15 ? absl::StrFormat("%.0f", value)
                                       : absl::StrFormat("%.4g", value);
}

}  // namespace stepcast
