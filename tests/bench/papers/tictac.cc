#include "tests/bench/papers/tictac.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/orders/forward_pass.h"
#include "core/orders/transfer_ranks.h"
#include "core/predict/order.h"
#include "core/predict/order_consistency.h"
#include "tests/bench/papers/valid.h"

namespace stepcast::bench {

namespace {

// TicTac says neither its cloud's links nor what its machines of 32 cores reach.
constexpr double kCloudGigabits = 10;
constexpr double kCpuFlopsPerSecond = 1e12;
constexpr int32_t kStandardBatchOfInceptionV2 = 128;

TicTacPoint Measure(TicTacPoint point, const Length& length) {
  const Profile profile = GpuProfile(point.model.name, point.model.batch_size,
                                     kCloudGigabits * kGigabit, kK80FlopsPerSecond);
  OrderDraft draft{.scenario = {.workers = point.workers},
                   .options = OptionsOf(length),
                   .methods = {OrderMethod::kTic},
                   .inference = point.inference};
  draft.scenario.servers().servers = point.servers;
  draft.scenario.servers().synchronization = Synchronization::kSynchronous;
  draft.options.start = Start::kSimultaneous;
  const OrderAnswer answer =
      Valid(OptimizeOrder(profile, Valid(ResolveOrder(profile, draft)), NeverStop));
  const OrderResult& tic = answer.orders.front();
  const OrderBaseline& random =
      *std::find_if(answer.baselines.begin(), answer.baselines.end(),
                    [](const auto& baseline) { return baseline.order == TransferOrder::kRandom; });
  point.gain = tic.examples_per_second / random.examples_per_second - 1;
  point.efficiency = tic.scheduling_efficiency;
  point.random_efficiency = random.spread.mean_efficiency;
  point.straggler = tic.straggler_effect;
  point.random_straggler = random.straggler_effect;
  return point;
}

}  // namespace

std::vector<TicTacModel> TicTacModels() {
  return {{"alexnet", 512}, {"googlenet", 128}, {"inception_v2", 128}, {"inception_v3", 32},
          {"resnet50", 32}, {"resnet101", 64},  {"resnet50_v2", 64},   {"resnet101_v2", 32},
          {"vgg16", 32},    {"vgg19", 32}};
}

std::vector<TicTacPoint> TicTacPoints(const std::vector<TicTacModel>& models,
                                      const Length& length) {
  std::vector<TicTacPoint> points;
  for (const TicTacModel& model : models) {
    for (const bool inference : {true, false}) {
      const auto add = [&](const char* figure, int32_t workers, int32_t servers, int32_t batch) {
        points.push_back(Measure({.figure = figure,
                                  .model = {model.name, batch},
                                  .inference = inference,
                                  .workers = workers,
                                  .servers = servers},
                                 length));
      };
      for (const int32_t workers : {4, 8, 16}) add("7", workers, workers / 4, model.batch_size);
      for (const int32_t servers : {1, 2, 4}) add("9", 8, servers, model.batch_size);
      for (const int32_t halves : {1, 2, 4}) add("10", 4, 1, model.batch_size * halves / 2);
    }
  }
  return points;
}

std::string TicTacTable(const std::vector<TicTacPoint>& points) {
  std::string table =
      TableHead({"Fig.", "model", "workload", "W", "PS", "batch", "TIC gains", "efficiency of TIC",
                 "of random orders", "straggler effect of TIC", "of random orders"});
  for (const TicTacPoint& point : points) {
    table += TableRow({point.figure, point.model.name, point.inference ? "inference" : "training",
                       absl::StrCat(point.workers), absl::StrCat(point.servers),
                       absl::StrCat(point.model.batch_size),
                       absl::StrFormat("%+.1f %%", 100 * point.gain),
                       absl::StrFormat("%.3f", point.efficiency),
                       absl::StrFormat("%.3f", point.random_efficiency),
                       absl::StrFormat("%.1f %%", 100 * point.straggler),
                       absl::StrFormat("%.1f %%", 100 * point.random_straggler)});
  }
  return table;
}

Consistency MeasureConsistency(bool inference, int32_t steps) {
  const Profile whole =
      GpuProfile("inception_v2", kStandardBatchOfInceptionV2, kGigabit, kCpuFlopsPerSecond);
  const Profile profile = inference ? Valid(ForwardPass(whole)) : whole;
  const Scenario scenario = Valid(ResolveScenario(profile, {}));
  const LeastStep least = Valid(LeastStep::Build(profile, scenario));
  const std::vector<int32_t> tac = Valid(
      DownloadRanks(OrderMethod::kTac, profile, scenario, least.graph(), /*seed=*/1, NeverStop));
  std::vector<LeastStep> recorded;
  for (const RecordedStep& step : profile.steps()) {
    ProfileDraft draft = profile.content();
    draft.steps = {step};
    recorded.push_back(Valid(LeastStep::Build(Valid(Profile::Create(std::move(draft))), scenario)));
  }
  std::vector<double> efficiencies;
  std::vector<double> seconds;  // random and TAC's in turn
  for (int32_t i = 0; i < steps; ++i) {
    const LeastStep& step = recorded[static_cast<size_t>(i) % recorded.size()];
    const std::vector<int32_t> random =
        Valid(DownloadRanks(OrderMethod::kRandom, profile, scenario, least.graph(),
                            static_cast<uint64_t>(i), NeverStop));
    for (const std::vector<int32_t>* ranks : {&random, &tac}) {
      const Span makespan = Valid(step.Makespan(*ranks, NeverStop));
      efficiencies.push_back(step.bounds().Efficiency(makespan));
      seconds.push_back(ToSeconds(makespan));
    }
  }
  const double shortest = *std::min_element(seconds.begin(), seconds.end());
  const auto p95 = [&](size_t first) {
    std::vector<double> normalized;
    for (size_t i = first; i < seconds.size(); i += 2) normalized.push_back(shortest / seconds[i]);
    std::sort(normalized.begin(), normalized.end());
    return normalized[(normalized.size() * 95 - 1) / 100];
  };
  return {.r_squared = RSquaredOf(efficiencies, seconds).value_or(0),
          .random_p95 = p95(0),
          .tac_p95 = p95(1)};
}

std::string ConsistencyTable(int32_t steps) {
  const Consistency training = MeasureConsistency(/*inference=*/false, steps);
  const Consistency inference = MeasureConsistency(/*inference=*/true, steps);
  std::string table = TableHead({"Fig.", "of", "paper", "ours"});
  const auto row = [&](const char* figure, const char* of, const char* paper, double ours) {
    table += TableRow({figure, of, paper, absl::StrFormat("%.3f", ours)});
  };
  row("12a", "R^2 of efficiency against step time, training", "0.98", training.r_squared);
  row("12b", "95th percentile of normalized step times, no order enforced, inference", "0.63403",
      inference.random_p95);
  row("12b", "the same, TAC", "0.99825", inference.tac_p95);
  return table;
}

std::vector<ThroughputPoint> OutOfStep(int32_t points) {
  // As many steps as ICPE simulates; its CPUs are taken to need some 0.4 s for a batch.
  const Profile profile = GpuProfile("alexnet", 8, kGigabit, 1e11);
  ThroughputDraft draft{.scenarios = {},
                        .worker_counts = {3},
                        .options = {.steps_per_worker = 1000,
                                    .warmup_steps = 50,
                                    .replications = 1,
                                    .start = Start::kSimultaneous},
                        .series_points = points};
  return Valid(PredictThroughput(profile, Valid(ResolveThroughput(profile, draft)), NeverStop))
      .predictions.front()
      .series;
}

std::string OutOfStepTable() {
  std::string table = TableHead({"until, s", "examples/s"});
  for (const ThroughputPoint& point : OutOfStep(20)) {
    table += TableRow({absl::StrFormat("%.0f", point.end_seconds),
                       absl::StrFormat("%.2f", point.examples_per_second)});
  }
  return table;
}

}  // namespace stepcast::bench
