#include <algorithm>

#include "absl/strings/str_format.h"

#include "core/importing/pytorch/pytorch_steps.h"

namespace stepcast {

std::vector<TimeSpan> DataLoadingOf(const PyTorchTrace& trace) {
  std::vector<TimeSpan> spans;
  for (const TraceHostEvent& event : trace.host) {
    if (event.kind == TraceHostEvent::Kind::kDataLoading)
      spans.push_back({.start_ns = event.start_ns, .end_ns = event.end_ns});
  }
  return UnionOf(std::move(spans));
}

int64_t DataLoadingBetween(const std::vector<TimeSpan>& loading, int64_t begin_ns, int64_t end_ns) {
  return begin_ns < end_ns ? LengthOf(BothOf(loading, {{begin_ns, end_ns}})) : 0;
}

void SplitOffDataLoading(TracedSteps& steps) {
  if (steps.pieces.empty()) return;
  steps.pieces.insert(steps.pieces.begin(),
                      TracedPiece{.name = "data_loading", .pass = Pass::kDataLoading});
  double sum_ns = 0;
  for (TracedStep& step : steps.steps) {
    std::vector<int64_t>& ends_ns = step.ends_ns;
    const int64_t longest_ns = ends_ns.size() < 2 ? 0 : ends_ns.back() - ends_ns.end()[-2];
    const int64_t last_ns = std::min(step.last_data_ns, longest_ns);
    const int64_t data_ns = std::min(step.first_data_ns, ends_ns.front()) + last_ns;
    for (size_t i = 0; i + 1 < ends_ns.size(); ++i) ends_ns[i] += last_ns;
    ends_ns.insert(ends_ns.begin(), data_ns);
    sum_ns += static_cast<double>(data_ns);
  }
  steps.notes.push_back(absl::StrFormat(
      "Found data loading: a worker waits %.3f ms a step for its next batch (data_loading).",
      sum_ns / static_cast<double>(steps.steps.size()) / 1e6));
}

}  // namespace stepcast
