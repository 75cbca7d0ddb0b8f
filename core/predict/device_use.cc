#include "core/predict/device_use.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "core/base/index.h"
#include "core/communication/full_sharding.h"
#include "core/model/job_change.h"

namespace stepcast {

namespace {

// The rest of the name of a computation that begins so; empty: it does not.
std::string_view NameBehind(std::string_view prefix, const Operation& operation) {
  const std::string_view name = operation.name;
  if (operation.resource != Resource::kWorker || !name.starts_with(prefix)) return {};
  return name.substr(prefix.size());
}

// Bytes of collectives of the job's workers of that kind.
double BytesOf(const Profile& profile, Collective kind) {
  double bytes = 0;
  for (const Operation& operation : profile.operations()) {
    if (operation.collective == kind && IsAcrossWorkers(operation))
      bytes += static_cast<double>(operation.size_bytes);
  }
  return bytes;
}

// The sharding that a recording shows: ZeRO-3 gathers parameters before the forward pass and again
// before the backward pass, all others once.
Sharding RecordedSharding(const Profile& profile) {
  constexpr double kGathersMoreThanOnce = 1.5;
  const double scattered = BytesOf(profile, Collective::kReduceScatter);
  if (scattered == 0) return Sharding::kNone;
  return BytesOf(profile, Collective::kAllGather) > kGathersMoreThanOnce * scattered
             ? Sharding::kFull
             : Sharding::kGradients;
}

}  // namespace

std::vector<UndonePair> UndonePairsOf(const Profile& profile) {
  std::map<std::string_view, int32_t> backward;
  const std::vector<Operation>& operations = profile.operations();
  for (size_t i = 0; i < operations.size(); ++i) {
    const std::string_view name = NameBehind("backward/", operations[i]);
    if (!name.empty()) backward[name] = static_cast<int32_t>(i);
  }
  std::vector<UndonePair> pairs;
  for (const std::vector<int32_t>& stream : StreamOrders(profile)) {
    for (const int32_t operation : stream) {
      const std::string_view name = NameBehind("forward/", operations[Index(operation)]);
      const auto found = backward.find(name);
      if (!name.empty() && found != backward.end())
        pairs.push_back({.name = name, .forward = operation, .backward = found->second});
    }
  }
  return pairs;
}

std::vector<std::vector<int32_t>> StreamOrders(const Profile& profile) {
  const std::vector<Operation>& operations = profile.operations();
  std::vector<double> starts(operations.size(), 0);
  for (const RecordedStep& step : profile.steps()) {
    for (size_t i = 0; i < operations.size(); ++i)
      starts[i] += static_cast<double>(step.start_ns[i]);
  }
  std::vector<std::vector<int32_t>> orders;
  for (size_t i = 0; i < operations.size(); ++i) {
    if (operations[i].resource != Resource::kWorker) continue;
    const auto stream = Index(operations[i].stream);
    if (orders.size() <= stream) orders.resize(stream + 1);
    orders[stream].push_back(static_cast<int32_t>(i));
  }
  for (std::vector<int32_t>& order : orders) {
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return starts[Index(a)] < starts[Index(b)]; });
  }
  return orders;
}

double ParameterBytes(const Profile& profile) {
  double bytes = BytesOf(profile, Collective::kReduceScatter);
  for (const Operation& operation : profile.operations()) {
    if (IsGradient(operation)) bytes += static_cast<double>(operation.size_bytes);
  }
  return bytes / SentShareOf(profile);
}

double PeakOfKept(const Profile& profile, const std::vector<int64_t>& kept_bytes) {
  std::vector<uint8_t> is_paired(profile.operations().size(), 0);
  for (const UndonePair& pair : UndonePairsOf(profile)) is_paired[Index(pair.forward)] = 1;
  double kept = 0;
  double peak = 0;
  double previous = 0;  // of the gradient of the output before
  for (const std::vector<int32_t>& stream : StreamOrders(profile)) {
    for (const int32_t operation : stream) {
      const auto bytes = static_cast<double>(kept_bytes[Index(operation)]);
      if (bytes == 0) continue;
      const auto output = static_cast<double>(profile.operations()[Index(operation)].output_bytes);
      const double gradient = is_paired[Index(operation)] == 0 ? 0 : output > 0 ? output : bytes;
      kept += bytes;
      peak = std::max(peak, kept + gradient + previous);
      previous = gradient;
    }
  }
  return peak;
}

std::optional<std::vector<int64_t>> KeptBytesOf(const Profile& profile) {
  std::vector<int64_t> bytes;
  bool keeps_any = false;
  for (const Operation& operation : profile.operations()) {
    bytes.push_back(operation.kept_bytes);
    keeps_any = keeps_any || operation.kept_bytes > 0;
  }
  return keeps_any ? std::optional(std::move(bytes)) : std::nullopt;
}

DeviceMemory StateOf(double parameter_bytes, Sharding sharding, int32_t workers) {
  const auto share_from = [&](Sharding least) {
    return sharding >= least ? parameter_bytes / workers : parameter_bytes;
  };
  return {.parameters = share_from(Sharding::kFull),
          .gradients = share_from(Sharding::kGradients),
          .optimizer = kOptimizerCopies * share_from(Sharding::kOptimizer),
          .kept = std::nullopt};
}

MemoryNeeds MemoryNeedsOf(const Profile& profile) {
  MemoryNeeds needs{.parameter_bytes = ParameterBytes(profile),
                    .sent_share = SentShareOf(profile),
                    .kept = std::nullopt,
                    .recorded = RecordedSharding(profile)};
  if (const auto kept_bytes = KeptBytesOf(profile); kept_bytes.has_value())
    needs.kept = PeakOfKept(profile, *kept_bytes);
  return needs;
}

std::optional<DeviceMemory> MemoryOf(const MemoryNeeds& needs, const Scenario& scenario,
                                     const std::vector<PlannedCollective>& collectives) {
  if (needs.parameter_bytes == 0 && !needs.kept.has_value()) return std::nullopt;
  const bool has_servers = scenario.server_count() > 0;
  const Sharding sharding =
      has_servers ? Sharding::kNone : std::max(ShardingOf(scenario), needs.recorded);
  DeviceMemory memory = StateOf(needs.parameter_bytes, sharding, scenario.workers);
  memory.kept = needs.kept;
  if (has_servers) memory.optimizer = 0;
  if (sharding != Sharding::kFull || scenario.workers == 1) return memory;
  double previous = 0;
  double gathered = 0;
  double scattered = 0;
  for (const PlannedCollective& collective : collectives) {
    const double bytes = static_cast<double>(collective.bytes) / needs.sent_share;
    if (collective.kind == Collective::kAllGather) {
      gathered = std::max(gathered, previous + bytes);
      previous = bytes;
    } else if (collective.kind == Collective::kReduceScatter) {
      scattered = std::max(scattered, bytes);
    }
  }
  // The last unit of the forward pass is the first of the backward pass.
  memory.parameters += std::min(gathered, needs.parameter_bytes);
  memory.gradients += scattered;
  return memory;
}

namespace {

enum Part : size_t { kForward, kBackward, kOptimizer, kOther, kParts };

Part PartOf(Pass pass) {
  switch (pass) {
    case Pass::kForward:
      return Part::kForward;
    case Pass::kBackward:
    case Pass::kBackwardInput:
    case Pass::kBackwardWeight:
      return Part::kBackward;
    case Pass::kOptimizer:
      return Part::kOptimizer;
    case Pass::kOther:
    case Pass::kDataLoading:
    case Pass::kUnspecified:
      break;
  }
  return Part::kOther;
}

}  // namespace

std::optional<PassTimes> PassTimesOf(const Program& program, const Profile& profile) {
  const LaneIndex lanes = program.lanes().count();
  bool is_known = false;
  std::array<double, kParts> sums{};
  for (int32_t step = 0; step < program.step_count(); ++step) {
    std::vector<std::array<double, kParts>> of_lane(Index(lanes));
    for (OpIndex op = 0; op < program.size(); ++op) {
      const LaneRole role = program.lanes()[program.lane(op)].role;
      if ((role != LaneRole::kCompute && role != LaneRole::kHost) || program.IsParsing(op))
        continue;
      const Pass pass = profile.operations()[Index(program.source(op))].pass;
      is_known = is_known || pass != Pass::kUnspecified;
      of_lane[Index(program.lane(op))][PartOf(pass)] += ToSeconds(program.duration(step, op));
    }
    for (size_t part = 0; part < kParts; ++part) {
      double most = 0;
      for (const std::array<double, kParts>& lane : of_lane) most = std::max(most, lane[part]);
      sums[part] += most;
    }
  }
  if (!is_known) return std::nullopt;
  const double steps = program.step_count();
  return PassTimes{.forward = sums[kForward] / steps,
                   .backward = sums[kBackward] / steps,
                   .optimizer = sums[kOptimizer] / steps,
                   .other = sums[kOther] / steps};
}

}  // namespace stepcast
