#include "core/advise/overlap_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/index.h"

namespace stepcast {

namespace {

// The share by which a rate may miss an assumption: they are ratios of rounded numbers.
constexpr double kRounding = 1e-12;

void CheckRate(const char* name, const TransferRate& rate, double gamma4,
               std::span<const int32_t> threads, FaultList& faults) {
  const std::string path = absl::StrCat("contention.", name);
  const std::array<std::pair<const char*, double>, 3> constants = {
      {{"gamma1", rate.gamma1}, {"gamma2", rate.gamma2}, {"gamma3", rate.gamma3}}};
  for (const auto& [field, value] : constants) {
    if (!std::isfinite(value)) {
      faults.Add(absl::StrCat(path, ".", field), absl::StrCat(value, " is not a number"));
      return;
    }
  }
  for (const int32_t count : threads) {
    if (count < 1) continue;
    const double bytes_per_second = BytesPerSecond(rate, gamma4, count);
    if (bytes_per_second > 0 && std::isfinite(bytes_per_second)) continue;
    faults.Add(path, absl::StrCat("with ", count, " threads it is ", bytes_per_second,
                                  " bytes per second, not above 0"));
    return;
  }
}

// The end of the computation that a group waits for, in the chain's own seconds.
double ReadyOf(std::span<const BackwardLayer> layers, double begin, const TensorGroup& group) {
  double end = begin;
  double ready = -1;
  for (const BackwardLayer& layer : layers.subspan(Index(group.first), Index(group.count))) {
    end += layer.seconds;
    if (layer.bytes > 0) ready = end;
  }
  return ready < 0 ? end : ready;
}

template <typename Holds>
std::string FailingThreads(std::span<const int32_t> threads, Holds holds) {
  for (const int32_t count : threads) {
    if (!holds(count)) return absl::StrCat("with ", count, " threads ");
  }
  return "";
}

}  // namespace

Contention WithoutContention(double bytes_per_second) {
  const TransferRate rate{.gamma1 = bytes_per_second};
  return {.alpha1 = 1, .alpha2 = 0, .overlapped = rate, .alone = rate};
}

void CheckContention(const Contention& contention, std::span<const int32_t> threads,
                     FaultList& faults, const OverlapLimits& limits) {
  if (threads.empty()) faults.Add("threads", "no number of threads is given");
  if (threads.size() > Index(limits.max_thread_choices)) {
    faults.Add("threads", OverLimit(static_cast<int64_t>(threads.size()), "max_thread_choices",
                                    limits.max_thread_choices));
    return;
  }
  for (size_t i = 0; i < threads.size(); ++i) {
    if (threads[i] < 1)
      faults.Add(absl::StrCat("threads[", i, "]"), absl::StrCat(threads[i], " is below 1"));
  }
  if (!std::isfinite(contention.alpha1) || contention.alpha1 <= 0) {
    faults.Add("contention.alpha1", absl::StrCat(contention.alpha1, " is not above 0"));
  } else if (!std::isfinite(contention.alpha2) || contention.alpha2 < 0) {
    faults.Add("contention.alpha2", absl::StrCat(contention.alpha2, " is below 0"));
  } else if (!threads.empty()) {
    const int32_t most = *std::max_element(threads.begin(), threads.end());
    if (most > 0 && !(ComputationSpeed(contention, most) > 0)) {
      faults.Add("contention.alpha2",
                 absl::StrCat(contention.alpha2, " brings computation to a halt beside ", most,
                              " threads: alpha1 = ", contention.alpha1, " must be above ",
                              contention.alpha2 * most));
    }
  }
  if (!std::isfinite(contention.gamma4)) {
    faults.Add("contention.gamma4", absl::StrCat(contention.gamma4, " is not a number"));
    return;
  }
  CheckRate("overlapped", contention.overlapped, contention.gamma4, threads, faults);
  CheckRate("alone", contention.alone, contention.gamma4, threads, faults);
}

void CheckSetting(const OverlapSetting& setting, std::span<const int32_t> threads,
                  FaultList& faults, const OverlapLimits& limits) {
  if (setting.workers < 1)
    faults.Add("workers", absl::StrCat(setting.workers, " is below 1"));
  else if (setting.workers > limits.max_workers)
    faults.Add("workers", OverLimit(setting.workers, "max_workers", limits.max_workers));
  if (!(setting.latency_seconds >= 0 && setting.latency_seconds <= limits.max_latency_seconds)) {
    faults.Add("latency_seconds", absl::StrCat(setting.latency_seconds, " is not from 0 to ",
                                               limits.max_latency_seconds));
  }
  CheckContention(setting.contention, threads, faults, limits);
}

void CheckLayers(std::span<const BackwardLayer> layers, FaultList& faults,
                 const OverlapLimits& limits) {
  if (layers.empty()) faults.Add("layers", "there is none");
  if (layers.size() > Index(limits.max_layers)) {
    faults.Add("layers",
               OverLimit(static_cast<int64_t>(layers.size()), "max_layers", limits.max_layers));
    return;
  }
  for (size_t i = 0; i < layers.size() && !faults.full(); ++i) {
    const auto& [seconds, bytes] = layers[i];
    if (!(seconds >= 0 && seconds <= limits.max_layer_seconds)) {
      faults.Add(absl::StrCat("layers[", i, "].seconds"),
                 absl::StrCat(seconds, " is not from 0 to ", limits.max_layer_seconds));
    }
    if (bytes < 0 || bytes > limits.max_layer_bytes) {
      faults.Add(absl::StrCat("layers[", i, "].bytes"),
                 absl::StrCat(bytes, " is not from 0 to ", limits.max_layer_bytes));
    }
  }
}

void CheckGroups(std::span<const TensorGroup> groups, size_t layers, FaultList& faults) {
  int64_t next = 0;
  for (size_t i = 0; i < groups.size() && !faults.full(); ++i) {
    const TensorGroup& group = groups[i];
    const std::string path = absl::StrCat("groups[", i, "]");
    if (group.first != next) {
      faults.Add(path + ".first", absl::StrCat(group.first, " is not ", next,
                                               ", the first layer in no group before"));
      return;
    }
    next += group.count;
    if (group.count < 1 || next > static_cast<int64_t>(layers)) {
      faults.Add(path + ".count", absl::StrCat(group.count, " is not from 1 to ",
                                               static_cast<int64_t>(layers) - group.first));
      return;
    }
  }
  if (next != static_cast<int64_t>(layers))
    faults.Add("groups", absl::StrCat("they have ", next, " of ", layers, " layers"));
}

OverlapAssumptions CheckAssumptions(const Contention& contention,
                                    std::span<const int32_t> threads) {
  const auto speed = [&](int32_t count) { return ComputationSpeed(contention, count); };
  // Rate beside computation, as a share of that alone.
  const auto share = [&](int32_t count) {
    return BytesPerSecond(contention.overlapped, contention.gamma4, count) /
           BytesPerSecond(contention.alone, contention.gamma4, count);
  };
  const std::string faster =
      FailingThreads(threads, [&](int32_t count) { return speed(count) <= 1 + kRounding; });
  const std::string transfer_faster =
      FailingThreads(threads, [&](int32_t count) { return share(count) <= 1 + kRounding; });
  // The latency that both have in common makes a small all-reduce's share larger, so that a large
  // one is the hardest case.
  const std::string longer = FailingThreads(
      threads, [&](int32_t count) { return speed(count) + share(count) >= 1 - kRounding; });
  OverlapAssumptions found{.computation_not_faster = faster.empty(),
                           .transfer_not_faster = transfer_faster.empty(),
                           .overlap_not_longer = longer.empty()};
  const auto add = [&](const std::string& with, const char* what) {
    if (!with.empty()) absl::StrAppend(&found.why, found.why.empty() ? "" : "; ", with, what);
  };
  add(faster, "computation is faster beside an all-reduce than alone");
  add(transfer_faster, "an all-reduce is faster beside computation than alone");
  add(longer,
      "a large all-reduce and computation take longer beside each other than one after the other");
  return found;
}

CollectiveRates RatesOf(const OverlapSetting& setting, int32_t threads) {
  const double others = setting.workers - 1;
  const double sent = 2 * others / setting.workers;
  const Contention& contention = setting.contention;
  const auto seconds_per_byte = [&](const TransferRate& rate) {
    return sent / BytesPerSecond(rate, contention.gamma4, threads);
  };
  return {.threads = threads,
          .startup_seconds = 2 * others * setting.latency_seconds,
          .overlapped_seconds_per_byte = seconds_per_byte(contention.overlapped),
          .alone_seconds_per_byte = seconds_per_byte(contention.alone),
          .computation_speed = ComputationSpeed(contention, threads)};
}

OverlapStage OverlapOf(const CollectiveRates& rates, double bytes, double computation_seconds) {
  const double communication = rates.OverlappedSeconds(bytes);
  const double slowed = computation_seconds / rates.computation_speed;
  if (communication <= slowed) {
    const double rest = computation_seconds - communication * rates.computation_speed;
    return {.overlapped = communication, .computation = std::max(0.0, rest)};
  }
  return {.overlapped = slowed,
          .communication = rates.AloneSeconds(bytes) * (1 - slowed / communication)};
}

double BackwardTime::Exposed() const {
  double seconds_alone = 0;
  for (const OverlapStage& stage : stages) seconds_alone += stage.communication;
  return seconds_alone;
}

BackwardTime BackwardTimeOf(std::span<const BackwardLayer> layers,
                            std::span<const TensorGroup> groups, const OverlapSetting& setting) {
  double total = 0;
  for (const BackwardLayer& layer : layers) total += layer.seconds;
  std::vector<double> ready;
  std::vector<double> bytes;
  double begin = 0;
  for (const TensorGroup& group : groups) {
    ready.push_back(std::min(total, ReadyOf(layers, begin, group)));
    bytes.push_back(0);
    for (const BackwardLayer& layer : layers.subspan(Index(group.first), Index(group.count))) {
      begin += layer.seconds;
      bytes.back() += static_cast<double>(layer.bytes);
    }
  }
  BackwardTime time;
  // Left to compute when a group is ready, and at last nothing.
  const auto left_at = [&](size_t i) { return i < ready.size() ? total - ready[i] : 0; };
  double left = left_at(0);
  time.stages.push_back({.computation = total - left});
  for (size_t i = 0; i < groups.size(); ++i) {
    OverlapStage stage = OverlapOf(RatesOf(setting, groups[i].threads), bytes[i], left);
    const double rest = stage.computation;
    stage.computation = std::max(0.0, rest - left_at(i + 1));
    left = rest - stage.computation;
    time.stages.push_back(stage);
  }
  for (const OverlapStage& stage : time.stages) time.seconds += stage.Seconds();
  return time;
}

}  // namespace stepcast
