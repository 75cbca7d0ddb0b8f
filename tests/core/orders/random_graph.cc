#include "tests/core/orders/random_graph.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/random.h"

namespace stepcast::testing {

namespace {

using Operations = std::vector<TransferGraph::Operation>;
using Dependencies = std::vector<TransferGraph::Dependency>;

}  // namespace

TransferGraph RandomGraph(uint64_t seed, int32_t operations_max) {
  Random random{seed, 17};
  const auto size = static_cast<int32_t>(1 + random.Below(static_cast<uint64_t>(operations_max)));
  const uint64_t time_max = random.Below(2) == 0 ? 4 : 1'000'000;
  const uint64_t download_percent = 10 + random.Below(60);
  const uint64_t waiting_download_percent = random.Below(3) == 0 ? 30 : 0;
  Operations operations(static_cast<size_t>(size));
  for (TransferGraph::Operation& operation : operations) {
    const bool download = random.Below(100) < download_percent;
    const bool other = random.Below(100) < 15;
    operation.kind = download ? OperationKind::kDownload
                     : other  ? OperationKind::kOther
                              : OperationKind::kComputation;
    operation.time = Nanoseconds(static_cast<int64_t>(random.Below(time_max)));
  }
  std::vector<int32_t> position(
      operations.size());  // in a topological order that is not graph order
  std::iota(position.begin(), position.end(), 0);
  for (size_t i = position.size(); i > 1; --i)
    std::swap(position[i - 1], position[random.Below(i)]);
  Dependencies dependencies;
  for (size_t at = 1; at < position.size(); ++at) {
    const int32_t after = position[at];
    const bool download = operations[static_cast<size_t>(after)].kind == OperationKind::kDownload;
    if (download && random.Below(100) >= waiting_download_percent) continue;
    for (uint64_t left = random.Below(4); left > 0; --left)
      dependencies.push_back({.before = position[random.Below(at)], .after = after});
  }
  return {std::move(operations), dependencies};
}

TransferGraph LayeredGraph(uint64_t seed, int32_t downloads, int32_t per_download) {
  Random random{seed, 18};
  Operations operations;
  Dependencies dependencies;
  const auto add = [&](OperationKind kind, const std::vector<int32_t>& before) {
    const auto op = static_cast<int32_t>(operations.size());
    operations.push_back(
        {.kind = kind, .time = Nanoseconds(static_cast<int64_t>(1000 + random.Below(1'000'000)))});
    for (const int32_t from : before) {
      if (from >= 0) dependencies.push_back({.before = from, .after = op});
    }
    return op;
  };
  const int32_t forward = std::max(1, (per_download - 2) / 2);
  int32_t last = -1;
  std::vector<int32_t> layer_ends{-1, -1};
  for (int32_t layer = 0; layer < downloads; ++layer) {
    const int32_t download = add(OperationKind::kDownload, {});
    for (int32_t i = 0; i < forward; ++i) {
      const int32_t shortcut = i == 0 && layer % 3 == 2 ? layer_ends[layer_ends.size() - 2] : -1;
      last = add(OperationKind::kComputation, {last, i == 0 ? download : -1, shortcut});
    }
    layer_ends.push_back(last);
  }
  for (int32_t layer = downloads - 1; layer >= 0; --layer) {
    for (int32_t i = 0; i < forward; ++i)
      last = add(OperationKind::kComputation,
                 {last, i == 0 ? layer_ends[static_cast<size_t>(layer) + 2] : -1});
    add(OperationKind::kOther, {last});
  }
  return {std::move(operations), dependencies};
}

}  // namespace stepcast::testing
