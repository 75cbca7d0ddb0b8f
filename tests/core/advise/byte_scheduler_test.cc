#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/advise/communication_query.h"
#include "core/base/error.h"
#include "core/base/random.h"
#include "core/model/made_steps.h"
#include "core/predict/throughput.h"
#include "tests/core/advise/layered_byte_scheduler.h"

namespace stepcast::byte_scheduler_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Order = PartitionSchedule::Order;

PartitionNetwork Plain(double bytes_per_second) {
  return {.overlapped_bytes_per_second = bytes_per_second,
          .alone_bytes_per_second = bytes_per_second};
}

double Seconds(const std::vector<ScheduledLayer>& layers, const PartitionNetwork& network,
               const PartitionSchedule& schedule) {
  const auto seconds = IterationSeconds(layers, network, schedule, NeverStop);
  EXPECT_TRUE(seconds.ok()) << seconds.status();
  return seconds.value_or(-1);
}

// Several iterations in small steps of time: forward and backward again and again, all partitions
// one by one. Rates are looked up at the begin of each step, so an iteration is off by some steps.
class SteppedTraining {
 public:
  SteppedTraining(const std::vector<ScheduledLayer>& layers, const PartitionNetwork& network,
                  const PartitionSchedule& schedule, double step)
      : layers_(layers), network_(network), schedule_(schedule), step_(step) {
    missing_.assign(layers.size(), 0);
  }

  // Of the last iteration.
  double Run(int iterations) {
    std::vector<double> ends;
    while (static_cast<int>(ends.size()) < iterations) {
      const bool waits = at_ < layers_.size() && missing_[at_] > 0;
      const double rate =
          waits ? network_.alone_bytes_per_second : network_.overlapped_bytes_per_second;
      const double speed = sent_.empty() ? 1 : network_.computation_speed;
      Send(rate);
      now_ += step_;
      if (waits) continue;
      done_ += step_ * speed;
      const size_t layer = at_ < layers_.size() ? at_ : 2 * layers_.size() - 1 - at_;
      const double length =
          at_ < layers_.size() ? layers_[layer].forward_seconds : layers_[layer].backward_seconds;
      if (done_ < length) continue;
      done_ -= length;
      if (at_ >= layers_.size()) MakeReady(layer);
      if (++at_ < 2 * layers_.size()) continue;
      at_ = 0;
      ends.push_back(now_);
    }
    return ends[ends.size() - 1] - ends[ends.size() - 2];
  }

 private:
  struct Piece {
    size_t layer;
    double bytes;
    double left;
    double serial;
    double since;
  };

  void MakeReady(size_t layer) {
    for (int64_t left = layers_[layer].bytes; left > 0;) {
      const int64_t bytes =
          schedule_.partition_bytes > 0 ? std::min(left, schedule_.partition_bytes) : left;
      const double size = static_cast<double>(bytes);
      queue_.push_back({layer, size, size, network_.serial_seconds, 0});
      ++missing_[layer];
      left -= bytes;
    }
  }
  void Send(double rate) {
    while (!queue_.empty()) {
      auto next = queue_.begin();
      if (schedule_.order == Order::kNearInputFirst) {
        next = std::min_element(queue_.begin(), queue_.end(),
                                [](const Piece& a, const Piece& b) { return a.layer < b.layer; });
      }
      double in_flight = next->bytes;
      for (const Piece& piece : sent_) in_flight += piece.bytes;
      if (schedule_.credit_bytes > 0 && !sent_.empty() &&
          in_flight > static_cast<double>(schedule_.credit_bytes))
        break;
      next->since = now_;
      sent_.push_back(*next);
      queue_.erase(next);
    }
    if (sent_.empty() || now_ < sent_.front().since + network_.startup_seconds) return;
    Piece& first = sent_.front();
    if (first.serial > 0) {
      first.serial -= step_;
      return;
    }
    first.left -= step_ * rate;
    if (first.left > 0) return;
    --missing_[first.layer];
    sent_.erase(sent_.begin());
  }

  const std::vector<ScheduledLayer>& layers_;
  const PartitionNetwork& network_;
  const PartitionSchedule& schedule_;
  const double step_;
  std::vector<int> missing_;
  std::vector<Piece> queue_;
  std::vector<Piece> sent_;
  size_t at_ = 0;  // forward from 0, then backward
  double done_ = 0;
  double now_ = 0;
};

std::vector<ScheduledLayer> DrawLayers(Random& random) {
  std::vector<ScheduledLayer> layers(1 + random.Below(8));
  for (ScheduledLayer& layer : layers) {
    layer = {.forward_seconds = random.Unit(),
             .backward_seconds = 2 * random.Unit(),
             .bytes = static_cast<int64_t>(random.Below(4) == 0 ? 0 : 1 + random.Below(3000))};
  }
  return layers;
}

PartitionNetwork DrawNetwork(Random& random) {
  PartitionNetwork network{.startup_seconds = 0.2 * random.Unit(),
                           .serial_seconds = 0.1 * random.Unit(),
                           .alone_bytes_per_second = 500 + 2000 * random.Unit(),
                           .computation_speed = 0.5 + 0.5 * random.Unit()};
  network.overlapped_bytes_per_second =
      network.alone_bytes_per_second * (0.5 + 0.5 * random.Unit());
  return network;
}

TEST(ByteSchedulerTest, UrgentTensorsOvertakeAndForwardBeginsEarlier) {
  const std::vector<ScheduledLayer> layers = {{1, 1, 4}, {1, 1, 4}};
  const PartitionNetwork network = Plain(1);
  // First come: the far layer's 4 s from 1 on, the near one's until 9, then two forwards.
  EXPECT_DOUBLE_EQ(Seconds(layers, network, {}), 11);
  // In partitions of 1 byte, one at a time: at 2 one of four has been sent, the near layer's four
  // are until 6; its forward until 7, and the other three until 9, and the last forward.
  const PartitionSchedule near{
      .order = Order::kNearInputFirst, .partition_bytes = 1, .credit_bytes = 1};
  EXPECT_DOUBLE_EQ(Seconds(layers, network, near), 10);
  // All that is ready at once is in flight: nothing can overtake.
  EXPECT_DOUBLE_EQ(
      Seconds(layers, network, {.order = Order::kNearInputFirst, .partition_bytes = 1}), 11);
}

TEST(ByteSchedulerTest, CreditHidesStartups) {
  const std::vector<ScheduledLayer> layers = {{1, 1, 4}};
  PartitionNetwork network = Plain(1);
  network.startup_seconds = 2;
  PartitionSchedule schedule{.partition_bytes = 1, .credit_bytes = 1};
  EXPECT_DOUBLE_EQ(Seconds(layers, network, schedule), 1 + 4 * 3 + 1);
  schedule.credit_bytes = 2;  // begins at 3, 4, then 6, 7
  EXPECT_DOUBLE_EQ(Seconds(layers, network, schedule), 1 + 2 + 1 + 1 + 1 + 1 + 1 + 1);
  schedule.credit_bytes = 4;
  EXPECT_DOUBLE_EQ(Seconds(layers, network, schedule), 1 + 2 + 4 + 1);
  network.serial_seconds = 0.5;  // nothing hides these
  EXPECT_DOUBLE_EQ(Seconds(layers, network, schedule), 1 + 2 + 4 + 2 + 1);
}

TEST(ByteSchedulerTest, PartitionsInFlightSlowComputationAndItThem) {
  PartitionNetwork network = Plain(2);
  network.overlapped_bytes_per_second = 1;
  network.computation_speed = 0.5;
  // Backward 1, then 4 s beside 4 of 8 bytes for the other 2 s, the rest alone in 2 s, forward.
  EXPECT_DOUBLE_EQ(Seconds({{0, 2, 0}, {3, 1, 8}}, network, {}), 1 + 4 + 2 + 3);
}

TEST(ByteSchedulerTest, OneTensorTakesAsLongAsByTheModelOfOverlap) {
  const OverlapSetting setting{
      .workers = 8,
      .latency_seconds = 1e-3,
      .contention = {
          .alpha1 = 1, .alpha2 = 1e-3, .overlapped = {.gamma1 = 2e6}, .alone = {.gamma1 = 3e6}}};
  // The last layer's alone: beside no other computation but what comes before it.
  const std::vector<BackwardLayer> backward = {{1, 0}, {1, 10'000'000}};
  const double seconds =
      BackwardTimeOf(backward, std::vector<TensorGroup>{{0, 2, 200}}, setting).seconds;
  EXPECT_NEAR(
      Seconds({{0, 1, 10'000'000}, {0, 1, 0}}, PartitionNetworkOf(RatesOf(setting, 200)), {}),
      seconds, 1e-9);
}

TEST(ByteSchedulerTest, RandomTrainingTakesAsLongStepByStep) {
  constexpr double kStep = 2e-4;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random({seed});
    const std::vector<ScheduledLayer> layers = DrawLayers(random);
    const PartitionNetwork network = DrawNetwork(random);
    const PartitionSchedule schedule{
        .order = random.Below(2) == 0 ? Order::kFirstCome : Order::kNearInputFirst,
        .partition_bytes = static_cast<int64_t>(random.Below(3) == 0 ? 0 : 300 + random.Below(900)),
        .credit_bytes = static_cast<int64_t>(random.Below(3) == 0 ? 0 : 1 + random.Below(2500))};
    const double stepped = SteppedTraining(layers, network, schedule, kStep).Run(3);
    // A step for every event, of which an order of partitions may make more.
    EXPECT_NEAR(Seconds(layers, network, schedule), stepped, 0.02) << "seed " << seed;
  }
}

TEST(ByteSchedulerTest, TheSearchIsNeverSlowerThanFirstComeNorFasterThanItsBounds) {
  int faster = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random({seed});
    const std::vector<ScheduledLayer> layers = DrawLayers(random);
    const PartitionNetwork network = DrawNetwork(random);
    // Without whole tensors, which are tried none the less.
    const PartitionGrid grid{.partition_bytes = {100, 300, 1000}, .credit_partitions = {1, 2, 4}};
    const auto search = SearchPartitions(layers, network, grid, NeverStop);
    ASSERT_TRUE(search.ok()) << search.status();
    const double first_come = Seconds(layers, network, {});
    EXPECT_EQ(search->first_come_seconds, first_come);
    ASSERT_LE(search->seconds, first_come) << "seed " << seed;
    EXPECT_EQ(search->seconds, Seconds(layers, network, search->best)) << "seed " << seed;
    double computation = 0;
    double communication = 0;
    for (const ScheduledLayer& layer : layers) {
      computation += layer.forward_seconds + layer.backward_seconds;
      communication += static_cast<double>(layer.bytes) / network.alone_bytes_per_second;
    }
    ASSERT_GE(search->seconds * (1 + 1e-9), std::max(computation, communication))
        << "seed " << seed;
    faster += search->seconds < 0.99 * first_come ? 1 : 0;
  }
  EXPECT_GT(faster, 50);
}

TEST(ByteSchedulerTest, BadInputIsRefusedByName) {
  const auto fields_of = [](const absl::Status& status) {
    std::vector<std::string> fields;
    for (const Fault& fault : DetailsOf(status).faults) fields.push_back(fault.field);
    return fields;
  };
  const std::vector<ScheduledLayer> layers = {{1, 1, 1'000'000}};
  const auto refused = [&](const std::vector<ScheduledLayer>& given,
                           const PartitionNetwork& network, const PartitionSchedule& schedule) {
    return fields_of(IterationSeconds(given, network, schedule, NeverStop).status());
  };
  EXPECT_THAT(refused(layers, Plain(1), {}), IsEmpty());
  EXPECT_THAT(refused({}, Plain(1), {}), ElementsAre("layers"));
  EXPECT_THAT(
      refused({{-1, std::nan(""), -1}}, Plain(1), {}),
      ElementsAre("layers[0].forward_seconds", "layers[0].backward_seconds", "layers[0].bytes"));
  EXPECT_THAT(
      refused(layers, {.startup_seconds = -1, .serial_seconds = -1, .computation_speed = 0}, {}),
      ElementsAre("network.startup_seconds", "network.serial_seconds",
                  "network.overlapped_bytes_per_second", "network.alone_bytes_per_second",
                  "network.computation_speed"));
  EXPECT_THAT(refused(layers, Plain(1), {.partition_bytes = -1, .credit_bytes = -1}),
              ElementsAre("credit_bytes", "partition_bytes"));
  EXPECT_THAT(refused(layers, Plain(1), {.partition_bytes = 9}), ElementsAre("partition_bytes"));
  const auto search = [&](const PartitionGrid& grid) {
    return SearchPartitions(layers, Plain(1), grid, NeverStop);
  };
  EXPECT_THAT(
      fields_of(search({.partition_bytes = {1, -1}, .credit_partitions = {-1, 1001}}).status()),
      ElementsAre("grid.partition_bytes[1]", "grid.credit_partitions[0]",
                  "grid.credit_partitions[1]"));
  EXPECT_THAT(fields_of(search({.partition_bytes = std::vector<int64_t>(1001, 1)}).status()),
              ElementsAre("grid"));
  EXPECT_TRUE(search({.partition_bytes = {1}}).ok()) << "too many partitions are not tried";
}

TEST(ByteSchedulerTest, AStopEndsIt) {
  const std::vector<ScheduledLayer> layers = {{1, 1, 90'000}};
  const auto stopped = IterationSeconds(layers, Plain(1), {.partition_bytes = 1},
                                        [] { return absl::CancelledError(); });
  EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled);
}

// The profile of one step of such layers, each with one tensor or none, at 1e9 bytes a second.
Profile TrainingOf(const std::vector<ScheduledLayer>& layers, int64_t optimizer_ns) {
  std::vector<TrainingLayer> network;
  for (const ScheduledLayer& layer : layers) {
    TrainingLayer& made = network.emplace_back();
    made.name = absl::StrCat("layer", network.size());
    made.forward_ns = std::llround(1e9 * layer.forward_seconds);
    made.backward_ns = std::llround(1e9 * layer.backward_seconds);
    if (layer.bytes > 0)
      made.parameters.push_back({.name = made.name + "/weights", .size_bytes = layer.bytes});
  }
  TrainingGraph graph = BuildAllReduceGraph(network, optimizer_ns);
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  RecordedStep& step = draft.steps.emplace_back();
  int64_t now = 0;
  for (size_t i = 0; i < graph.operations.size(); ++i) {
    step.start_ns.push_back(now);
    now += graph.durations_ns[i];
    step.end_ns.push_back(now);
  }
  draft.operations = std::move(graph.operations);
  return Profile::Create(std::move(draft)).value();
}

// Seconds of a step of two workers, whose all-reduce of n bytes takes n ns and 2 latencies.
double SimulatedSeconds(const Profile& profile, const AllReduceDraft& job, int32_t workers = 2) {
  const absl::StatusOr<ThroughputQuery> query =
      ResolveThroughput(profile, {.worker_counts = {workers},
                                  .scenario = ScenarioDraft{.communication = job},
                                  .options = {.steps_per_worker = 20, .replications = 1}});
  EXPECT_TRUE(query.ok()) << query.status();
  if (!query.ok()) return 0;
  const auto answer = PredictThroughput(profile, *query, NeverStop);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.ok() ? answer->predictions.front().step_time.mean : 0;
}

std::vector<ScheduledLayer> RandomLayers(Random& random) {
  std::vector<ScheduledLayer> layers(1 + random.Below(6));
  for (ScheduledLayer& layer : layers) {
    layer.forward_seconds = 1e-6 * static_cast<double>(1 + random.Below(50));
    layer.backward_seconds = 1e-6 * static_cast<double>(1 + random.Below(80));
    if (random.Below(5) > 0) layer.bytes = 4 * static_cast<int64_t>(1 + random.Below(20'000));
  }
  layers.back().bytes = std::max<int64_t>(layers.back().bytes, 4);
  return layers;
}

// The engine knows programs and joint operations let in by rank, the model of this file knows
// layers and partitions: neither shares a line with the other.
TEST(ByteSchedulerSimulationTest, FiveHundredRandomChainsTakeAsLongAsByTheModel) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random({seed});
    const std::vector<ScheduledLayer> layers = RandomLayers(random);
    const double latency = 1e-6 * static_cast<double>(random.Below(5));
    const auto partition =
        static_cast<int64_t>(random.Below(3) == 0 ? 0 : 1 + random.Below(20'000));
    const auto credit = static_cast<int64_t>(1 + random.Below(60'000));
    const double modelled = Seconds(
        layers,
        {.serial_seconds = 2 * latency,
         .overlapped_bytes_per_second = 1e9,
         .alone_bytes_per_second = 1e9},
        {.order = Order::kNearInputFirst, .partition_bytes = partition, .credit_bytes = credit});
    AllReduceDraft job{.latency_seconds = latency,
                       .fusion = ByteSchedulerDraft{.credit_bytes = credit}};
    if (partition > 0) job.partition_bytes = partition;
    EXPECT_NEAR(SimulatedSeconds(TrainingOf(layers, 0), job), modelled, 1e-6 * modelled)
        << "seed " << seed << ", partitions of " << partition << ", credit " << credit;
  }
}

// First come first served is what the same partitions take with all of them let in at once.
TEST(ByteSchedulerSimulationTest, OnFiveHundredChainsItIsNeverWorseThanFirstComeFirstServed) {
  int faster = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random({1000 + seed});
    const std::vector<ScheduledLayer> layers = RandomLayers(random);
    const Profile profile = TrainingOf(layers, 0);
    AllReduceDraft job{.latency_seconds = 1e-6 * static_cast<double>(random.Below(5))};
    if (random.Below(3) > 0) job.partition_bytes = 1 + static_cast<int64_t>(random.Below(20'000));
    const int32_t workers = 2 + static_cast<int32_t>(random.Below(3));
    job.fusion = ByteSchedulerDraft{.credit_bytes = INT64_MAX};
    const double first_come = SimulatedSeconds(profile, job, workers);
    job.fusion = ByteSchedulerDraft{.credit_bytes = static_cast<int64_t>(1 + random.Below(60'000))};
    const double by_priority = SimulatedSeconds(profile, job, workers);
    EXPECT_LE(by_priority, first_come * (1 + 1e-9)) << "seed " << seed;
    faster += by_priority < 0.999 * first_come ? 1 : 0;
    // Nor is first come slower than waiting for all of them before the next forward pass.
    AllReduceDraft waiting = job;
    waiting.fusion = {};
    EXPECT_LE(first_come, SimulatedSeconds(profile, waiting, workers) * (1 + 1e-9)) << seed;
  }
  EXPECT_GT(faster, 100);
}

// From the begin of the backward pass: the second layer's 6,000 bytes are ready at 2 us, the first
// one's 4,000 at 4 us, where the first 2,000 of the others have ended; they go until 8 us. Their
// update, two fifths of an optimizer of 1 us, ends at 8.4 us and their forward at 9.4 us. The
// others end at 12 us, their update at 12.6 us, their forward at 13.6 us.
TEST(ByteSchedulerSimulationTest, AnOptimizerOfAllIsSharedByTheBytes) {
  const Profile profile =
      TrainingOf({{.forward_seconds = 1e-6, .backward_seconds = 2e-6, .bytes = 4000},
                  {.forward_seconds = 1e-6, .backward_seconds = 2e-6, .bytes = 6000}},
                 1000);
  EXPECT_NEAR(SimulatedSeconds(profile, {.latency_seconds = 0,
                                         .fusion = ByteSchedulerDraft{.credit_bytes = 1},
                                         .partition_bytes = 2000}),
              13.6e-6, 2e-12);
}

// 600 pieces of 4,000,000 bytes, and 16 operations, of each worker.
TEST(ByteSchedulerSimulationTest, SoManyWorkersAreTriedOnlyWhereTheyAreAskedFor) {
  const std::vector<ScheduledLayer> layers(
      4, {.forward_seconds = 0.1, .backward_seconds = 0.2, .bytes = 600'000'000});
  const Profile profile = TrainingOf(layers, 1000);
  const auto resolved = [&](int32_t workers, std::vector<TuningMethod> methods) {
    return ResolveTuning(profile, {.scenario = {.communication = AllReduceDraft{}},
                                   .worker_counts = {2, workers},
                                   .methods = std::move(methods)})
        .value();
  };
  const TuningQuery few = resolved(16, {});
  EXPECT_THAT(few.methods, Contains(TuningMethod::kByteScheduler));
  const TuningQuery many = resolved(2048, {});
  EXPECT_THAT(many.methods, Not(Contains(TuningMethod::kByteScheduler)));
  EXPECT_THAT(many.methods, Contains(TuningMethod::kSearch));
  const auto left_out = std::find_if(
      many.left_out.begin(), many.left_out.end(),
      [](const LeftOutMethod& each) { return each.method == TuningMethod::kByteScheduler; });
  ASSERT_NE(left_out, many.left_out.end());
  EXPECT_THAT(left_out->reason, HasSubstr("BYTESCHEDULER takes long with 2048 workers"));
  EXPECT_THAT(resolved(2048, {TuningMethod::kByteScheduler}).methods,
              ElementsAre(TuningMethod::kByteScheduler));
}

TEST(ByteSchedulerSimulationTest, AProfileThatDoesNotSayWhatUsesAParameterIsRefusedByName) {
  const auto fault_of = [](auto change) {
    ProfileDraft draft =
        TrainingOf({{.forward_seconds = 1e-6, .backward_seconds = 1e-6, .bytes = 8}}, 0).content();
    change(draft);
    const Profile profile = Profile::Create(std::move(draft)).value();
    const auto query = ResolveThroughput(
        profile, {.worker_counts = {2},
                  .scenario = ScenarioDraft{.communication =
                                                AllReduceDraft{.fusion = ByteSchedulerDraft{}}}});
    const std::vector<Fault> faults = DetailsOf(query.status()).faults;
    return faults.empty() ? ""
                          : absl::StrCat(faults.front().field, ": ", faults.front().description);
  };
  EXPECT_EQ(fault_of([](ProfileDraft&) {}), "");
  const auto hide = [](ProfileDraft& draft) { draft.operations[0].name = "anything"; };
  EXPECT_EQ(fault_of(hide),
            "scenario.all_reduce.byte_scheduler: operations[2], \"all_reduce/layer1/weights\": the "
            "profile does not say which computation of the forward pass uses its parameter: none "
            "names it, nor is one called forward/X where backward/X makes it");
  EXPECT_EQ(fault_of([&](ProfileDraft& draft) {
              hide(draft);
              draft.operations[0].parameter = "layer1/weights";
            }),
            "");
  EXPECT_EQ(fault_of([](ProfileDraft& draft) {
              draft.operations.push_back({.name = "buffers",
                                          .resource = Resource::kCollective,
                                          .size_bytes = 5,
                                          .collective = Collective::kBroadcast});
              draft.steps[0].start_ns.push_back(0);
              draft.steps[0].end_ns.push_back(0);
            }),
            "scenario.all_reduce.byte_scheduler: operations[4], \"buffers\", is not an ALL_REDUCE "
            "of gradients: only "
            "those whose parameter the next forward pass uses go by priority");
}

}  // namespace
}  // namespace stepcast::byte_scheduler_test
