// Answers about a model of the zoo at servers, answers.*, and about orders of large graphs.
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"

#include "core/base/random.h"
#include "core/base/stop_check.h"
#include "core/orders/tic_tac.h"
#include "core/predict/throughput.h"
#include "core/recommend/recommendation.h"
#include "core/zoo/model_zoo.h"
#include "tests/bench/cpu_clock.h"
#include "tests/bench/rows/answers.h"
#include "tests/bench/rows/rows.h"

namespace stepcast::bench {

namespace {

constexpr int32_t kGraphOperations = 100'000;
constexpr int32_t kGraphDownloads = 5'000;

// As `stepcast profile zoo resnet50 --bandwidth 10Gbit/s` makes it.
Profile ResNet50AtServers() {
  return Required(
      BuildZooProfile("resnet50", {.platform = {.bandwidth_bytes_per_second = 1.25e9}}));
}

std::vector<int32_t> CountsFrom(int32_t first, int32_t last, int32_t stride) {
  std::vector<int32_t> counts;
  for (int32_t workers = first; workers <= last; workers += stride) counts.push_back(workers);
  return counts;
}

Outcome TimeRecommendation(int rounds) {
  const Profile profile = ResNet50AtServers();
  RecommendationDraft draft;
  draft.scenario.communication = ParameterServersDraft{.transfer_order = TransferOrder::kTac};
  draft.max_workers = 16;
  return TimeAnswer(
      [&] {
        const RecommendationQuery query = Required(ResolveRecommendation(profile, draft));
        return Required(RecommendWorkers(profile, query, NeverStop))
            .simulation.simulated_operations;
      },
      kInSeconds, rounds);
}

// Twenty recorded steps that differ by a tenth.
Profile RecordedResNet50(ZooCommunication communication) {
  return Required(BuildZooProfile("resnet50", {.platform = {.bandwidth_bytes_per_second = 1.25e9},
                                               .variation = {.own = 0.05, .common = 0.05},
                                               .communication = communication}));
}

Cost CostOfPrediction(const Profile& profile, StepSource source) {
  const double begin = ThreadCpuNs();
  const ThroughputQuery query = Required(ResolveThroughput(
      profile, {.worker_counts = CountsFrom(1, 16, 1), .options = {.step_variation = source}}));
  Required(PredictThroughput(profile, query, NeverStop));
  return {.cpu_ns = ThreadCpuNs() - begin, .operations = 1};
}

Cost CostOfRecommendation(const Profile& profile, StepSource source) {
  RecommendationDraft draft;
  draft.max_workers = 16;
  draft.options.step_variation = source;
  const double begin = ThreadCpuNs();
  const RecommendationQuery query = Required(ResolveRecommendation(profile, draft));
  Required(RecommendWorkers(profile, query, NeverStop));
  return {.cpu_ns = ThreadCpuNs() - begin, .operations = 1};
}

// The cost of an honest interval: answers with modelled steps over those with steps as recorded.
Outcome CompareStepSources(ZooCommunication communication,
                           Cost (*cost_of)(const Profile&, StepSource), int rounds) {
  const Profile profile = RecordedResNet50(communication);
  return {.rounds = TakeTurns(
              rounds, [&] { return cost_of(profile, StepSource::kModelled); },
              [&] { return cost_of(profile, StepSource::kAsRecorded); }, OursOverTheirs)};
}

// Each operation but downloads waits for two that come before it, any two: hardly any of them wait
// for the same downloads.
TransferGraph RandomGraph() {
  Random random({1});
  std::vector<TransferGraph::Operation> operations;
  std::vector<TransferGraph::Dependency> dependencies;
  for (int32_t op = 0; op < kGraphOperations; ++op) {
    const bool is_download = op < kGraphDownloads;
    operations.push_back(
        {.kind = is_download ? OperationKind::kDownload : OperationKind::kComputation,
         .time = Nanoseconds(static_cast<int64_t>(1000 + random.Below(1'000'000)))});
    for (int i = 0; i < 2 && !is_download; ++i) {
      const auto before = static_cast<int32_t>(random.Below(static_cast<uint64_t>(op)));
      dependencies.push_back({.before = before, .after = op});
    }
  }
  return {std::move(operations), dependencies};
}

Outcome TimeTac(int rounds) {
  const TransferGraph graph = RandomGraph();
  Outcome outcome;
  for (int round = 0; round <= rounds; ++round) {
    const double begin = ThreadCpuNs();
    Required(TacOrder(graph, NeverStop));
    const double ns = ThreadCpuNs() - begin;
    if (round == 0) continue;
    outcome.rounds.push_back({.ours = ns / kGraphOperations, .theirs = 0, .value = ns * 1e-9});
  }
  return outcome;
}

}  // namespace

Outcome TimeAnswer(const std::function<int64_t()>& answer, double unit, int rounds) {
  Outcome outcome;
  for (int round = 0; round <= rounds; ++round) {
    const double begin = ThreadCpuNs();
    const auto operations = static_cast<double>(answer());
    const double ns = ThreadCpuNs() - begin;
    if (round == 0) continue;
    outcome.rounds.push_back({.ours = ns / operations, .theirs = 0, .value = ns * 1e-9 * unit});
  }
  return outcome;
}

Outcome TimePrediction(const Profile& profile, const ThroughputDraft& draft, double unit,
                       int rounds) {
  double widest = 0;
  Outcome outcome = TimeAnswer(
      [&] {
        const ThroughputQuery query = Required(ResolveThroughput(profile, draft));
        const ThroughputAnswer answer = Required(PredictThroughput(profile, query, NeverStop));
        for (const Prediction& prediction : answer.predictions) {
          const Interval& interval = prediction.confidence_interval;
          widest = std::max(widest,
                            (interval.upper - interval.lower) / 2 / prediction.examples_per_second);
        }
        return answer.simulation.simulated_operations;
      },
      unit, rounds);
  outcome.note = absl::StrFormat("widest interval: %.2f %% to either side", 100 * widest);
  return outcome;
}

void AddAnswerRows(Registry& registry) {
  registry.Add({.name = "answers.w1_to_64_seconds",
                .sides = "ResNet-50 at a server, W=1..64, defaults",
                .goal = AtMost(3, 0.5),
                .rounds = 3,
                .run = [](int rounds) {
                  return TimePrediction(ResNet50AtServers(),
                                        {.worker_counts = CountsFrom(1, 64, 1)}, kInSeconds,
                                        rounds);
                }});
  registry.Add({.name = "answers.30_counts_seconds",
                .sides = "ResNet-50 at a server, 30 counts up to W=1024, defaults",
                .goal = AtMost(15, 3),
                .rounds = 3,
                .run = [](int rounds) {
                  std::vector<int32_t> counts = CountsFrom(34, 1020, 34);
                  counts.back() = 1024;
                  return TimePrediction(ResNet50AtServers(), {.worker_counts = counts}, kInSeconds,
                                        rounds);
                }});
  registry.Add({.name = "answers.recommend_tac_seconds",
                .sides = "a recommendation for ResNet-50 in TAC order, 1 to 16 workers",
                .goal = AtMost(0.5, 0.15),
                .rounds = 3,
                .run = TimeRecommendation});
  const auto add_modelled = [&](const char* name, const char* sides, ZooCommunication communication,
                                Cost (*cost_of)(const Profile&, StepSource)) {
    registry.Add({.name = name,
                  .sides = sides,
                  .goal = AtMost(1.5, 1.3),
                  .rounds = 5,
                  .run = [communication, cost_of](int rounds) {
                    return CompareStepSources(communication, cost_of, rounds);
                  }});
  };
  add_modelled("answers.modelled.predict",
               "modelled steps, recorded: ResNet-50 at a server, W=1..16",
               ZooCommunication::kParameterServers, CostOfPrediction);
  add_modelled("answers.modelled.recommend", "the same, a recommendation of 1 to 16 workers",
               ZooCommunication::kParameterServers, CostOfRecommendation);
  add_modelled("answers.modelled.predict_all_reduce", "the same, collectives, W=1..16",
               ZooCommunication::kAllReduce, CostOfPrediction);
  add_modelled("answers.modelled.recommend_all_reduce",
               "the same, collectives, a recommendation of 1 to 16 workers",
               ZooCommunication::kAllReduce, CostOfRecommendation);
  registry.Add({.name = "orders.tac_100k_seconds",
                .sides = "TAC on a random graph of 100,000 operations, 5,000 of them downloads",
                .goal = AtMost(1, 0.3),
                .rounds = 3,
                .run = TimeTac});
}

}  // namespace stepcast::bench
