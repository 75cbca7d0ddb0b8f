#include "tests/support/window_throughput.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

#include "core/base/time.h"

namespace stepcast::testing {

absl::StatusOr<double> StepsPerSecondInside(const RunResult& run, MeasuringWindow window) {
  double sum = 0;
  for (const std::vector<Instant>& ends : run.step_ends) {
    double first = 0;
    double last = 0;
    int64_t inside = 0;
    for (const Instant end : ends) {
      const double at = ToSeconds(end - Instant{});
      if (at < window.begin || at > window.end) continue;
      if (inside++ == 0) first = at;
      last = at;
    }
    if (inside < 2)
      return absl::FailedPreconditionError(absl::StrCat(inside, " steps of a worker end between ",
                                                        window.begin, " and ", window.end, " s"));
    sum += static_cast<double>(inside - 1) / (last - first);
  }
  return sum;
}

}  // namespace stepcast::testing
