#include "tests/bench/agreement.h"

#include <cmath>
#include <stdexcept>

#include "absl/strings/str_format.h"

namespace stepcast::bench {

void RequireAgreement(std::string_view peer, const std::vector<std::vector<double>>& engine,
                      const std::vector<std::vector<double>>& ends, size_t steps,
                      double tolerance) {
  if (engine.size() != ends.size())
    throw std::runtime_error(
        absl::StrFormat("%s has %d workers, not %d", peer, ends.size(), engine.size()));
  for (size_t worker = 0; worker < engine.size(); ++worker) {
    for (size_t step = 0; step < steps; ++step) {
      if (step >= engine[worker].size() || step >= ends[worker].size()) {
        throw std::runtime_error(
            absl::StrFormat("%s: worker %d has no end of step %d", peer, worker, step));
      }
      const double expected = engine[worker][step];
      const double end = ends[worker][step];
      if (std::abs(end - expected) > tolerance * expected) {
        throw std::runtime_error(
            absl::StrFormat("%s: worker %d ends step %d at %.12g s, the engine at %.12g s", peer,
                            worker, step, end, expected));
      }
    }
  }
}

}  // namespace stepcast::bench
