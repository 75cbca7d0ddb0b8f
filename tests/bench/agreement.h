// The agreement of two simulations of one job on when their steps end.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace stepcast::bench {

// Compares each worker's first `steps` ends, in seconds, by worker. Later ones are not compared:
// near saturation the model amplifies the last bit of a double to whole steps within some tens of
// them. Throws std::runtime_error, which names the first difference, where one is relatively larger
// than `tolerance`, or an end is missing.
void RequireAgreement(std::string_view peer, const std::vector<std::vector<double>>& engine,
                      const std::vector<std::vector<double>>& ends, size_t steps, double tolerance);

}  // namespace stepcast::bench
