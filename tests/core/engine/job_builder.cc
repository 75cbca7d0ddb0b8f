#include "tests/core/engine/job_builder.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

namespace stepcast::testing {

int32_t JobBuilder::Add(Operation operation, std::vector<int64_t> ns_by_step) {
  const auto index = static_cast<int32_t>(operations_.size());
  operation.name = "op" + std::to_string(index);
  operations_.push_back(std::move(operation));
  ns_by_step_.push_back(std::move(ns_by_step));
  return index;
}

int32_t JobBuilder::Download(int64_t bytes, Waits waits, int32_t server, std::string parameter) {
  return Add({.resource = Resource::kDownlink,
              .parameter_server = server,
              .size_bytes = bytes,
              .waiting_for = std::move(waits),
              .parameter = std::move(parameter)},
             {0});
}

int32_t JobBuilder::Upload(int64_t bytes, Waits waits, int32_t server, std::string parameter) {
  return Add({.resource = Resource::kUplink,
              .parameter_server = server,
              .size_bytes = bytes,
              .waiting_for = std::move(waits),
              .parameter = std::move(parameter)},
             {0});
}

int32_t JobBuilder::Compute(int64_t ns, Waits waits) {
  return Compute(std::vector<int64_t>{ns}, std::move(waits));
}

int32_t JobBuilder::Compute(std::vector<int64_t> ns_by_step, Waits waits) {
  return Add({.resource = Resource::kWorker, .waiting_for = std::move(waits)},
             std::move(ns_by_step));
}

int32_t JobBuilder::Update(int64_t ns, Waits waits, int32_t server, std::string parameter) {
  return Add({.resource = Resource::kParameterServer,
              .parameter_server = server,
              .waiting_for = std::move(waits),
              .parameter = std::move(parameter)},
             {ns});
}

Profile JobBuilder::Build() const {
  ProfileDraft draft{
      .batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}, .operations = operations_};
  size_t steps = 1;
  for (const std::vector<int64_t>& own : ns_by_step_) steps = std::max(steps, own.size());
  draft.steps.resize(steps);
  for (size_t i = 0; i < operations_.size(); ++i) {
    draft.parameter_servers =
        std::max(draft.parameter_servers, operations_[i].parameter_server + 1);
    for (size_t step = 0; step < steps; ++step) {
      draft.steps[step].start_ns.push_back(0);
      draft.steps[step].end_ns.push_back(ns_by_step_[i][std::min(step, ns_by_step_[i].size() - 1)]);
    }
  }
  absl::StatusOr<Profile> profile = Profile::Create(std::move(draft));
  if (!profile.ok()) throw std::logic_error(profile.status().ToString());
  return *std::move(profile);
}

Scenario Resolved(const Profile& profile, const ScenarioDraft& draft) {
  absl::StatusOr<Scenario> scenario = ResolveScenario(profile, draft);
  if (!scenario.ok()) throw std::logic_error(scenario.status().ToString());
  return *std::move(scenario);
}

JobGraph JobFor(const Profile& profile, const Scenario& scenario, std::vector<int32_t> ranks) {
  auto program = std::make_shared<const Program>(BuildProgram(profile, scenario));
  Ranking ranking;
  if (!ranks.empty()) {
    ranking = {.rule = Ranking::Rule::kFixed, .ranks = std::move(ranks)};
  } else if (scenario.servers().transfer_order == TransferOrder::kRecorded) {
    ranking = {.rule = Ranking::Rule::kRecorded, .ranks = RecordedRanks(profile, *program)};
  } else if (scenario.servers().transfer_order == TransferOrder::kRandom) {
    ranking = {.rule = Ranking::Rule::kShuffled};
  } else if (scenario.servers().transfer_order != TransferOrder::kGraph) {
    throw std::logic_error("an order without ranks");
  }
  return JobOf(std::move(program), std::make_shared<const Ranking>(std::move(ranking)), scenario);
}

RunOptions OptionsFor(const Scenario& scenario, int32_t steps_per_worker) {
  RunOptions options{.steps_per_worker = steps_per_worker, .keep_step_ends = true};
  options.start_offsets.resize(static_cast<size_t>(scenario.workers));
  for (size_t w = 0; w < scenario.start_offsets_ns.size(); ++w)
    options.start_offsets[w] = Nanoseconds(scenario.start_offsets_ns[w]);
  return options;
}

}  // namespace stepcast::testing
