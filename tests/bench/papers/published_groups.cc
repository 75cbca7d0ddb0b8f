#include "tests/bench/papers/published_groups.h"

#include <algorithm>
#include <cmath>

#include "core/base/index.h"

namespace stepcast::bench {

namespace {

// The number of consecutive gradients, from `first` on and before `end`, in its buffer.
size_t BufferAt(std::span<const ReadyGradient> gradients, size_t first, size_t end,
                int64_t fusion_bytes) {
  int64_t left = fusion_bytes - gradients[first].bytes;
  size_t next = first + 1;
  for (; next < end && gradients[next].bytes <= left; ++next) left -= gradients[next].bytes;
  return next - first;
}

// `delay`: of the gradients behind their own clock, which `all_reduce(bytes, begin)` may let grow;
// it returns its seconds.
template <typename AllReduce>
std::vector<HorovodBuffer> BuffersOfCycles(std::span<const ReadyGradient> gradients,
                                           const HorovodCycles& cycles, const double& delay,
                                           AllReduce all_reduce) {
  std::vector<HorovodBuffer> buffers;
  double cycle = cycles.first_seconds;
  for (size_t next = 0; next < gradients.size();) {
    // Cycles that find nothing pass.
    const double ready = gradients[next].ready_seconds + delay;
    if (ready > cycle) {
      const double length = cycles.cycle_seconds;
      const double passed = length > 0 ? std::ceil((ready - cycle) / length) * length : 0;
      cycle = std::max(cycle + passed, ready);  // with a length no more, but for rounding
    }
    size_t end = next + 1;
    while (end < gradients.size() && gradients[end].ready_seconds + delay <= cycle) ++end;
    double now = cycle;
    while (next < end) {
      const size_t count = BufferAt(gradients, next, end, cycles.fusion_bytes);
      double bytes = 0;
      for (const ReadyGradient& gradient : gradients.subspan(next, count))
        bytes += static_cast<double>(gradient.bytes);
      const double done = now + all_reduce(bytes, now);
      buffers.push_back({.gradients = static_cast<int32_t>(count),
                         .cycle_seconds = cycle,
                         .begin_seconds = now,
                         .end_seconds = done});
      now = done;
      next += count;
    }
    cycle = std::max(cycle + cycles.cycle_seconds, now);
  }
  return buffers;
}

}  // namespace

std::vector<ReadyGradient> GradientsOf(std::span<const BackwardLayer> layers) {
  std::vector<ReadyGradient> gradients;
  double now = 0;
  for (const BackwardLayer& layer : layers) {
    now += layer.seconds;
    if (layer.bytes > 0) gradients.push_back({.ready_seconds = now, .bytes = layer.bytes});
  }
  return gradients;
}

std::vector<int32_t> LayersByGroup(std::span<const BackwardLayer> layers,
                                   std::span<const int32_t> gradients_by_group) {
  std::vector<int32_t> counts;
  size_t next = 0;
  for (const int32_t gradients : gradients_by_group) {
    const size_t first = next;
    for (int32_t left = gradients; left > 0; ++next) left -= layers[next].bytes > 0 ? 1 : 0;
    counts.push_back(static_cast<int32_t>(next - first));
  }
  const auto rest = static_cast<int32_t>(layers.size() - next);
  if (counts.empty() && rest > 0) counts.push_back(0);
  if (!counts.empty()) counts.back() += rest;
  return counts;
}

std::vector<int32_t> MgWfbpGroups(std::span<const ReadyGradient> gradients, double startup_seconds,
                                  SecondsOfBytes seconds_of) {
  std::vector<int32_t> counts;
  double end_before = 0;
  double bytes = 0;
  int32_t count = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    bytes += static_cast<double>(gradients[i].bytes);
    ++count;
    const double begin = std::max(end_before, gradients[i].ready_seconds);
    if (i + 1 < gradients.size() && gradients[i + 1].ready_seconds < begin + startup_seconds)
      continue;
    counts.push_back(count);
    end_before = begin + seconds_of(bytes);
    bytes = 0;
    count = 0;
  }
  return counts;
}

std::vector<HorovodBuffer> HorovodBuffers(std::span<const ReadyGradient> gradients,
                                          const HorovodCycles& cycles, SecondsOfBytes seconds_of) {
  const double delay = 0;
  return BuffersOfCycles(gradients, cycles, delay,
                         [&](double bytes, double /*begin*/) { return seconds_of(bytes); });
}

HorovodTime HorovodBackward(std::span<const BackwardLayer> layers, const OverlapSetting& setting,
                            const HorovodCycles& cycles,
                            absl::FunctionRef<int32_t(double bytes)> threads_of) {
  double total = 0;
  for (const BackwardLayer& layer : layers) total += layer.seconds;
  HorovodTime time;
  double delay = 0;
  const auto all_reduce = [&](double bytes, double begin) {
    const double left = std::max(0.0, total - (begin - delay));
    const OverlapStage stage = OverlapOf(RatesOf(setting, threads_of(bytes)), bytes, left);
    time.exposed_seconds += stage.communication;
    delay += stage.overlapped - (left - stage.computation);
    return stage.overlapped + stage.communication;
  };
  time.buffers = BuffersOfCycles(GradientsOf(layers), cycles, delay, all_reduce);
  time.seconds = total + delay;
  if (!time.buffers.empty()) time.seconds = std::max(time.seconds, time.buffers.back().end_seconds);
  return time;
}

}  // namespace stepcast::bench
