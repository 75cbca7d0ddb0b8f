#include "core/trace/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/random_case.h"

namespace stepcast::trace_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::JobBuilder;

// A step of a microsecond: two operations.
Profile Job() {
  JobBuilder job;
  job.Compute(400, {job.Download(600)});
  return job.Build();
}

std::vector<std::string> FieldsOf(const absl::Status& status) {
  std::vector<std::string> fields;
  for (const Fault& fault : DetailsOf(status).faults) fields.push_back(fault.field);
  return fields;
}

TEST(ResolveTraceTest, FiveStepsOfOneWorkerUnlessAskedFor) {
  const absl::StatusOr<TraceQuery> query = ResolveTrace(Job(), {});
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_EQ(query->scenario.workers, 1);
  EXPECT_EQ(query->options.steps_per_worker, 5);
  EXPECT_EQ(query->options.warmup_steps, 0);
  EXPECT_EQ(query->options.seed, 1U);
}

TEST(ResolveTraceTest, WhatHasNoEffectIsRefusedByName) {
  const SimulationOptionsDraft draft{.steps_per_worker = 0,
                                     .warmup_steps = 1,
                                     .replications = 2,
                                     .relative_precision = 0.1,
                                     .time_budget_seconds = 1,
                                     .horizon = Horizon::kFirstSteps,
                                     .horizon_steps = 3,
                                     .horizon_seconds = 4,
                                     .confidence_level = 0.9};
  const absl::Status status =
      ResolveTrace(Job(), {.scenario = {.workers = 0}, .options = draft}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailsOf(status).reason, "REQUEST_INVALID");
  EXPECT_THAT(FieldsOf(status),
              ElementsAre("scenario.workers", "options.steps_per_worker", "options.warmup_steps",
                          "options.replications", "options.relative_precision",
                          "options.confidence_level", "options.time_budget", "options.horizon",
                          "options.horizon_steps", "options.horizon_seconds"));
}

TEST(ResolveTraceTest, WhatSaysTheSameAsNothingIsAllowed) {
  const SimulationOptionsDraft draft{.steps_per_worker = 1,
                                     .warmup_steps = 0,
                                     .seed = 9,
                                     .replications = 1,
                                     .relative_precision = 0,
                                     .start = Start::kStaggered,
                                     .horizon = Horizon::kSteadyState};
  const absl::StatusOr<TraceQuery> query = ResolveTrace(Job(), {.options = draft});
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_EQ(query->options.seed, 9U);
  EXPECT_EQ(query->options.start, Start::kStaggered);
}

TEST(ResolveTraceTest, EitherOffsetsOrAStaggeredStart) {
  const TraceDraft draft{.scenario = {.workers = 2, .start_offsets_ns = {0, 5}},
                         .options = {.start = Start::kStaggered}};
  EXPECT_THAT(FieldsOf(ResolveTrace(Job(), draft).status()),
              ElementsAre("scenario.start_offsets_ns"));
}

TEST(ResolveTraceTest, TooManyEventsAreRefusedWithTheirNumber) {
  // 4 workers x (7 steps x 3 events + 2 x (process, steps and 4 lanes)).
  const TraceDraft draft{.scenario = {.workers = 4}, .options = {.steps_per_worker = 7}};
  EXPECT_TRUE(ResolveTrace(Job(), draft, {.max_trace_events = 132}).ok());
  const absl::Status status = ResolveTrace(Job(), draft, {.max_trace_events = 131}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  ASSERT_THAT(FieldsOf(status), ElementsAre("options.steps_per_worker"));
  EXPECT_THAT(DetailsOf(status).faults[0].description,
              HasSubstr("132 events, which is above the limit max_trace_events = 131"));
  EXPECT_THAT(FieldsOf(ResolveTrace(Job(), {.options = {.steps_per_worker = 10'000'000}}).status()),
              ElementsAre("options.steps_per_worker"));
}

TEST(ResolveTraceTest, TheLimitIsNeverLessThanWhatIsWritten) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const testing::RandomCase random_case = testing::MakeRandomCase(seed);
    const TraceQuery query{.scenario = random_case.scenario,
                           .options = {.steps_per_worker = 3, .warmup_steps = 0}};
    const auto drop = [](const std::string&) { return absl::OkStatus(); };
    const absl::StatusOr<TraceSummary> summary =
        WriteTrace(random_case.profile, query, drop, NeverStop);
    ASSERT_TRUE(summary.ok()) << "seed " << seed << summary.status();
    TraceDraft draft{.scenario = {.workers = query.scenario.workers},
                     .options = {.steps_per_worker = 3}};
    const ParameterServers& resolved = query.scenario.servers();
    ParameterServersDraft& asked = draft.scenario.servers();
    asked.servers = resolved.servers;
    asked.parsing_overhead = resolved.parsing_overhead;
    asked.multiplexing = WholeStream{};
    if (const auto* window = std::get_if<Window>(&resolved.multiplexing))
      asked.multiplexing =
          WindowDraft{.bytes = window->bytes, .quantum_bytes = window->quantum_bytes};
    if (const auto* robin = std::get_if<RoundRobin>(&resolved.multiplexing))
      asked.multiplexing = RoundRobinDraft{.window_bytes = robin->window_bytes,
                                           .quantum_bytes = robin->quantum_bytes};
    EXPECT_FALSE(
        ResolveTrace(random_case.profile, draft, {.max_trace_events = summary->events - 1}).ok())
        << "seed " << seed;
    // Lanes that run nothing are the difference.
    const int64_t lanes = int64_t{2} * query.scenario.workers *
                          int64_t{ServerLanes{.servers = query.scenario.servers().servers}.count()};
    EXPECT_TRUE(
        ResolveTrace(random_case.profile, draft, {.max_trace_events = summary->events + lanes})
            .ok())
        << "seed " << seed;
  }
}

TEST(WriteTraceTest, ShowsTheFirstStepsOfEveryWorkerAndNoMore) {
  const TraceDraft draft{
      .scenario = {.workers = 2,
                   .worker_groups = {{.count = 1, .compute_speed_factor = 0.01}, {.count = 1}}},
      .options = {.steps_per_worker = 3}};
  std::string text;
  const auto take = [&text](const std::string& piece) {
    text += piece;
    return absl::OkStatus();
  };
  const absl::StatusOr<TraceSummary> summary =
      WriteTrace(Job(), ResolveTrace(Job(), draft).value(), take, NeverStop);
  ASSERT_TRUE(summary.ok()) << summary.status();
  int slices = 0;
  const auto trace = nlohmann::json::parse(text);
  for (const auto& event : trace["traceEvents"]) slices += event["ph"] == "X" ? 1 : 0;
  EXPECT_EQ(slices, 2 * 3 * (1 + 2));
  EXPECT_GT(summary->simulation.simulated_operations, 2 * 3 * 2) << "the fast worker went on";
}

// Two gradients that become ready one after the other, and the optimizer.
Profile JobOfCollectives() {
  const auto collective = [](std::string name, int32_t after) {
    return Operation{.name = std::move(name),
                     .resource = Resource::kCollective,
                     .size_bytes = 1000,
                     .waiting_for = {after},
                     .collective = Collective::kAllReduce};
  };
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = {{.name = "backward b", .resource = Resource::kWorker},
                      collective("b", 0),
                      {.name = "backward a", .resource = Resource::kWorker, .waiting_for = {0}},
                      collective("a", 2),
                      {.name = "optimizer", .resource = Resource::kWorker, .waiting_for = {1, 3}}};
  draft.steps = {{.start_ns = {0, 0, 0, 0, 0}, .end_ns = {500, 0, 100, 0, 50}}};
  return Profile::Create(std::move(draft)).value();
}

TEST(WriteTraceTest, CollectivesSayWhatTheyCarryOnAThreadForEachThatRunsAtOnce) {
  struct Case {
    AllReduceDraft job;
    std::vector<std::string> threads;
    std::vector<int64_t> sizes;
    std::vector<int32_t> buffers;
  };
  const std::vector<Case> cases = {
      {{}, {"steps", "worker", "collectives"}, {1000, 1000}, {1, 1}},
      {{.fusion = Buckets{.first_bytes = 2000}}, {"steps", "worker", "collectives"}, {2000}, {2}},
      {{.algorithm = CollectiveAlgorithm::kGloo, .concurrent_collectives = 2},
       {"steps", "worker", "collectives", "collectives 2"},
       {1000, 1000},
       {1, 1}},
      {{.partition_bytes = 600},
       {"steps", "worker", "collectives"},
       {600, 400, 600, 400},
       {1, 1, 1, 1}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(&one - cases.data());
    const TraceDraft draft{.scenario = {.workers = 2, .communication = one.job},
                           .options = {.steps_per_worker = 1}};
    std::string text;
    const auto take = [&text](const std::string& piece) {
      text += piece;
      return absl::OkStatus();
    };
    const Profile profile = JobOfCollectives();
    const absl::StatusOr<TraceQuery> query = ResolveTrace(profile, draft);
    ASSERT_TRUE(query.ok()) << query.status();
    const absl::StatusOr<TraceSummary> summary = WriteTrace(profile, *query, take, NeverStop);
    ASSERT_TRUE(summary.ok()) << summary.status();
    const TraceLimits less{.max_trace_events = summary->events - 1};
    EXPECT_FALSE(ResolveTrace(profile, draft, less).ok());
    std::vector<std::string> threads;
    std::vector<int64_t> sizes;
    std::vector<int32_t> buffers;
    const auto trace = nlohmann::json::parse(text);
    for (const auto& event : trace["traceEvents"]) {
      if (event["pid"] != 1) continue;
      if (event["name"] == "thread_name") threads.push_back(event["args"]["name"]);
      if (event["ph"] != "X" || event["cat"] != "collective") continue;
      EXPECT_EQ(event["args"]["collective"], "all-reduce");
      sizes.push_back(event["args"]["size_bytes"].get<int64_t>());
      buffers.push_back(event["args"]["buffers"].get<int32_t>());
    }
    EXPECT_EQ(threads, one.threads);
    EXPECT_EQ(sizes, one.sizes);
    EXPECT_EQ(buffers, one.buffers);
  }
}

TEST(WriteTraceTest, ASinkThatWantsNoMoreEndsTheRun) {
  const TraceQuery query =
      ResolveTrace(Job(), {.options = {.steps_per_worker = 1'000'000}}).value();
  int pieces = 0;
  const auto refuse = [&pieces](const std::string&) {
    return ++pieces < 3 ? absl::OkStatus() : absl::CancelledError("the caller has gone");
  };
  int checks = 0;
  const auto count = [&checks] {
    ++checks;
    return absl::OkStatus();
  };
  EXPECT_EQ(WriteTrace(Job(), query, refuse, count).status(),
            absl::CancelledError("the caller has gone"));
  EXPECT_EQ(pieces, 3);
  EXPECT_LT(checks, 10) << "of some 500";
}

TEST(WriteTraceTest, StopsWhenTold) {
  const TraceQuery query =
      ResolveTrace(Job(), {.options = {.steps_per_worker = 1'000'000}}).value();
  int pieces = 0;
  const auto take = [&pieces](const std::string&) {
    ++pieces;
    return absl::OkStatus();
  };
  const auto stop = [&pieces] {
    return pieces < 3 ? absl::OkStatus() : absl::DeadlineExceededError("late");
  };
  EXPECT_EQ(WriteTrace(Job(), query, take, stop).status(), absl::DeadlineExceededError("late"));
  EXPECT_LT(pieces, 30) << "of some 5000";
}

}  // namespace
}  // namespace stepcast::trace_test
