#include "core/pipeline/schedule.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/str_cat.h"

namespace stepcast {
namespace {

using Order = std::vector<PipelineWork>;
using Part = PipelinePart;

Order GpipeOrder(int32_t m) {
  Order order;
  for (int32_t k = 0; k < m; ++k) order.push_back({Part::kForward, k, 0});
  for (int32_t k = 0; k < m; ++k) order.push_back({Part::kBackward, k, 0});
  return order;
}

Order OneForwardOneBackwardOrder(const PipelineLayout& layout, int32_t device) {
  const int32_t m = layout.micro_batches;
  const bool backward_first = layout.variant == PipelineVariant::kPytorch;
  const int32_t left = layout.devices - device - (backward_first ? 0 : 1);
  const int32_t warm_up = std::min(left, m);
  Order order;
  for (int32_t k = 0; k < warm_up; ++k) order.push_back({Part::kForward, k, 0});
  for (int32_t k = 0; k < m; ++k) {
    if (backward_first) order.push_back({Part::kBackward, k, 0});
    if (k + warm_up < m) order.push_back({Part::kForward, k + warm_up, 0});
    if (!backward_first) order.push_back({Part::kBackward, k, 0});
  }
  return order;
}

Order InterleavedOrder(const PipelineLayout& layout, int32_t device) {
  const int32_t m = layout.micro_batches;
  const int32_t v = layout.chunks;
  const int32_t g = layout.GroupSize();
  Order table;
  for (int32_t first = 0; first < m; first += g)
    for (int32_t chunk = 0; chunk < v; ++chunk)
      for (int32_t k = first; k < std::min(first + g, m); ++k)
        table.push_back({Part::kForward, k, chunk});
  const auto backward = [&](size_t index) -> PipelineWork {
    return {Part::kBackward, table[index].micro_batch, v - 1 - table[index].chunk};
  };
  const int64_t all = int64_t{2} * (layout.devices - device - 1) + int64_t{v - 1} * g;
  const size_t warm_up = std::min(static_cast<size_t>(all), table.size());
  Order order(table.begin(), table.begin() + static_cast<int64_t>(warm_up));
  for (size_t index = 0; index < table.size(); ++index) {
    if (index + warm_up < table.size()) order.push_back(table[index + warm_up]);
    order.push_back(backward(index));
  }
  return order;
}

Order LoopedOrder(const PipelineLayout& layout) {
  Order order;
  for (int32_t chunk = 0; chunk < layout.chunks; ++chunk)
    for (int32_t k = 0; k < layout.micro_batches; ++k) order.push_back({Part::kForward, k, chunk});
  for (int32_t chunk = layout.chunks - 1; chunk >= 0; --chunk)
    for (int32_t k = layout.micro_batches - 1; k >= 0; --k)
      order.push_back({Part::kBackward, k, chunk});
  return order;
}

Order ZeroBubble1Order(const PipelineLayout& layout, int32_t device) {
  const int32_t m = layout.micro_batches;
  const int32_t warm_up = std::min(layout.devices - device - 1, m);
  Order order;
  for (int32_t k = 0; k < warm_up; ++k) order.push_back({Part::kForward, k, 0});
  int32_t weights = 0;
  for (int32_t k = 0; k < m; ++k) {
    if (k + warm_up < m) order.push_back({Part::kForward, k + warm_up, 0});
    order.push_back({Part::kBackwardInput, k, 0});
    if (k >= device) order.push_back({Part::kBackwardWeight, weights++, 0});
  }
  while (weights < m) order.push_back({Part::kBackwardWeight, weights++, 0});
  return order;
}

// The order of ZERO_BUBBLE_V: counts of what of each part and chunk is there.
class ZeroBubbleVOrder {
 public:
  ZeroBubbleVOrder(const PipelineLayout& layout, int32_t device)
      : m_(layout.micro_batches), p_(layout.devices), r_(device) {}

  Order Make() {
    // Fewer micro-batches than the first phases have: as if there were as many, without those.
    const int32_t m = std::max(2 * p_ - 1, m_);
    for (int32_t k = 0; k < 2 * (p_ - r_) - 1; ++k) Add(Part::kForward, 0);
    for (int32_t k = 0; k < r_; ++k) {
      Add(Part::kForward, 1);
      Add(Part::kForward, 0);
    }
    for (int32_t k = 0; k < p_ - r_; ++k) {
      Add(Part::kForward, 1);
      AddBackward(1);
    }
    while (CountOf(Part::kForward, 1) < CountOf(Part::kForward, 0) ||
           CountOf(Part::kForward, 0) < m) {
      if (CountOf(Part::kForward, 0) < m) Add(Part::kForward, 0);
      AddBackward(0);
      Add(Part::kForward, 1);
      AddBackward(1);
    }
    for (int32_t k = 0; k < r_; ++k) {
      Add(Part::kBackwardInput, 0);
      Add(Part::kBackwardInput, 1);
    }
    for (int32_t k = 0; k < p_ - r_; ++k) AddBackward(0);
    for (const int32_t chunk : {1, 0})
      while (CountOf(Part::kBackwardWeight, chunk) < CountOf(Part::kBackwardInput, chunk))
        Add(Part::kBackwardWeight, chunk);
    return std::move(order_);
  }

 private:
  int32_t& CountOf(Part part, int32_t chunk) {
    return counts_[static_cast<size_t>(part)][Index(chunk)];
  }
  void Add(Part part, int32_t chunk) {
    const int32_t k = CountOf(part, chunk)++;
    if (k < m_) order_.push_back({part, k, chunk});
  }
  void AddBackward(int32_t chunk) {
    Add(Part::kBackwardInput, chunk);
    Add(Part::kBackwardWeight, chunk);
  }

  int32_t m_;
  int32_t p_;
  int32_t r_;
  std::array<std::array<int32_t, 2>, 4> counts_{};
  Order order_;
};

void AddBoundFault(std::string_view field, int64_t value, int64_t most,
                   std::vector<Fault>& faults) {
  if (value >= 1 && value <= most) return;
  faults.push_back({std::string(field), absl::StrCat(value, " is not from 1 to ", most)});
}

void AddInterleavedFaults(const PipelineLayout& layout, std::vector<Fault>& faults) {
  const int32_t m = layout.micro_batches;
  const int32_t p = layout.devices;
  if (m < p)
    faults.push_back(
        {"micro_batches", absl::StrCat(m, " are fewer than ", p, " stages; INTERLEAVED needs one ",
                                       "micro-batch a device at least")});
  if (layout.variant == PipelineVariant::kPytorch) {
    const int32_t rounds = std::max(1, m / p);
    if (m % rounds != 0)
      faults.push_back(
          {"micro_batches", absl::StrCat(m, " cannot be divided into ", rounds,
                                         " rounds, which PyTorch's INTERLEAVED does")});
    if (layout.group != 0)
      faults.push_back({"group", absl::StrCat(layout.group, " is of Megatron's variant: PyTorch's ",
                                              "has m / max(1, m / stages)")});
    return;
  }
  if (layout.group == 0) {
    if (m >= p && m % p != 0)
      faults.push_back({"micro_batches", absl::StrCat(m, " is not divisible by ", p,
                                                      " stages, which INTERLEAVED needs unless ",
                                                      "group says otherwise")});
    return;
  }
  if (layout.group < p || layout.group > m) {
    faults.push_back({"group", absl::StrCat(layout.group, " is not from the ", p, " stages to the ",
                                            m, " micro-batches")});
  } else if (const int32_t last = m % layout.group; last != 0 && last < p) {
    faults.push_back({"group", absl::StrCat(layout.group, " leaves a last group of ", last,
                                            " micro-batches, fewer than the ", p, " stages")});
  }
}

}  // namespace

std::string_view PipelineScheduleName(PipelineSchedule schedule) {
  static constexpr std::array<std::string_view, 6> kNames = {
      "GPIPE", "ONE_F_ONE_B", "INTERLEAVED", "LOOPED_BFS", "ZERO_BUBBLE_1", "ZERO_BUBBLE_V"};
  return kNames[static_cast<size_t>(schedule)];
}

int32_t PipelineLayout::GroupSize() const {
  if (variant == PipelineVariant::kPytorch)
    return micro_batches / std::max(1, micro_batches / devices);
  return group != 0 ? group : devices;
}

std::vector<Fault> LayoutFaults(const PipelineLayout& layout) {
  std::vector<Fault> faults;
  AddBoundFault("stages", layout.devices, kMaxPipelineDevices, faults);
  AddBoundFault("micro_batches", layout.micro_batches, kMaxMicroBatches, faults);
  AddBoundFault("chunks", layout.chunks, kMaxChunks, faults);
  if (layout.group < 0) faults.push_back({"group", absl::StrCat(layout.group, " is negative")});
  if (!faults.empty()) return faults;
  const std::string name(PipelineScheduleName(layout.schedule));
  if (layout.schedule == PipelineSchedule::kZeroBubbleV && layout.chunks != 2)
    faults.push_back({"chunks", absl::StrCat(layout.chunks, " is not 2, which ", name, " has")});
  if (!HasChunks(layout.schedule) && layout.chunks != 1)
    faults.push_back({"chunks", absl::StrCat(layout.chunks, " is not 1, which ", name, " has")});
  const int64_t work = int64_t{layout.stages()} * layout.micro_batches;
  if (work > kMaxPipelineWork)
    faults.push_back({"micro_batches",
                      absl::StrCat(layout.micro_batches, " of ", layout.stages(), " chunks are ",
                                   work, " computations, more than ", kMaxPipelineWork)});
  if (layout.schedule == PipelineSchedule::kInterleaved) {
    AddInterleavedFaults(layout, faults);
  } else if (layout.group != 0) {
    faults.push_back(
        {"group", absl::StrCat(layout.group, " is of INTERLEAVED, and the schedule is ", name)});
  }
  return faults;
}

std::vector<PipelineWork> OrderOf(const PipelineLayout& layout, int32_t device) {
  switch (layout.schedule) {
    case PipelineSchedule::kGpipe:
      return GpipeOrder(layout.micro_batches);
    case PipelineSchedule::kOneForwardOneBackward:
      return OneForwardOneBackwardOrder(layout, device);
    case PipelineSchedule::kInterleaved:
      return InterleavedOrder(layout, device);
    case PipelineSchedule::kLoopedBreadthFirst:
      return LoopedOrder(layout);
    case PipelineSchedule::kZeroBubble1:
      return ZeroBubble1Order(layout, device);
    case PipelineSchedule::kZeroBubbleV:
      break;
  }
  return ZeroBubbleVOrder(layout, device).Make();
}

}  // namespace stepcast
