#include "tests/core/advise/naive_backward.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/index.h"

namespace stepcast {

namespace {

struct NaiveGroup {
  double ready = 0;  // seconds of computation
  double overlapped_seconds = 0;
  double alone_seconds = 0;
  double speed = 1;
};

// Written from the paper's text, with nothing of core/advise but its structs.
std::vector<NaiveGroup> NaiveGroups(const std::vector<BackwardLayer>& layers,
                                    const std::vector<TensorGroup>& groups,
                                    const OverlapSetting& setting) {
  std::vector<NaiveGroup> naive;
  for (const TensorGroup& group : groups) {
    const double n = setting.workers;
    const Contention& constants = setting.contention;
    NaiveGroup one;
    double bytes = 0;
    for (int32_t i = 0; i < group.first + group.count; ++i) {
      if (i >= group.first) bytes += static_cast<double>(layers[Index(i)].bytes);
    }
    if (bytes == 0 || setting.workers == 1) continue;
    double computed = 0;
    for (int32_t i = 0; i < group.first + group.count; ++i) {
      computed += layers[Index(i)].seconds;
      if (i >= group.first && layers[Index(i)].bytes > 0) one.ready = computed;
    }
    const auto seconds = [&](const TransferRate& rate) {
      return 2 * (n - 1) * setting.latency_seconds +
             2 * (n - 1) / n * bytes /
                 (rate.gamma1 -
                  rate.gamma2 * std::exp(-rate.gamma3 * std::pow(group.threads, constants.gamma4)));
    };
    one.overlapped_seconds = seconds(constants.overlapped);
    one.alone_seconds = seconds(constants.alone);
    one.speed = constants.alpha1 - constants.alpha2 * group.threads;
    naive.push_back(one);
  }
  return naive;
}

}  // namespace

double NaiveBackwardSeconds(const std::vector<BackwardLayer>& layers,
                            const std::vector<TensorGroup>& groups, const OverlapSetting& setting) {
  const std::vector<NaiveGroup> naive = NaiveGroups(layers, groups, setting);
  double to_compute = 0;
  for (const BackwardLayer& layer : layers) to_compute += layer.seconds;
  const double epsilon = 1e-13 * to_compute;
  double now = 0;
  double computed = 0;
  double left_of_group = 1;
  size_t next = 0;
  while (computed < to_compute - epsilon || next < naive.size()) {
    const bool computes = computed < to_compute - epsilon;
    const bool sends = next < naive.size() && naive[next].ready <= computed + epsilon;
    const double speed = sends ? naive[next].speed : 1;
    double step = std::numeric_limits<double>::infinity();
    if (computes) step = (to_compute - computed) / speed;
    if (computes && !sends && next < naive.size())
      step = std::min(step, naive[next].ready - computed);
    double rate = 0;
    if (sends) {
      rate = 1 / (computes ? naive[next].overlapped_seconds : naive[next].alone_seconds);
      step = std::min(step, left_of_group / rate);
    }
    now += step;
    if (computes) computed += step * speed;
    if (!sends) continue;
    left_of_group -= step * rate;
    if (left_of_group < 1e-13) {
      ++next;
      left_of_group = 1;
    }
  }
  return now;
}

RandomBackward DrawBackward(Random& random, int32_t max_layers) {
  RandomBackward drawn;
  const auto count = static_cast<int32_t>(1 + random.Below(Index(max_layers)));
  for (int32_t i = 0; i < count; ++i) {
    BackwardLayer layer{.seconds = 1e-3 * random.Unit()};
    if (random.Below(8) == 0) layer.seconds = 0;
    if (random.Below(4) != 0)
      layer.bytes = static_cast<int64_t>(1 + random.Below(8'000'000) * random.Unit());
    drawn.layers.push_back(layer);
  }
  OverlapSetting& setting = drawn.setting;
  setting.workers = static_cast<int32_t>(2 + random.Below(30));
  setting.latency_seconds = 1e-5 * random.Unit();
  while (true) {
    drawn.threads.clear();
    for (int i = 0; i < 3; ++i)
      drawn.threads.push_back(static_cast<int32_t>(32 + random.Below(4065)));
    Contention& contention = setting.contention;
    contention.alpha1 = 1;
    contention.alpha2 = 2.2e-4 * random.Unit();
    contention.alone = {.gamma1 = 6e9, .gamma3 = 0.01 + 0.1 * random.Unit()};
    contention.alone.gamma2 = 6e9 * random.Unit();
    const double share = 0.5 + 0.5 * random.Unit();
    contention.overlapped = {.gamma1 = share * contention.alone.gamma1,
                             .gamma2 = share * contention.alone.gamma2,
                             .gamma3 = contention.alone.gamma3 * (0.5 + 0.5 * random.Unit())};
    if (CheckAssumptions(contention, drawn.threads).Hold()) return drawn;
  }
}

std::vector<std::vector<int32_t>> AllPartings(int32_t count) {
  std::vector<std::vector<int32_t>> partings;
  for (uint32_t cuts = 0; cuts < (1U << (count - 1)); ++cuts) {
    std::vector<int32_t> counts = {1};
    for (int32_t i = 1; i < count; ++i) {
      if (((cuts >> (i - 1)) & 1U) != 0)
        counts.push_back(1);
      else
        ++counts.back();
    }
    partings.push_back(counts);
  }
  return partings;
}

}  // namespace stepcast
