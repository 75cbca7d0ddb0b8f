// A worker alone, whose collectives take no time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "core/model/profile.h"

namespace stepcast::testing {

// The time that it takes for a recorded step: along the graph, where each stream runs one operation
// at a time, in graph order. REQUIRES: operations stand after those they wait for.
inline int64_t LoneStepNs(const Profile& profile, const RecordedStep& step) {
  std::map<int32_t, int64_t> free_ns;  // by stream
  std::vector<int64_t> end_ns;
  int64_t last_ns = 0;
  for (size_t i = 0; i < profile.operations().size(); ++i) {
    const Operation& operation = profile.operations()[i];
    const bool computes = operation.resource == Resource::kWorker;
    int64_t at_ns = computes ? free_ns[operation.stream] : 0;
    for (const int32_t before : operation.waiting_for)
      at_ns = std::max(at_ns, end_ns[static_cast<size_t>(before)]);
    const bool is_inside =
        operation.resource == Resource::kCollective && !IsAcrossWorkers(operation);
    if (is_inside) at_ns += step.end_ns[i] - step.start_ns[i];
    if (computes) free_ns[operation.stream] = at_ns += step.end_ns[i] - step.start_ns[i];
    end_ns.push_back(at_ns);
    last_ns = std::max(last_ns, at_ns);
  }
  return last_ns;
}

}  // namespace stepcast::testing
