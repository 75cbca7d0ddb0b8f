#include "core/predict/strong_scaling.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/predict/request_faults.h"

namespace stepcast {

namespace {

JobChange ShareOf(const JobChange& change, int32_t workers) {
  JobChange share = change;
  share.batch_size = static_cast<int32_t>(*change.global_batch_size / workers);
  share.global_batch_size.reset();
  return share;
}

absl::StatusOr<Profile> ProfileOf(const StrongScalingQuery& query, int32_t workers) {
  absl::StatusOr<Profile> changed =
      ChangedProfile(query.recorded, ShareOf(query.change, workers),
                     query.second ? &*query.second : nullptr, query.limits);
  if (!changed.ok()) return UnderPath("scenario.change", changed.status());
  return changed;
}

// One scenario with its own profile.
absl::StatusOr<ThroughputAnswer> PredictOne(const StrongScalingQuery& query, Scenario scenario,
                                            StopCheck stop, const Executor& executor) {
  const absl::StatusOr<Profile> profile = ProfileOf(query, scenario.workers);
  if (!profile.ok()) return profile.status();
  scenario.change = profile->change();
  return PredictThroughput(*profile,
                           {.scenarios = {std::move(scenario)},
                            .options = query.options,
                            .plan = query.plan,
                            .series_points = query.series_points},
                           stop, executor);
}

// The scenario with one worker, as the speed-up's base has it.
Scenario AloneOf(Scenario scenario) {
  scenario.workers = 1;
  scenario.start_offsets_ns.resize(std::min<size_t>(1, scenario.start_offsets_ns.size()));
  scenario.worker_groups.resize(std::min<size_t>(1, scenario.worker_groups.size()));
  if (!scenario.worker_groups.empty()) scenario.worker_groups.front().count = 1;
  return scenario;
}

}  // namespace

absl::StatusOr<StrongScalingQuery> ResolveStrongScaling(const Profile& recorded,
                                                        const ThroughputDraft& draft,
                                                        const JobChange& change,
                                                        const Profile* second,
                                                        const ProfileLimits& limits) {
  absl::StatusOr<ThroughputQuery> throughput = ResolveThroughput(recorded, draft, {});
  if (!throughput.ok()) return throughput.status();
  RequestFaults faults;
  const int64_t batch = *change.global_batch_size;
  if (change.batch_size.has_value())
    faults.Add("scenario.change.batch_size", "given, and a global_batch_size: which of both?");
  if (batch < 1 || batch > INT32_MAX) {
    faults.Add("scenario.change.global_batch_size",
               absl::StrCat(batch, " is not from 1 to ", INT32_MAX));
  }
  for (size_t i = 0; i < throughput->scenarios.size() && batch >= 1; ++i) {
    const int32_t workers = throughput->scenarios[i].workers;
    if (batch % workers == 0) continue;
    const std::string path = !draft.worker_counts.empty() ? absl::StrCat("worker_counts[", i, "]")
                             : !draft.scenarios.empty() ? absl::StrCat("scenarios[", i, "].workers")
                                                        : "scenario.workers";
    faults.Add(path, absl::StrCat(workers, " workers do not divide the global batch of ", batch,
                                  " examples"));
  }
  if (absl::Status status = std::move(faults).ToStatus("REQUEST_INVALID"); !status.ok())
    return status;
  StrongScalingQuery query{*std::move(throughput), recorded,
                           second == nullptr ? std::nullopt : std::optional(*second), change,
                           limits};
  const absl::StatusOr<Profile> first = ProfileOf(query, query.scenarios.front().workers);
  if (!first.ok()) return first.status();
  return query;
}

absl::StatusOr<ThroughputAnswer> PredictStrongScaling(const StrongScalingQuery& query,
                                                      StopCheck stop, const Executor& executor) {
  ThroughputAnswer answer;
  std::vector<std::pair<Scenario, double>> alone;  // and its examples per second
  for (const Scenario& scenario : query.scenarios) {
    absl::StatusOr<ThroughputAnswer> one = PredictOne(query, scenario, stop, executor);
    if (!one.ok()) return one.status();
    answer.simulation.Add(one->simulation);
    Prediction prediction = std::move(one->predictions.front());
    const Scenario base = AloneOf(scenario);
    auto known = std::find_if(alone.begin(), alone.end(),
                              [&](const auto& entry) { return entry.first == base; });
    if (known == alone.end()) {
      one = PredictOne(query, base, stop, executor);
      if (!one.ok()) return one.status();
      answer.simulation.Add(one->simulation);
      known = alone.insert(alone.end(), {base, one->predictions.front().examples_per_second});
    }
    prediction.speedup = prediction.examples_per_second / known->second;
    prediction.scaling_efficiency = prediction.speedup / scenario.workers;
    answer.predictions.push_back(std::move(prediction));
  }
  return answer;
}

}  // namespace stepcast
