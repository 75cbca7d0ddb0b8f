#include "core/importing/step_choice.h"

namespace stepcast {

namespace {

bool Ran(const RecordedStep& step, size_t node) {
  return node < step.start_ns.size() && step.start_ns[node] != RecordedRows::kMissing;
}

}  // namespace

StepChoice ChooseSteps(const RecordedRows& rows, const std::vector<bool>& candidates) {
  StepChoice choice{.nodes = candidates};
  std::vector<size_t> runs(candidates.size(), 0);
  for (const RecordedStep& step : rows.steps()) {
    for (size_t node = 0; node < candidates.size(); ++node) runs[node] += Ran(step, node) ? 1 : 0;
  }
  for (size_t node = 0; node < candidates.size(); ++node) {
    if (!candidates[node] || 2 * runs[node] > rows.steps().size()) continue;
    choice.nodes[node] = false;
    choice.rare_nodes.push_back(static_cast<int32_t>(node));
  }
  for (size_t index = 0; index < rows.steps().size(); ++index) {
    size_t node = 0;
    while (node < candidates.size() && (!choice.nodes[node] || Ran(rows.steps()[index], node)))
      ++node;
    if (node == candidates.size()) {
      choice.steps.push_back(index);
      continue;
    }
    if (choice.partial_steps.empty()) choice.lacking = rows.nodes()[node].name;
    choice.partial_steps.push_back(index);
  }
  return choice;
}

}  // namespace stepcast
