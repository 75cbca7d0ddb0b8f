// The benchmarks, a family a file.
#pragma once

#include "tests/bench/registry.h"

namespace stepcast::bench {

void AddSimGridRows(Registry& registry);
void AddPseudoCodeRows(Registry& registry);
void AddListSchedulingRow(Registry& registry);
void AddScalingRows(Registry& registry);
void AddOrderRows(Registry& registry);
void AddMaxMinRows(Registry& registry);
void AddSharingRows(Registry& registry);
void AddTraceRow(Registry& registry);
void AddSweepRow(Registry& registry);
void AddThreadsRow(Registry& registry);
void AddCollectiveRows(Registry& registry);
void AddAnswerRows(Registry& registry);
void AddPipelineRows(Registry& registry);
void AddServerRows(Registry& registry);

inline Registry AllRows() {
  Registry registry;
  AddSimGridRows(registry);
  AddPseudoCodeRows(registry);
  AddListSchedulingRow(registry);
  AddScalingRows(registry);
  AddOrderRows(registry);
  AddMaxMinRows(registry);
  AddSharingRows(registry);
  AddTraceRow(registry);
  AddSweepRow(registry);
  AddThreadsRow(registry);
  AddCollectiveRows(registry);
  AddAnswerRows(registry);
  AddPipelineRows(registry);
  AddServerRows(registry);
  return registry;
}

}  // namespace stepcast::bench
