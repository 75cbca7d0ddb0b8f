#include "core/model/made_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/model/validate_profile.h"
#include "tests/core/model/random_draft.h"
#include "tests/support/profile_json.h"

namespace stepcast::made_steps_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Each operation as "name<-what it waits for".
std::vector<std::string> Describe(const TrainingGraph& graph) {
  std::vector<std::string> lines;
  for (const Operation& operation : graph.operations) {
    std::string line = operation.name + "<-";
    for (const int32_t before : operation.waiting_for)
      line += graph.operations[static_cast<size_t>(before)].name + " ";
    lines.push_back(line);
  }
  return lines;
}

TEST(TrainingGraphTest, ABranchIsWaitedForInBothDirections) {
  const TrainingGraph graph = BuildTrainingGraph(
      {{.name = "a",
        .parameters = {{.name = "w", .size_bytes = 4}, {.name = "b", .size_bytes = 8}},
        .forward_ns = 1,
        .backward_ns = 2},
       {.name = "left", .inputs = {0}, .forward_ns = 3, .backward_ns = 4},
       {.name = "right", .inputs = {0}},
       {.name = "join", .inputs = {1, 2}}});
  EXPECT_THAT(
      Describe(graph),
      ElementsAre("recv/w<-", "recv/b<-", "forward/a<-recv/w recv/b ", "forward/left<-forward/a ",
                  "forward/right<-forward/a ", "forward/join<-forward/left forward/right ",
                  "backward/join<-forward/join ", "backward/right<-backward/join ",
                  "backward/left<-backward/join ", "backward/a<-backward/left backward/right ",
                  "send/w<-backward/a ", "update/w<-send/w ", "send/b<-backward/a ",
                  "update/b<-send/b "));
  EXPECT_THAT(graph.durations_ns,
              ElementsAre(0, 0, 1, 3, 0, 0, 0, 0, 4, 2, 0, UpdateNs(4), 0, UpdateNs(8)));
  EXPECT_EQ(graph.operations[1].size_bytes, 8);
  EXPECT_EQ(graph.operations[10].size_bytes, 4);
  EXPECT_EQ(graph.operations[11].size_bytes, 0);
  EXPECT_EQ(graph.operations[11].parameter, "w");
}

TEST(TrainingGraphTest, SeveralOutputsAreJoinedBeforeTheFirstGradient) {
  const TrainingGraph graph = BuildTrainingGraph(
      {{.name = "a"}, {.name = "x", .inputs = {0}}, {.name = "y", .inputs = {0}}});
  EXPECT_THAT(Describe(graph),
              ElementsAre("forward/a<-", "forward/x<-forward/a ", "forward/y<-forward/a ",
                          "loss<-forward/x forward/y ", "backward/y<-loss ", "backward/x<-loss ",
                          "backward/a<-backward/x backward/y "));
}

TEST(TrainingGraphTest, ManyOutputsCostLinearSpace) {
  std::vector<TrainingLayer> layers(100'000);
  for (size_t i = 0; i < layers.size(); ++i) layers[i].name = std::to_string(i);
  size_t dependencies = 0;
  for (const Operation& operation : BuildTrainingGraph(layers).operations)
    dependencies += operation.waiting_for.size();
  EXPECT_EQ(dependencies, 200'000u);
}

TEST(TrainingGraphTest, NoLayersGiveNoOperations) {
  EXPECT_THAT(BuildTrainingGraph({}).operations, IsEmpty());
}

TEST(TrainingGraphTest, GradientsMeetInAllReducesInTheReverseOrderOfTheirParameters) {
  const TrainingGraph graph = BuildAllReduceGraph(
      {{.name = "a", .parameters = {{"w", 8}, {"b", 4}}, .forward_ns = 1, .backward_ns = 2},
       {.name = "left", .inputs = {0}, .forward_ns = 3, .backward_ns = 4},
       {.name = "right", .inputs = {0}, .parameters = {{"v", 16}}, .backward_ns = 5},
       {.name = "join", .inputs = {1, 2}}},
      /*optimizer_ns=*/6);
  // Computations follow each other as a stream's kernels do, whatever the layers read.
  EXPECT_THAT(Describe(graph),
              ElementsAre("forward/a<-", "forward/left<-forward/a ", "forward/right<-forward/left ",
                          "forward/join<-forward/right ", "backward/join<-forward/join ",
                          "backward/right<-backward/join ", "all_reduce/v<-backward/right ",
                          "backward/left<-backward/right ", "backward/a<-backward/left ",
                          "all_reduce/b<-backward/a ", "all_reduce/w<-backward/a ",
                          "optimizer<-all_reduce/v all_reduce/b all_reduce/w backward/a "));
  EXPECT_THAT(graph.durations_ns, ElementsAre(1, 3, 0, 0, 0, 5, 0, 4, 2, 0, 0, 6));
  EXPECT_EQ(graph.operations[6].size_bytes, 16);
  EXPECT_EQ(graph.operations[6].collective, Collective::kAllReduce);
  EXPECT_EQ(graph.operations[6].parameter, "v");
  EXPECT_EQ(graph.operations[11].resource, Resource::kWorker);
}

TEST(TrainingGraphTest, UpdatesOfTheirOwnStayWithTheirLayers) {
  const TrainingGraph graph = BuildAllReduceGraph(
      {{.name = "a", .parameters = {{"w", 8}, {"b", 4}}, .forward_ns = 1, .backward_ns = 2},
       {.name = "plain", .forward_ns = 3, .backward_ns = 4},
       {.name = "c", .parameters = {{"v", 16}}, .backward_ns = 5, .optimizer_ns = 7}},
      /*optimizer_ns=*/0);
  EXPECT_THAT(Describe(graph),
              ElementsAre("forward/a<-", "forward/plain<-forward/a ", "forward/c<-forward/plain ",
                          "backward/c<-forward/c ", "all_reduce/v<-backward/c ",
                          "backward/plain<-backward/c ", "backward/a<-backward/plain ",
                          "all_reduce/b<-backward/a ", "all_reduce/w<-backward/a ",
                          "optimizer/a<-backward/a all_reduce/b all_reduce/w ",
                          "optimizer/plain<-optimizer/a backward/plain ",
                          "optimizer/c<-optimizer/plain all_reduce/v "));
  EXPECT_THAT(graph.durations_ns, ElementsAre(1, 3, 0, 5, 0, 4, 2, 0, 0, 0, 0, 7));
  EXPECT_EQ(graph.operations[11].pass, Pass::kOptimizer);
}

TEST(TrainingGraphTest, AnUpdateMovesEachByteThreeTimesAtTheMemoryRate) {
  EXPECT_EQ(UpdateNs(20'000'000), 3'000'000);
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Platform kByteANanosecond{.bandwidth_bytes_per_second = 1e9};

// Two downloads, a computation that needs the second, an upload and its update.
std::vector<Operation> SmallGraph() {
  return {{.name = "a", .resource = Resource::kDownlink, .size_bytes = 100},
          {.name = "b", .resource = Resource::kDownlink, .size_bytes = 30},
          {.name = "forward", .resource = Resource::kWorker, .waiting_for = {1}},
          {.name = "send", .resource = Resource::kUplink, .size_bytes = 20, .waiting_for = {2}},
          {.name = "update", .resource = Resource::kParameterServer, .waiting_for = {3}}};
}

TEST(StepScheduleTest, StreamsGoWholeAndInGraphOrder) {
  const RecordedStep step = ScheduleStep(SmallGraph(), {0, 0, 7, 0, 5}, kByteANanosecond);
  EXPECT_THAT(step.start_ns, ElementsAre(0, 0, 130, 137, 157));
  EXPECT_THAT(step.end_ns, ElementsAre(100, 130, 137, 157, 162));
}

TEST(StepScheduleTest, AStreamOverTheWindowSendsItsRestInASecondService) {
  Platform platform = kByteANanosecond;
  platform.window_bytes = 40;
  const RecordedStep step = ScheduleStep(SmallGraph(), {0, 0, 7, 0, 5}, platform);
  EXPECT_THAT(step.end_ns, ElementsAre(130, 70, 77, 97, 102));
}

TEST(StepScheduleTest, ReceiversParseBeforeOthersGoOn) {
  Platform platform = kByteANanosecond;
  platform.parsing_overhead = {.seconds_per_byte = 1e-10, .seconds = 1e-9};
  const RecordedStep step = ScheduleStep(SmallGraph(), {0, 0, 7, 0, 5}, platform);
  // "a" (100 bytes, 11 ns of parsing) and "b" (4 ns) are parsed by the worker, "send" (3 ns) by the
  // server.
  EXPECT_THAT(step.end_ns, ElementsAre(100, 130, 141, 161, 169));
}

TEST(StepScheduleTest, ACollectiveOfOneWorkerTakesNoTime) {
  const std::vector<Operation> graph{
      {.name = "backward", .resource = Resource::kWorker},
      {.name = "all_reduce",
       .resource = Resource::kCollective,
       .size_bytes = 1000,
       .waiting_for = {0},
       .collective = Collective::kAllReduce},
      {.name = "optimizer", .resource = Resource::kWorker, .waiting_for = {1}}};
  const RecordedStep step = ScheduleStep(graph, {7, 99, 5}, kByteANanosecond);
  EXPECT_THAT(step.start_ns, ElementsAre(0, 7, 7));
  EXPECT_THAT(step.end_ns, ElementsAre(7, 7, 12));
  for (const RecordedStep& varied : MakeSteps(graph, {7000, 99, 5000}, kByteANanosecond,
                                              {.own = 0.1, .common = 0.1, .steps = 4}))
    EXPECT_EQ(varied.start_ns[1], varied.end_ns[1]);
}

TEST(StepScheduleTest, LongTimesSaturateInsteadOfOverflowing) {
  std::vector<Operation> chain;
  for (int32_t i = 0; i < 20; ++i)
    chain.push_back({.name = std::to_string(i), .resource = Resource::kWorker});
  for (int32_t i = 1; i < 20; ++i) chain[static_cast<size_t>(i)].waiting_for = {i - 1};
  const RecordedStep step = ScheduleStep(
      chain, std::vector<int64_t>(20, std::numeric_limits<int64_t>::max()), kByteANanosecond);
  EXPECT_EQ(step.end_ns.back(), kFarNs);
}

TEST(StepScheduleTest, StreamsRunByThemselvesAndCollectivesTakeNoTime) {
  const std::vector<Operation> operations = {
      {.name = "forward", .resource = Resource::kWorker},
      {.name = "copy", .resource = Resource::kWorker, .stream = 2},
      {.name = "gradient",
       .resource = Resource::kCollective,
       .size_bytes = 1'000'000,
       .waiting_for = {0},
       .collective = Collective::kAllReduce},
      {.name = "optimizer", .resource = Resource::kWorker, .waiting_for = {1, 2}}};
  const RecordedStep step = ScheduleStep(operations, {10, 25, 99, 5}, kByteANanosecond);
  EXPECT_THAT(step.start_ns, ::testing::ElementsAre(0, 0, 10, 25));
  EXPECT_THAT(step.end_ns, ::testing::ElementsAre(10, 25, 10, 30));
}

TEST(StepScheduleTest, IsTheStepTheGoldenCasesHaveForOneWorker) {
  int compared = 0;
  for (const nlohmann::json& golden : testing::ReadJsonFile(
           std::string(STEPCAST_SOURCE_DIR) + "/tests/data/golden/parameter_server.json")) {
    ProfileDraft draft = testing::ProfileFromJson(golden.at("profile"));
    const nlohmann::json& scenario = golden.at("scenario");
    if (scenario.at("workers") != 1 || draft.parameter_servers != 1 || draft.steps.size() != 1 ||
        !scenario.at("transfer_priorities").is_null())
      continue;
    ++compared;
    std::vector<int64_t> durations;
    durations.reserve(draft.operations.size());
    for (size_t i = 0; i < draft.operations.size(); ++i)
      durations.push_back(draft.steps[0].end_ns[i] - draft.steps[0].start_ns[i]);
    if (!scenario.at("window_bytes").is_null())
      draft.platform.window_bytes = scenario.at("window_bytes").get<int64_t>();
    const RecordedStep step = ScheduleStep(draft.operations, durations, draft.platform);
    const auto expected = golden.at("step_end_ns").at(0).at(0).get<int64_t>();
    const int64_t actual = *std::max_element(step.end_ns.begin(), step.end_ns.end());
    // Each operation is rounded to a nanosecond.
    EXPECT_LE(std::abs(actual - expected), static_cast<int64_t>(draft.operations.size()))
        << golden.at("profile").at("display_name");
  }
  EXPECT_EQ(compared, 7);
}

// The rules that every schedule keeps, whatever the graph: dependencies, one thing at a time on a
// resource, durations.
TEST(StepScheduleTest, RandomGraphsKeepDependenciesAndShareNoResource) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    ProfileDraft draft = testing::RandomDraft(seed);
    draft.parameter_servers = 1;
    for (Operation& operation : draft.operations) operation.parameter_server = 0;
    draft.platform.window_bytes = 0;
    Random random({seed, 2});
    std::vector<int64_t> durations;
    for (size_t i = 0; i < draft.operations.size(); ++i)
      durations.push_back(static_cast<int64_t>(random.Below(5)) * 100'000);
    draft.steps = {ScheduleStep(draft.operations, durations, draft.platform)};
    ASSERT_THAT(ValidateProfile(draft, {}), IsEmpty());
    const RecordedStep& step = draft.steps[0];
    for (size_t i = 0; i < draft.operations.size(); ++i) {
      const Operation& operation = draft.operations[i];
      for (const int32_t before : operation.waiting_for)
        ASSERT_LE(step.end_ns[static_cast<size_t>(before)], step.start_ns[i]);
      if (IsTransfer(operation.resource)) continue;
      ASSERT_EQ(step.end_ns[i] - step.start_ns[i], durations[i]);
      for (size_t j = 0; j < i; ++j) {
        if (draft.operations[j].resource != operation.resource) continue;
        ASSERT_TRUE(step.end_ns[i] <= step.start_ns[j] || step.end_ns[j] <= step.start_ns[i]);
      }
    }
  }
}

TEST(MakeStepsTest, WithoutVariationThereIsOneStepAsGiven) {
  const std::vector<RecordedStep> steps =
      MakeSteps(SmallGraph(), {0, 0, 7, 0, 5}, kByteANanosecond, {.own = 0, .steps = 9});
  EXPECT_THAT(steps, ElementsAre(ScheduleStep(SmallGraph(), {0, 0, 7, 0, 5}, kByteANanosecond)));
}

TEST(MakeStepsTest, VariationHasTheMeanAndDeviationAskedForAndFollowsTheSeed) {
  constexpr int64_t kDuration = 1'000'000;
  const StepVariation variation{.own = 0.2, .steps = 1000, .seed = 5};
  const std::vector<RecordedStep> steps =
      MakeSteps(SmallGraph(), {0, 0, kDuration, 0, 5}, kByteANanosecond, variation);
  ASSERT_EQ(steps.size(), 1000u);
  double sum = 0;
  double squares = 0;
  for (const RecordedStep& step : steps) {
    const auto duration = static_cast<double>(step.end_ns[2] - step.start_ns[2]) / kDuration;
    sum += duration;
    squares += duration * duration;
  }
  const double mean = sum / 1000;
  EXPECT_NEAR(mean, 1, 0.02);
  EXPECT_NEAR(std::sqrt(squares / 1000 - mean * mean), 0.2, 0.02);
  EXPECT_EQ(MakeSteps(SmallGraph(), {0, 0, kDuration, 0, 5}, kByteANanosecond, variation), steps);
  EXPECT_NE(MakeSteps(SmallGraph(), {0, 0, kDuration, 0, 5}, kByteANanosecond,
                      {.own = 0.2, .steps = 1000, .seed = 6}),
            steps);
  EXPECT_NE(steps[0], steps[1]);
}

// The same factor for all of a worker's computations of a step, none of it on the server's; pairs
// of steps cancel out.
TEST(MakeStepsTest, CommonVariationMovesAllComputationsOfAWorkerTogether) {
  const std::vector<Operation> graph = {
      {.name = "a", .resource = Resource::kWorker},
      {.name = "b", .resource = Resource::kWorker, .waiting_for = {0}},
      {.name = "up", .resource = Resource::kUplink, .size_bytes = 1, .waiting_for = {1}},
      {.name = "update", .resource = Resource::kParameterServer, .waiting_for = {2}}};
  const std::vector<RecordedStep> steps =
      MakeSteps(graph, {2'000'000, 1'000'000, 0, 500'000}, kByteANanosecond,
                {.common = 0.1, .steps = 21, .seed = 3});
  ASSERT_EQ(steps.size(), 21u);
  const auto duration = [&](size_t step, size_t op) {
    return static_cast<double>(steps[step].end_ns[op] - steps[step].start_ns[op]);
  };
  double least = 1;
  double most = 1;
  for (size_t step = 0; step < steps.size(); ++step) {
    EXPECT_EQ(duration(step, 3), 500'000) << step;
    EXPECT_NEAR(duration(step, 0), 2 * duration(step, 1), 2) << step;
    if (step % 2 == 1) {
      EXPECT_NEAR(duration(step, 0) + duration(step - 1, 0), 4'000'000, 2) << step;
    }
    least = std::min(least, duration(step, 0) / 2e6);
    most = std::max(most, duration(step, 0) / 2e6);
  }
  EXPECT_EQ(duration(20, 0), 2'000'000);
  EXPECT_LT(least, 0.95);
  EXPECT_GT(most, 1.05);
}

TEST(ResolveStepVariationTest, NothingVariesThatWasNotAskedFor) {
  FaultList faults;
  const StepVariation none_asked = ResolveStepVariation({}, 10, {}, faults);
  EXPECT_FALSE(none_asked.varies());
  EXPECT_THAT(NoteOn(none_asked), ::testing::HasSubstr("one step. Nothing shows how steps vary"));
  const StepVariation own = ResolveStepVariation({.own = 0.1}, 10, {}, faults);
  EXPECT_EQ(own.own, 0.1);
  EXPECT_EQ(own.common, 0);
  const StepVariation none = ResolveStepVariation({.common = 0}, 10, {}, faults);
  EXPECT_FALSE(none.varies());
  EXPECT_THAT(NoteOn(own), ::testing::HasSubstr("Made: 20 steps"));
  // A graph that twenty steps would make too large gets fewer, unless they were asked for.
  EXPECT_EQ(ResolveStepVariation({}, 10, {.max_recorded_times = 70}, faults).steps, 7);
  EXPECT_EQ(ResolveStepVariation({}, 10, {.max_steps = 16}, faults).steps, 16);
  EXPECT_TRUE(faults.empty());
}

std::vector<std::string> Paths(const StepVariationDraft& draft, size_t operations,
                               const ProfileLimits& limits = {}) {
  FaultList faults;
  ResolveStepVariation(draft, operations, limits, faults);
  std::vector<std::string> paths;
  for (const Fault& fault : std::move(faults).Take()) paths.push_back(fault.field);
  return paths;
}

TEST(ResolveStepVariationTest, BoundsAreThoseOfTheContract) {
  EXPECT_THAT(Paths({.own = 0.5, .common = 0.5, .steps = 1000}, 10), IsEmpty());
  EXPECT_THAT(Paths({.own = 0.51}, 10), ElementsAre("step_time_variation"));
  EXPECT_THAT(Paths({.common = 0.51}, 10), ElementsAre("common_time_variation"));
  EXPECT_THAT(Paths({.own = std::numeric_limits<double>::quiet_NaN()}, 10),
              ElementsAre("step_time_variation"));
  EXPECT_THAT(Paths({.own = -0.1, .steps = 0}, 10), ElementsAre("step_time_variation", "steps"));
  EXPECT_THAT(Paths({.steps = 1001}, 10), ElementsAre("steps"));
}

TEST(ResolveStepVariationTest, MoreTimesThanTheLimitAllowsAreRefusedBeforeTheyAreMade) {
  EXPECT_THAT(Paths({.own = 0.1, .steps = 20}, 10, {.max_recorded_times = 200}), IsEmpty());
  EXPECT_THAT(Paths({.own = 0.1, .steps = 21}, 10, {.max_recorded_times = 200}),
              ElementsAre("steps"));
  EXPECT_THAT(Paths({.own = 0, .steps = 21}, 10, {.max_recorded_times = 200}), IsEmpty());
}

}  // namespace
}  // namespace stepcast::made_steps_test
