#include "core/recommend/recommendation_query.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/predict/request_faults.h"

namespace stepcast {

namespace {

// In strides, each power of two is followed by so many numbers up to the next.
constexpr int32_t kNumbersOfADoubling = 32;

struct Counts {
  int32_t min = 1;
  int32_t max = kDefaultMaxWorkers;
  std::vector<int32_t> listed;
  bool valid = true;  // else they may be far apart
};

Counts ResolveListed(const RecommendationDraft& draft, RequestFaults& faults) {
  constexpr char kField[] = "constraints.worker_counts";
  const int32_t limit = ScenarioLimits{}.max_workers;
  Counts counts{.listed = draft.worker_counts};
  const auto refuse = [&](std::string field, std::string why) {
    faults.Add(std::move(field), std::move(why));
    counts.valid = false;
  };
  if (draft.min_workers.has_value() || draft.max_workers.has_value()) {
    refuse(kField, absl::StrCat(counts.listed.size(),
                                " given beside min_workers or max_workers: give either"));
  }
  if (counts.listed.size() > static_cast<size_t>(kMaxCounts)) {
    refuse(kField, absl::StrCat(counts.listed.size(), " given, more than ", kMaxCounts));
    return counts;
  }
  for (size_t i = 0; i < counts.listed.size(); ++i) {
    if (counts.listed[i] < 1 || counts.listed[i] > limit)
      refuse(absl::StrCat(kField, "[", i, "]"),
             absl::StrCat(counts.listed[i], " is not from 1 to ", limit));
  }
  std::sort(counts.listed.begin(), counts.listed.end());
  counts.listed.erase(std::unique(counts.listed.begin(), counts.listed.end()), counts.listed.end());
  counts.min = counts.listed.front();
  counts.max = counts.listed.back();
  return counts;
}

Counts ResolveCounts(const RecommendationDraft& draft, RequestFaults& faults) {
  if (!draft.worker_counts.empty()) return ResolveListed(draft, faults);
  const int32_t limit = ScenarioLimits{}.max_workers;
  Counts counts;
  const auto refuse = [&](const char* field, std::string why) {
    faults.Add(field, std::move(why));
    counts.valid = false;
  };
  counts.min = draft.min_workers.value_or(1);
  if (counts.min < 1 || counts.min > limit) {
    refuse("constraints.min_workers", absl::StrCat(counts.min, " is not from 1 to ", limit));
    counts.min = std::clamp(counts.min, 1, limit);  // so that max_workers can still be judged
  }
  // A running job may stay as it is.
  const int32_t running = draft.current.has_value() ? draft.current->workers : 1;
  counts.max = draft.max_workers.value_or(std::min(
      std::max({kDefaultMaxWorkers, counts.min + kDefaultMaxWorkers - 1, running}), limit));
  if (counts.max < 1 || counts.max > limit) {
    refuse("constraints.max_workers", absl::StrCat(counts.max, " is not from 1 to ", limit));
  } else if (counts.max < counts.min) {
    refuse("constraints.max_workers",
           absl::StrCat(counts.max, " is less than min_workers ", counts.min));
  }
  return counts;
}

// A count of workers is what is asked for, so nothing may fix it. The scenario without what does.
ScenarioDraft WithoutWorkers(ScenarioDraft draft, RequestFaults& faults) {
  faults.AddIf(draft.workers.has_value(), "scenario.workers", draft.workers,
               " given, must be unset: constraints say what to try");
  draft.workers.reset();
  return WithVariedWorkers(draft, "the number of workers varies", faults);
}

// One scenario for each number of servers that may be chosen.
std::vector<Scenario> ResolveServers(const Profile& profile, const RecommendationDraft& draft,
                                     const Counts& counts, const SharedBatch* shared,
                                     RequestFaults& faults) {
  ScenarioDraft free = WithoutWorkers(draft.scenario, faults);
  if (shared != nullptr) shared->Share(free, "scenario", "", faults);
  const bool chooses_servers = draft.max_parameter_servers.has_value() &&
                               std::holds_alternative<ParameterServersDraft>(free.communication);
  const auto [scenario, meets_in_collectives] =
      ResolveBeforeServers(profile, free, chooses_servers, {.pipelines = true});
  faults.AddPart("scenario", scenario.status());
  if (meets_in_collectives && draft.max_parameter_servers.has_value()) {
    faults.Add("constraints.max_parameter_servers",
               absl::StrCat(*draft.max_parameter_servers,
                            " given, and the job's workers meet in collectives"));
    return {};
  }
  if (!draft.max_parameter_servers.has_value())
    return scenario.ok() ? std::vector{*scenario} : std::vector<Scenario>{};
  constexpr char kField[] = "constraints.max_parameter_servers";
  const int32_t most = *draft.max_parameter_servers;
  faults.AddIf(free.servers().servers.has_value(), "scenario.parameter_servers.servers",
               free.servers().servers,
               " given, must be unset: constraints.max_parameter_servers says what to try");
  const int32_t limit = ScenarioLimits{}.max_parameter_servers;
  if (most < 1 || most > limit) {
    faults.Add(kField, absl::StrCat(most, " is not from 1 to ", limit));
    return {};
  }
  const int64_t choices = int64_t{most} * std::min(counts.max - counts.min + 1, kMaxCounts);
  if (choices > kMaxChoices) {
    faults.Add(kField, absl::StrCat(most, " makes ", choices,
                                    " choices of workers and servers, more than ", kMaxChoices));
    return {};
  }
  std::vector<Scenario> scenarios;
  if (!scenario.ok()) return scenarios;
  for (int32_t servers = 1; servers <= most; ++servers) {
    absl::StatusOr<Scenario> resolved = ResolveWithServers(profile, free, servers, most);
    // Whatever is wrong with it now is so because of the servers.
    if (!resolved.ok()) {
      faults.Add(kField, absl::StrCat(most, " means trying ", servers,
                                      " servers: ", resolved.status().message()));
      return {};
    }
    scenarios.push_back(*std::move(resolved));
  }
  return scenarios;
}

void CheckGoals(const RecommendationDraft& draft, RequestFaults& faults) {
  const double efficiency = draft.min_scaling_efficiency.value_or(0);
  faults.AddIf(!(efficiency >= 0 && efficiency <= 1), "constraints.min_scaling_efficiency",
               efficiency, " is not from 0 to 1");
  if (draft.examples.has_value() && *draft.examples < 1)
    faults.Add("constraints.examples", absl::StrCat(*draft.examples, " is less than 1"));
  if (draft.deadline_seconds.has_value()) {
    faults.AddIf(!(*draft.deadline_seconds > 0), "constraints.deadline", draft.deadline_seconds,
                 " seconds, must be above 0");
    if (!draft.examples.has_value())
      faults.Add("constraints.examples", "unset, but constraints.deadline needs it");
  }
  if (draft.budget.has_value()) {
    if (!IsAmount(*draft.budget) || *draft.budget == 0)
      faults.Add("constraints.budget",
                 absl::StrCat(*draft.budget, NoAmount(/*may_be_none=*/false)));
    if (!draft.examples.has_value())
      faults.Add("constraints.examples", "unset, but constraints.budget needs it");
    if (!draft.prices.has_value()) faults.Add("prices", "unset, but constraints.budget needs them");
  }
}

// `choices`: of servers.
void CheckCosts(const RecommendationDraft& draft, const std::vector<Scenario>& choices,
                RequestFaults& faults) {
  const bool needed = draft.objective == Objective::kMinCost;
  if (!draft.prices.has_value()) {
    if (needed) faults.Add("prices", "unset, but objective MIN_COST needs them");
    return;
  }
  const MachinePrices& prices = *draft.prices;
  CheckPrices("prices", prices, choices, faults);
  faults.AddIf(needed && prices.worker_hour == 0 && prices.parameter_server_hour == 0 &&
                   prices.node_hour == 0 && prices.device_hour == 0,
               "prices", "all 0, but objective MIN_COST needs a price to compare by");
}

void CheckCurrent(const RecommendationDraft& draft, RequestFaults& faults) {
  if (!draft.current.has_value()) return;
  const CurrentAllocation& current = *draft.current;
  const ScenarioLimits limits;
  faults.AddIf(current.workers < 1 || current.workers > limits.max_workers, "current.workers",
               current.workers, " is not from 1 to ", limits.max_workers);
  const int32_t servers = current.parameter_servers.value_or(1);
  faults.AddIf(servers < 1 || servers > limits.max_parameter_servers, "current.parameter_servers",
               servers, " is not from 1 to ", limits.max_parameter_servers);
  faults.AddIf(!(current.rescale_seconds >= 0 && std::isfinite(current.rescale_seconds)),
               "current.rescale_seconds", current.rescale_seconds,
               " is not a number of seconds of at least 0");
}

}  // namespace

bool RecommendationQuery::IsCandidate(int32_t workers) const {
  return workers >= min_workers && workers <= max_workers &&
         server_choices.front().Allows(workers) &&
         (!shared.has_value() ||
          server_choices.front().CanShare(shared->micro_batch_examples(), workers)) &&
         (worker_counts.empty() ||
          std::binary_search(worker_counts.begin(), worker_counts.end(), workers));
}

int32_t RecommendationQuery::CandidateBelow(int32_t workers) const {
  for (int32_t count = workers - 1; count >= min_workers; --count) {
    if (IsCandidate(count)) return count;
  }
  return 0;
}

int32_t RecommendationQuery::CandidateAbove(int32_t workers) const {
  for (int32_t count = workers + 1; count <= max_workers; ++count) {
    if (IsCandidate(count)) return count;
  }
  return 0;
}

size_t RecommendationQuery::choices() const {
  size_t candidates = 0;
  for (int32_t count = min_workers; count <= max_workers; ++count)
    candidates += IsCandidate(count) ? 1 : 0;
  return server_choices.size() * candidates;
}

namespace {

int32_t UnitOf(const RecommendationQuery& query) {
  return query.server_choices.front().workers_per_node();
}

// 1 up to 64, 2 up to 128, 4 up to 256 and so on: all are of the form m * 2^k with m <= 64.
int32_t StrideAt(int32_t number) {
  int32_t stride = 1;
  while (int64_t{2} * kNumbersOfADoubling * stride < number) stride *= 2;
  return stride;
}

}  // namespace

std::vector<int32_t> RecommendationQuery::FirstCounts() const {
  std::vector<int32_t> counts;
  for (int32_t count = min_workers; count <= max_workers; ++count) {
    if (IsCandidate(count)) counts.push_back(count);
  }
  if (counts.size() <= static_cast<size_t>(kMaxCounts)) return counts;
  const int32_t unit = UnitOf(*this);
  const int32_t first = counts.front();
  const int32_t last = counts.back();
  std::erase_if(counts, [&](int32_t count) {
    const int32_t units = count / unit;
    return units % StrideAt(units) != 0 && count != first && count != last &&
           !(current.has_value() && current->workers == count);
  });
  return counts;
}

int32_t RecommendationQuery::LargestStride() const {
  const int32_t unit = UnitOf(*this);
  return choices() / server_choices.size() <= static_cast<size_t>(kMaxCounts)
             ? 1
             : unit * StrideAt(max_workers / unit);
}

int32_t RecommendationQuery::StridesBegin() const {
  return 2 * kNumbersOfADoubling * UnitOf(*this);
}

namespace {

// A number that is named must fill nodes; of a range some number must.
void CheckNodes(const RecommendationQuery& query, const RecommendationDraft& draft,
                RequestFaults& faults) {
  for (size_t i = 0; i < draft.worker_counts.size(); ++i) {
    if (!query.server_choices.front().Allows(draft.worker_counts[i])) {
      faults.Add(
          absl::StrCat("constraints.worker_counts[", i, "]"),
          absl::StrCat(draft.worker_counts[i], " does not fill nodes as scenario.all_reduce says"));
    }
    if (query.shared.has_value()) {
      query.shared->CheckShares(query.server_choices.front(), draft.worker_counts[i],
                                absl::StrCat("constraints.worker_counts[", i, "]"), faults);
    }
  }
  if (!draft.worker_counts.empty() || query.choices() > 0) return;
  bool any_fills_nodes = false;
  for (int32_t count = query.min_workers; count <= query.max_workers; ++count)
    any_fills_nodes = any_fills_nodes || query.server_choices.front().Allows(count);
  faults.Add(
      "constraints.max_workers",
      absl::StrCat("no number of workers from ", query.min_workers, " to ", query.max_workers,
                   any_fills_nodes && query.shared.has_value()
                       ? " divides " + query.shared->Name()
                       : " fills nodes as scenario.all_reduce says"));
}

}  // namespace

absl::StatusOr<RecommendationQuery> ResolveRecommendation(const Profile& profile,
                                                          const RecommendationDraft& draft,
                                                          std::optional<SharedBatch> shared) {
  RequestFaults faults;
  const Counts counts = ResolveCounts(draft, faults);
  RecommendationQuery query{
      .server_choices =
          ResolveServers(profile, draft, counts, shared.has_value() ? &*shared : nullptr, faults),
      .min_workers = counts.min,
      .max_workers = counts.max,
      .worker_counts = counts.listed};
  query.shared = std::move(shared);
  absl::StatusOr<SimulationOptions> options = ResolveOptions(draft.options);
  faults.AddPart("options", options.status());
  if (options.ok() && draft.scenario.pipeline.has_value())
    CheckHorizonOfPipelines(options->horizon, faults);
  if (counts.valid && !query.server_choices.empty()) CheckNodes(query, draft, faults);
  CheckGoals(draft, faults);
  CheckCosts(draft, query.server_choices, faults);
  if (draft.failures.has_value()) CheckFailures("failures", *draft.failures, faults);
  if (draft.failures.has_value() && !draft.examples.has_value())
    faults.Add("constraints.examples", "unset, but failures need it");
  CheckCurrent(draft, faults);
  if (absl::Status status = std::move(faults).ToStatus("RECOMMENDATION_INVALID"); !status.ok())
    return status;
  query.options = *options;
  query.devices_per_worker = query.server_choices.front().DevicesPerWorker(profile);
  query.objective = draft.objective;
  query.deadline_seconds = draft.deadline_seconds;
  query.examples = draft.examples;
  query.budget = draft.budget;
  query.min_scaling_efficiency = draft.min_scaling_efficiency.value_or(0);
  query.prices = draft.prices;
  query.failures = draft.failures;
  query.current = draft.current;
  // Servers that nobody numbers are as many as the profile was recorded with, or as the scenario
  // says.
  if (query.current.has_value() && !query.current->parameter_servers.has_value()) {
    query.current->parameter_servers =
        query.server_choices.front().server_count() > 0
            ? draft.scenario.servers().servers.value_or(profile.parameter_servers())
            : 0;
  }
  return query;
}

}  // namespace stepcast
