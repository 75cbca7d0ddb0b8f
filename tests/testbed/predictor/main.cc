// Predictions of Stepcast and of the models it is compared with, for measurements of the testbed,
// over the same window and start offsets.
//
// Reads from standard input {profile, workers, parameter_servers, transfer_order, link_sharing,
// window_bytes, window_seconds: [begin, end], seeds, restarts: [{start_offsets_ns}], baselines};
// without window_bytes streams are sent whole. Of {profile, downloads_in_order} it writes the
// downloads as that order requests them. Writes
// {predicted: [steps/s by restart, each a list by seed], run_interval: {lower, upper} of one
// restart's steps/s, and where baselines are asked for steady: {staggered, simultaneous} and
// baselines: {name: steps/s}, both of a steady state}.
#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/compare/comparison.h"
#include "core/engine/simulation.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/predict/certainty.h"
#include "core/predict/replications.h"
#include "core/predict/throughput.h"
#include "tests/support/profile_json.h"
#include "tests/support/window_throughput.h"

namespace stepcast {
namespace {

using ::nlohmann::json;

// Steps a worker can at most complete in a window; runs end at the window's end.
constexpr int32_t kManySteps = 1'000'000;

const std::map<std::string, TransferOrder> kOrders = {
    {"GRAPH", TransferOrder::kGraph},   {"RECORDED", TransferOrder::kRecorded},
    {"RANDOM", TransferOrder::kRandom}, {"REVERSE", TransferOrder::kReverse},
    {"TIC", TransferOrder::kTic},       {"TAC", TransferOrder::kTac}};
const std::map<ComparedModel, std::string> kRivals = {
    {ComparedModel::kQueueing, "queueing"},
    {ComparedModel::kCynthia, "cynthia"},
    {ComparedModel::kCynthiaHalved, "cynthia_halved"},
    {ComparedModel::kCoarseTensors, "coarse_tensors"}};

// One program's faults end it.
template <typename Value>
Value OrThrow(absl::StatusOr<Value> value) {
  if (!value.ok()) throw std::runtime_error(value.status().ToString());
  return *std::move(value);
}

ScenarioDraft DraftFrom(const json& request) {
  ScenarioDraft draft{.workers = request.at("workers").get<int32_t>(),
                      .communication = ParameterServersDraft{
                          .servers = request.at("parameter_servers").get<int32_t>()}};
  draft.servers().transfer_order = kOrders.at(request.at("transfer_order"));
  if (request.contains("window_bytes"))
    draft.servers().multiplexing = WindowDraft{.bytes = request.at("window_bytes").get<int64_t>()};
  const json& sharing = request.at("link_sharing");
  if (sharing == "FIRST_COME") {
    draft.servers().link_sharing = FirstCome{};
  } else if (sharing == "TURNS") {
    draft.servers().link_sharing = TurnsDraft{.bytes = request.at("turn_bytes").get<int64_t>()};
  } else if (sharing == "EQUAL") {
    draft.servers().link_sharing = EqualShares{};
  } else {
    throw std::runtime_error("link_sharing: " + sharing.dump());
  }
  return draft;
}

json Predict(const Profile& profile, const Scenario& scenario, const json& request) {
  const JobGraph job = OrThrow(RankedGraph::Make(profile, scenario, NeverStop))->JobOf(scenario);
  const testing::MeasuringWindow window{.begin = request.at("window_seconds").at(0),
                                        .end = request.at("window_seconds").at(1)};
  RunOptions options{.steps_per_worker = kManySteps,
                     .until = Instant{} + Nanoseconds(static_cast<int64_t>(1e9 * window.end)),
                     .keep_step_ends = true};
  json predicted = json::array();
  for (const json& restart : request.at("restarts")) {
    options.start_offsets.clear();
    for (const json& offset : restart.at("start_offsets_ns"))
      options.start_offsets.push_back(Nanoseconds(offset.get<int64_t>()));
    json by_seed = json::array();
    for (options.seed = 1; options.seed <= request.at("seeds").get<uint64_t>(); ++options.seed) {
      by_seed.push_back(OrThrow(
          testing::StepsPerSecondInside(OrThrow(Simulate(job, options, NeverStop)), window)));
    }
    predicted.push_back(by_seed);
  }
  return predicted;
}

// The interval in which 95 % of single restarts are expected to be. Runs with the offsets of
// another restart are as good an example of this one as its own.
json RunInterval(const json& predicted) {
  std::vector<RunEstimate> runs;
  for (const json& restart : predicted) {
    for (const json& rate : restart) runs.push_back({.steps_per_second = rate.get<double>()});
  }
  const Interval interval = SingleRunInterval(runs, 0.95);
  return {{"lower", interval.lower}, {"upper", interval.upper}};
}

// The answer of PredictThroughput by default, and what it was when simultaneous starts were the
// default.
json SteadyStates(const Profile& profile, const ScenarioDraft& scenario) {
  json steady = json::object();
  for (const auto& [name, start] : {std::pair("staggered", Start::kStaggered),
                                    std::pair("simultaneous", Start::kSimultaneous)}) {
    const ThroughputQuery query = OrThrow(ResolveThroughput(
        profile, {.scenario = scenario, .options = {.steps_per_worker = 300, .start = start}}));
    steady[name] =
        OrThrow(PredictThroughput(profile, query, NeverStop)).predictions.front().steps_per_second;
  }
  return steady;
}

// Their steady states; what a model says nothing about is left out.
json Baselines(const Profile& profile, ScenarioDraft scenario, int32_t workers) {
  scenario.workers.reset();
  const ComparisonQuery query =
      OrThrow(ResolveComparison(profile, {.worker_counts = {workers}, .scenario = scenario}));
  json baselines = json::object();
  const ComparisonAnswer answer = OrThrow(CompareModels(profile, query, NeverStop));
  for (const ComparedPrediction& rival : answer.comparisons.front().rivals) {
    if (rival.unavailable_reason.empty())
      baselines[kRivals.at(rival.model)] = rival.steps_per_second;
  }
  return baselines;
}

// The operations that download, in the order in which their ranks have them sent.
json DownloadsInOrder(const Profile& profile, const std::string& order) {
  ScenarioDraft draft{.workers = 1, .communication = ParameterServersDraft{}};
  draft.servers().transfer_order = kOrders.at(order);
  const Scenario scenario = OrThrow(ResolveScenario(profile, draft));
  const JobGraph job = OrThrow(RankedGraph::Make(profile, scenario, NeverStop))->JobOf(scenario);
  const Program& program = *job.programs.front();
  // Without ranks first come, first served: in graph order.
  const std::vector<int32_t> ranks =
      job.rankings.empty() ? std::vector<int32_t>{} : job.rankings.front()->ranks;
  std::vector<std::pair<int32_t, int32_t>> ranked;
  for (OpIndex op = 0; op < program.size(); ++op) {
    const int32_t source = program.source(op);
    if (program.IsTransfer(op) &&
        profile.operations()[static_cast<size_t>(source)].resource == Resource::kDownlink)
      ranked.emplace_back(ranks.empty() ? 0 : ranks.at(static_cast<size_t>(op)), source);
  }
  std::sort(ranked.begin(), ranked.end());
  json downloads = json::array();
  for (const auto& [rank, source] : ranked) downloads.push_back(source);
  return downloads;
}

void Run() {
  const json request = json::parse(std::cin);
  const Profile profile = OrThrow(Profile::Create(testing::ProfileFromJson(request.at("profile"))));
  if (request.contains("downloads_in_order")) {
    std::cout << DownloadsInOrder(profile, request.at("downloads_in_order")) << "\n";
    return;
  }
  const ScenarioDraft draft = DraftFrom(request);
  json reply{{"predicted", Predict(profile, OrThrow(ResolveScenario(profile, draft)), request)}};
  reply["run_interval"] = RunInterval(reply["predicted"]);
  if (request.at("baselines").get<bool>()) {
    reply["steady"] = SteadyStates(profile, draft);
    reply["baselines"] = Baselines(profile, draft, *draft.workers);
  }
  std::cout << reply << "\n";
}

}  // namespace
}  // namespace stepcast

int main() {
  try {
    stepcast::Run();
  } catch (const std::exception& fault) {
    std::cerr << fault.what() << "\n";
    return 1;
  }
}
