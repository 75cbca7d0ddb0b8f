#include "tests/server/support/random_profile.h"

#include <string>

#include "core/base/random.h"

namespace stepcast::server {

namespace {

Operation RandomOperation(Random& random, int32_t index, int32_t servers) {
  Operation operation;
  operation.name = "operation/" + std::to_string(index);
  operation.resource = static_cast<Resource>(1 + random.Below(4));
  if (operation.resource != Resource::kWorker)
    operation.parameter_server = static_cast<int32_t>(random.Below(static_cast<uint64_t>(servers)));
  if (IsTransfer(operation.resource))
    operation.size_bytes = 1 + static_cast<int64_t>(random.Below(1 << 20));
  for (int32_t before = 0; before < index; ++before) {
    if (random.Below(3) == 0) operation.waiting_for.push_back(before);
  }
  operation.parameter = "variable/" + std::to_string(random.Below(5));
  return operation;
}

}  // namespace

ProfileDraft RandomProfile(uint64_t seed) {
  Random random({seed});
  ProfileDraft draft;
  draft.display_name = "display " + std::to_string(random.Below(1000));
  draft.model = "model " + std::to_string(random.Below(1000));
  draft.framework = "framework " + std::to_string(random.Below(1000));
  for (uint64_t i = 1 + random.Below(3); i > 0; --i)
    draft.labels["key" + std::to_string(i)] = "value" + std::to_string(random.Below(100));
  draft.batch_size = 1 + static_cast<int32_t>(random.Below(512));
  draft.platform = {.bandwidth_bytes_per_second = 1e6 + random.Unit() * 1e9,
                    .parsing_overhead = {.seconds_per_byte = random.Unit() * 1e-9,
                                         .seconds = random.Unit() * 1e-4},
                    .window_bytes = static_cast<int64_t>(random.Below(1 << 24))};
  draft.parameter_servers = 1 + static_cast<int32_t>(random.Below(3));
  for (int32_t count = 2 + static_cast<int32_t>(random.Below(10)), i = 0; i < count; ++i) {
    draft.operations.push_back(RandomOperation(random, i, draft.parameter_servers));
  }
  for (uint64_t steps = 1 + random.Below(3); steps > 0; --steps) {
    RecordedStep& step = draft.steps.emplace_back();
    for (size_t i = 0; i < draft.operations.size(); ++i) {
      step.start_ns.push_back(static_cast<int64_t>(random.Below(1'000'000)));
      step.end_ns.push_back(step.start_ns.back() + 1 +
                            static_cast<int64_t>(random.Below(1'000'000)));
    }
  }
  return draft;
}

ProfileDraft SmallProfile(int64_t step_ns) {
  ProfileDraft draft;
  draft.model = "small";
  draft.batch_size = 8;
  draft.platform.bandwidth_bytes_per_second = 1e9;
  draft.operations = {
      {.name = "recv", .resource = Resource::kDownlink, .size_bytes = 1000, .parameter = "v"},
      {.name = "compute", .resource = Resource::kWorker, .waiting_for = {0}}};
  draft.steps = {{.start_ns = {0, 1000}, .end_ns = {1000, 1000 + step_ns}}};
  return draft;
}

}  // namespace stepcast::server
