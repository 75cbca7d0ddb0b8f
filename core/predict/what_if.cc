#include "core/predict/what_if.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/model/scenario_edits.h"
#include "core/model/step_model.h"

namespace stepcast {

namespace {

Changed LeftOut(std::string why) { return {.why_not = std::move(why)}; }

// Groups, as if they had been asked for.
std::vector<WorkerGroup>& GroupsOf(Scenario& scenario) {
  if (scenario.worker_groups.empty()) {
    scenario.worker_groups.push_back(
        {.count = scenario.workers,
         .compute_speed_factor = 1,
         .bandwidth_bytes_per_second = scenario.bandwidth_bytes_per_second});
  }
  return scenario.worker_groups;
}

// A group for each worker, as if they had been asked for.
std::vector<WorkerGroup> GroupOfEach(const Scenario& scenario) {
  Scenario grouped = scenario;
  std::vector<WorkerGroup> each;
  for (const WorkerGroup& group : GroupsOf(grouped)) {
    WorkerGroup one = group;
    one.count = 1;
    each.insert(each.end(), Index(group.count), one);
  }
  return each;
}

// By recorded worker: the mean time for which a step computes. Failure: what `stop` returns.
absl::StatusOr<std::vector<double>> ComputedNsOf(const Profile& profile, StopCheck stop) {
  PacedStopCheck pace(stop);
  std::vector<double> means;
  for (int32_t worker = 0; worker < profile.recorded_workers(); ++worker) {
    double sum = 0;
    for (const RecordedStep& step : profile.steps_of(worker)) {
      for (size_t i = 0; i < profile.operations().size(); ++i) {
        if (!pace.GoesOn(1)) return pace.status();
        if (profile.operations()[i].resource == Resource::kWorker)
          sum += static_cast<double>(step.end_ns[i] - step.start_ns[i]);
      }
    }
    means.push_back(std::max(1.0, sum / static_cast<double>(profile.steps().size())));
  }
  return means;
}

Changed NoStragglers(Scenario scenario) {
  double speed = 0;
  double bandwidth = 0;
  for (const WorkerGroup& group : scenario.worker_groups) {
    speed = std::max(speed, group.compute_speed_factor.value_or(1));
    bandwidth = std::max(bandwidth, group.bandwidth_bytes_per_second.value_or(0));
  }
  bool differs = false;
  for (WorkerGroup& group : scenario.worker_groups) {
    differs = differs || group.compute_speed_factor != speed ||
              group.bandwidth_bytes_per_second != bandwidth;
    group.compute_speed_factor = speed;
    group.bandwidth_bytes_per_second = bandwidth;
  }
  if (!differs) return LeftOut("all workers are alike");
  return {.scenario = std::move(scenario)};
}

// By an edit, which says why where it makes no difference.
template <typename Edit>
Changed Edited(Scenario scenario, Edit edit) {
  std::string why_not = edit(scenario);
  if (!why_not.empty()) return LeftOut(std::move(why_not));
  return {.scenario = std::move(scenario)};
}

Changed ComputesFaster(Scenario scenario, double factor) {
  for (WorkerGroup& group : GroupsOf(scenario)) {
    const double speed = factor * group.compute_speed_factor.value_or(1);
    if (!(speed <= kMaxComputeSpeedFactor))
      return LeftOut(absl::StrCat("a speed of ", speed, " is above the limit"));
    group.compute_speed_factor = speed;
  }
  return {.scenario = std::move(scenario)};
}

Changed OneWorkerFewer(Scenario scenario) {
  if (scenario.workers == 1) return LeftOut("there is one worker");
  if (!scenario.Allows(scenario.workers - 1))
    return LeftOut(absl::StrCat(scenario.workers - 1, " workers cannot meet in this way"));
  std::vector<WorkerGroup>& groups = scenario.worker_groups;
  if (!groups.empty()) {
    const auto slowest =
        std::min_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
          return a.compute_speed_factor.value_or(1) < b.compute_speed_factor.value_or(1);
        });
    if (--slowest->count == 0) groups.erase(slowest);
  }
  if (!scenario.start_offsets_ns.empty()) scenario.start_offsets_ns.pop_back();
  --scenario.workers;
  return {.scenario = std::move(scenario)};
}

}  // namespace

const char* NameOf(WhatIf change) {
  constexpr const char* kNames[] = {"NO_STRAGGLERS",       "LINKS_TWICE_AS_FAST",
                                    "NO_LATENCY",          "COMPUTATION_TWICE_AS_FAST",
                                    "ONE_WORKER_FEWER",    "BEST_BUCKETS",
                                    "BEST_TRANSFER_ORDER", "SERVERS_TWICE_AS_FAST",
                                    "NO_HOST_WAIT",        "DATA_LOADING_TWICE_AS_FAST",
                                    "NO_DATA_WAIT",        "EQUAL_STAGES",
                                    "FREE_TRANSFERS",      "FREE_REDUCTIONS",
                                    "NO_STEP_END",         "TWICE_THE_MICRO_BATCHES",
                                    "TWICE_THE_CHUNKS",    "EAGER_RECEIVES"};
  static_assert(std::size(kNames) == kWhatIfCount);
  return kNames[static_cast<size_t>(change)];
}

ChangedRecording WithDataLoading(const Profile& profile, double factor) {
  const std::vector<Operation>& operations = profile.operations();
  std::vector<double> factors(operations.size(), 1);
  bool has_any = false;
  bool takes_time = false;
  for (size_t i = 0; i < operations.size(); ++i) {
    if (operations[i].pass != Pass::kDataLoading) continue;
    has_any = true;
    factors[i] = factor;
    for (int32_t worker = 0; worker < profile.recorded_workers(); ++worker) {
      for (const RecordedStep& step : profile.steps_of(worker))
        takes_time = takes_time || step.end_ns[i] > step.start_ns[i];
    }
  }
  if (!has_any)
    return {.profile = std::nullopt,
            .why_not = "the profile does not say for how long workers wait for data"};
  if (!takes_time) return {.profile = std::nullopt, .why_not = "workers never wait for data"};
  ProfileDraft draft = profile.content();
  RewriteSteps(draft, [&](const RecordedStep& step) { return WarpedStep(profile, step, factors); });
  absl::StatusOr<Profile> made = Profile::Create(std::move(draft));
  if (!made.ok()) return {.profile = std::nullopt, .why_not = std::string(made.status().message())};
  return {.profile = made->WithChange(profile.change(), profile), .why_not = ""};
}

absl::StatusOr<JobChanges> JobChanges::Of(const Profile& profile, StopCheck stop) {
  JobChanges changes(profile);
  if (profile.content().device_idle_fraction.value_or(0) > 0) changes.FindDataWait();
  if (profile.recorded_workers() == 1) return changes;
  absl::StatusOr<std::vector<double>> computed_ns = ComputedNsOf(profile, stop);
  if (!computed_ns.ok()) return computed_ns.status();
  changes.computed_ns_ = *std::move(computed_ns);
  return changes;
}

void JobChanges::FindDataWait() {
  ChangedRecording without = WithDataLoading(*profile_, 0);
  if (!without.profile.has_value()) return;
  const auto seconds = [](const Profile& profile) {
    double sum = 0;
    for (const RecordedStep& step : profile.steps())
      sum += static_cast<double>(*std::max_element(step.end_ns.begin(), step.end_ns.end()) -
                                 *std::min_element(step.start_ns.begin(), step.start_ns.end()));
    return sum;
  };
  data_share_ = 1 - seconds(*without.profile) / seconds(*profile_);
  without_data_wait_ = std::make_shared<const Profile>(*std::move(without.profile));
}

// By worker of the scenario: its speed over that of one that computes for a nanosecond.
std::vector<double> JobChanges::SpeedsOf(const Scenario& scenario) const {
  std::vector<double> speeds;
  for (const WorkerGroup& group : GroupOfEach(scenario)) {
    speeds.push_back(group.compute_speed_factor.value_or(1) /
                     computed_ns_[speeds.size() % computed_ns_.size()]);
  }
  return speeds;
}

// Every worker keeps its own steps, scaled to the mean of the fastest.
Changed JobChanges::NoRecordedStragglers(Scenario scenario) const {
  std::vector<WorkerGroup> groups = GroupOfEach(scenario);
  const std::vector<double> speeds = SpeedsOf(scenario);
  const double fastest = *std::max_element(speeds.begin(), speeds.end());
  double bandwidth = 0;
  for (const WorkerGroup& group : groups)
    bandwidth = std::max(bandwidth, group.bandwidth_bytes_per_second.value_or(0));
  for (size_t worker = 0; worker < groups.size(); ++worker) {
    const double speed =
        groups[worker].compute_speed_factor.value_or(1) * (fastest / speeds[worker]);
    if (speed > kMaxComputeSpeedFactor)
      return LeftOut(absl::StrCat("a speed of ", speed, " is above the limit"));
    groups[worker].compute_speed_factor = speed;
    groups[worker].bandwidth_bytes_per_second = bandwidth;
  }
  scenario.worker_groups = std::move(groups);
  return {.scenario = std::move(scenario)};
}

Changed JobChanges::NoHostWait(Scenario scenario) const {
  const std::optional<double> idle = profile_->content().device_idle_fraction;
  if (!idle.has_value())
    return LeftOut("the profile does not say for how long devices wait for their hosts");
  if (*idle == 0) return LeftOut("devices never wait for their hosts");
  // Waiting that is not for data is in every computation alike.
  const double rest = std::max(0.0, (*idle - data_share_) / (1 - data_share_));
  Changed changed = ComputesFaster(std::move(scenario), 1 / (1 - rest));
  changed.profile = without_data_wait_;
  return changed;
}

JobChanges::WithoutOne JobChanges::WithoutTheSlowest(Scenario scenario) const {
  const auto recorded_workers = static_cast<int32_t>(computed_ns_.size());
  const std::vector<double> speeds = SpeedsOf(scenario);
  const auto slowest = std::min_element(speeds.begin(), speeds.end()) - speeds.begin();
  WithoutOne without;
  for (int32_t worker = 0; worker < scenario.workers; ++worker) {
    if (worker != slowest) without.recorded.push_back(worker % recorded_workers);
  }
  if (scenario.workers == 1 || !scenario.Allows(scenario.workers - 1)) {
    without.changed = OneWorkerFewer(std::move(scenario));
    return without;
  }
  if (!scenario.worker_groups.empty()) {
    scenario.worker_groups = GroupOfEach(scenario);
    scenario.worker_groups.erase(scenario.worker_groups.begin() + slowest);
  }
  if (!scenario.start_offsets_ns.empty())
    scenario.start_offsets_ns.erase(scenario.start_offsets_ns.begin() + slowest);
  --scenario.workers;
  without.changed = {.scenario = std::move(scenario)};
  return without;
}

Changed JobChanges::By(WhatIf change, const Scenario& scenario) const {
  switch (change) {
    case WhatIf::kNoStragglers:
      return computed_ns_.empty() ? NoStragglers(scenario) : NoRecordedStragglers(scenario);
    case WhatIf::kLinksTwiceAsFast:
      return Edited(scenario, MakeLinksTwiceAsFast);
    case WhatIf::kNoLatency:
      return Edited(scenario, RemoveLatency);
    case WhatIf::kComputationTwiceAsFast:
      // Waits of devices for hosts stay.
      return ComputesFaster(scenario, SpeedWithDevice(*profile_, 2));
    case WhatIf::kOneWorkerFewer:
      return OneWorkerFewer(scenario);
    case WhatIf::kServersTwiceAsFast:
      return Edited(scenario,
                    [&](Scenario& changed) { return MakeServersTwiceAsFast(*profile_, changed); });
    case WhatIf::kNoHostWait:
      return NoHostWait(scenario);
    default:
      break;  // searched for, or of pipelines
  }
  return {};
}

}  // namespace stepcast
