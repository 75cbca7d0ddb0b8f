#include "tests/core/model/random_draft.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"

namespace stepcast::testing {

namespace {

int32_t Upto(Random& random, int32_t bound) {
  return static_cast<int32_t>(random.Below(static_cast<uint64_t>(bound)));
}

Operation RandomOperation(Random& random, int32_t index, int32_t servers) {
  Operation operation;
  operation.name = "operation" + std::to_string(index);
  operation.resource =
      index == 0 ? Resource::kDownlink : static_cast<Resource>(1 + Upto(random, 4));
  operation.parameter_server = Upto(random, servers);
  operation.size_bytes = IsTransfer(operation.resource) ? 1 + Upto(random, 1'000'000) : 0;
  operation.parameter = "variable" + std::to_string(index / 3);
  if (operation.resource == Resource::kWorker && index % 2 == 0)
    operation.kept_bytes = Upto(random, 1'000'000);
  if (operation.resource == Resource::kWorker && index % 3 == 0) {
    operation.pass = static_cast<Pass>(Upto(random, 7));
    operation.output_bytes = Upto(random, 1'000'000);
  }
  for (int32_t before = 0; before < index; ++before) {
    if (random.Below(4) == 0) operation.waiting_for.push_back(before);
  }
  return operation;
}

// Gives every operation another index, so that some wait for later ones.
void Renumber(Random& random, std::vector<Operation>& operations) {
  std::vector<int32_t> place(operations.size());
  std::iota(place.begin(), place.end(), 0);
  for (size_t i = place.size(); i > 1; --i) std::swap(place[i - 1], place[random.Below(i)]);
  std::vector<Operation> renumbered(operations.size());
  for (size_t i = 0; i < operations.size(); ++i) {
    for (int32_t& before : operations[i].waiting_for) before = place[static_cast<size_t>(before)];
    renumbered[static_cast<size_t>(place[i])] = std::move(operations[i]);
  }
  operations = std::move(renumbered);
}

}  // namespace

ProfileDraft RandomDraft(uint64_t seed) {
  Random random({seed, 0xd4af7});
  ProfileDraft draft;
  draft.display_name = "random";
  draft.labels = {{"team", "tests"}};
  draft.batch_size = 1 + Upto(random, 64);
  draft.platform = {.bandwidth_bytes_per_second = 1e6 + 1e8 * random.Unit(),
                    .window_bytes = Upto(random, 2) * int64_t{65536}};
  draft.parameter_servers = 1 + Upto(random, 3);
  const int32_t count = 2 + Upto(random, 20);
  for (int32_t i = 0; i < count; ++i)
    draft.operations.push_back(RandomOperation(random, i, draft.parameter_servers));
  Renumber(random, draft.operations);
  draft.steps.resize(1 + random.Below(4));
  for (RecordedStep& step : draft.steps) {
    for (int32_t i = 0; i < count; ++i) {
      step.start_ns.push_back(Upto(random, 1'000'000));
      step.end_ns.push_back(step.start_ns.back() + Upto(random, 1'000'000));
    }
  }
  return draft;
}

}  // namespace stepcast::testing
