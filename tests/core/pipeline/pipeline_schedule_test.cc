// Orders of computation, closed forms of their steps, and layouts that are refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/base/stop_check.h"
#include "core/pipeline/schedule.h"
#include "core/pipeline/shares.h"
#include "core/pipeline/simulation.h"
#include "tests/support/recorded_data.h"

namespace stepcast::pipeline_schedule_test {
namespace {

using Schedule = PipelineSchedule;

constexpr int64_t kForward = 7'000'000;
constexpr int64_t kInput = 9'000'000;
constexpr int64_t kWeight = 5'000'000;

// Equal stages, free transfers, one step; times of a whole device.
PipelineJob JobOf(const PipelineLayout& layout) {
  PipelineJob job{.layout = layout};
  const bool split = SplitsBackward(layout.schedule);
  const StageTimes times{.forward = Nanoseconds(kForward / layout.chunks),
                         .backward = Nanoseconds((kInput + (split ? 0 : kWeight)) / layout.chunks),
                         .backward_weight = Nanoseconds(kWeight / layout.chunks),
                         .last_backward_extra = {}};
  const auto stages = static_cast<size_t>(layout.stages());
  job.times = {std::vector<StageTimes>(stages, times)};
  job.output_bytes.resize(stages, 1000);
  job.reductions.resize(stages);
  job.tails.resize(static_cast<size_t>(layout.devices));
  job.bytes_per_second = std::numeric_limits<double>::infinity();
  return job;
}

PipelineRun Simulate(const PipelineJob& job) {
  absl::StatusOr<PipelineRun> run = SimulatePipeline(job, NeverStop);
  EXPECT_TRUE(run.ok()) << run.status();
  return *std::move(run);
}

int64_t StepNs(const PipelineLayout& layout) {
  return ToNanoseconds(Simulate(JobOf(layout)).step_ends[0]);
}

TEST(PipelineScheduleTest, StepsOfEqualStagesAreTheClosedForms) {
  constexpr int64_t kAll = kForward + kInput + kWeight;
  for (const int32_t p : {1, 2, 4, 8}) {
    for (const int32_t m : {8, 16, 32}) {
      SCOPED_TRACE(::testing::Message() << "p " << p << " m " << m);
      const PipelineLayout layout{.schedule = Schedule::kGpipe, .devices = p, .micro_batches = m};
      const auto with = [&](Schedule schedule, int32_t chunks, PipelineVariant variant) {
        PipelineLayout other = layout;
        other.schedule = schedule;
        other.chunks = chunks;
        other.variant = variant;
        EXPECT_TRUE(LayoutFaults(other).empty());
        return StepNs(other);
      };
      for (const auto variant : {PipelineVariant::kMegatron, PipelineVariant::kPytorch}) {
        EXPECT_EQ(with(Schedule::kGpipe, 1, variant), (m + p - 1) * kAll);
        EXPECT_EQ(with(Schedule::kOneForwardOneBackward, 1, variant), (m + p - 1) * kAll);
        EXPECT_EQ(with(Schedule::kZeroBubble1, 1, variant),
                  m * kAll + (p - 1) * (kAll - 2 * kWeight));
        for (const int32_t v : {2, 4, 5}) {
          EXPECT_EQ(with(Schedule::kInterleaved, v, variant), m * kAll + (p - 1) * kAll / v);
          EXPECT_EQ(with(Schedule::kLoopedBreadthFirst, v, variant), m * kAll + (p - 1) * kAll / v);
        }
      }
    }
  }
}

TEST(PipelineScheduleTest, ChunksInFlight) {
  const auto in_flight = [](Schedule schedule, int32_t chunks) {
    return Simulate(
               JobOf({.schedule = schedule, .devices = 4, .chunks = chunks, .micro_batches = 8}))
        .chunks_in_flight;
  };
  EXPECT_EQ(in_flight(Schedule::kGpipe, 1), (std::vector<int32_t>{8, 8, 8, 8}));
  EXPECT_EQ(in_flight(Schedule::kOneForwardOneBackward, 1), (std::vector<int32_t>{4, 3, 2, 1}));
  EXPECT_EQ(in_flight(Schedule::kInterleaved, 2), (std::vector<int32_t>{11, 9, 7, 5}));
  EXPECT_EQ(in_flight(Schedule::kZeroBubble1, 1), (std::vector<int32_t>{4, 4, 4, 4}));
}

TEST(PipelineScheduleTest, EveryComputationIsThereOnce) {
  for (int which = 0; which < 6; ++which) {
    for (const auto variant : {PipelineVariant::kMegatron, PipelineVariant::kPytorch}) {
      for (int32_t p = 1; p <= 5; ++p) {
        for (int32_t m = 1; m <= 12; ++m) {
          const auto schedule = static_cast<Schedule>(which);
          const PipelineLayout layout{.schedule = schedule,
                                      .variant = variant,
                                      .devices = p,
                                      .chunks = HasChunks(schedule) ? 2 : 1,
                                      .micro_batches = m};
          if (!LayoutFaults(layout).empty()) continue;
          SCOPED_TRACE(::testing::Message()
                       << PipelineScheduleName(schedule) << " p " << p << " m " << m);
          Simulate(JobOf(layout));  // nobody waits for ever
          for (int32_t device = 0; device < p; ++device) {
            auto order = OrderOf(layout, device);
            const int parts = SplitsBackward(schedule) ? 3 : 2;
            EXPECT_EQ(order.size(), static_cast<size_t>(parts * m * layout.chunks));
            const auto key = [](const PipelineWork& work) {
              return std::tuple(work.part, work.chunk, work.micro_batch);
            };
            std::sort(order.begin(), order.end(),
                      [&](const auto& a, const auto& b) { return key(a) < key(b); });
            EXPECT_EQ(std::adjacent_find(order.begin(), order.end()), order.end());
          }
        }
      }
    }
  }
}

TEST(PipelineScheduleTest, RefusesByName) {
  const auto field = [](const PipelineLayout& layout) {
    const std::vector<Fault> faults = LayoutFaults(layout);
    return faults.empty() ? std::string() : faults[0].field;
  };
  const Schedule interleaved = Schedule::kInterleaved;
  EXPECT_EQ(field({.devices = 0}), "stages");
  EXPECT_EQ(field({.devices = 2, .micro_batches = 0}), "micro_batches");
  EXPECT_EQ(field({.devices = 2, .chunks = 2, .micro_batches = 4}), "chunks");
  EXPECT_EQ(field({.schedule = Schedule::kZeroBubbleV, .devices = 2, .chunks = 3}), "chunks");
  EXPECT_EQ(field({.schedule = interleaved, .devices = 4, .chunks = 2, .micro_batches = 3}),
            "micro_batches");
  EXPECT_EQ(field({.schedule = interleaved, .devices = 4, .chunks = 2, .micro_batches = 6}),
            "micro_batches");
  EXPECT_EQ(
      field({.schedule = interleaved, .devices = 4, .chunks = 2, .micro_batches = 9, .group = 5}),
      "");
  EXPECT_EQ(
      field({.schedule = interleaved, .devices = 4, .chunks = 2, .micro_batches = 8, .group = 5}),
      "group");
  EXPECT_EQ(
      field({.schedule = interleaved, .devices = 4, .chunks = 2, .micro_batches = 8, .group = 3}),
      "group");
  EXPECT_EQ(field({.schedule = interleaved,
                   .variant = PipelineVariant::kPytorch,
                   .devices = 4,
                   .chunks = 2,
                   .micro_batches = 9}),
            "micro_batches");
  EXPECT_EQ(field({.devices = 2, .micro_batches = 4, .group = 2}), "group");
}

TEST(PipelineScheduleTest, SharesAddUpToIdle) {
  PipelineJob job = JobOf({.devices = 4, .micro_batches = 8});
  job.bytes_per_second = 1e6;
  job.latency = Microseconds(20);
  job.times[0].back().forward = Nanoseconds(2 * kForward);
  for (auto& of_stage : job.reductions)
    of_stage = {{.before_end = {}, .alone = Milliseconds(6), .wire_bytes = 0}};
  job.tails.assign(4, Milliseconds(3));
  job.step_barrier = true;
  job.steps = 2;
  const absl::StatusOr<PipelineShares> shares = SharesOf(job, NeverStop);
  ASSERT_TRUE(shares.ok()) << shares.status();
  for (const double share :
       {shares->bubble_fraction, shares->imbalance_fraction, shares->transfer_fraction,
        shares->reduction_fraction, shares->rest_fraction})
    EXPECT_GT(share, 0);
  EXPECT_NEAR(shares->bubble_fraction + shares->imbalance_fraction + shares->transfer_fraction +
                  shares->reduction_fraction + shares->rest_fraction,
              shares->idle_fraction, 1e-12);
  EXPECT_NEAR(shares->rest_fraction * shares->step_seconds, 0.003, 1e-9);
}

// Computation within the counted steps, looked up in the log.
class CountedComputation : public PipelineLog {
 public:
  void OnSlice(const PipelineSlice& slice) override {
    if (slice.kind == PipelineSlice::Kind::kComputation) slices_.push_back(slice);
  }
  double Seconds(Instant from) const {
    double seconds = 0;
    for (const PipelineSlice& slice : slices_)
      if (slice.end > from) seconds += ToSeconds(slice.end - std::max(slice.begin, from));
    return seconds;
  }

 private:
  std::vector<PipelineSlice> slices_;
};

// Steps vary, so that those that are counted differ from all others.
TEST(PipelineScheduleTest, SharesAreOfTheCountedSteps) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random({seed});
    PipelineJob job = JobOf({.devices = 1 + static_cast<int32_t>(random.Below(4)),
                             .micro_batches = 1 + static_cast<int32_t>(random.Below(4))});
    job.steps = 6;
    job.counted_from = static_cast<int32_t>(random.Below(6));
    job.step_barrier = random.Below(2) == 0;
    const auto devices = static_cast<size_t>(job.layout.devices);
    for (int32_t step = 0; step < job.steps; ++step) {
      job.step_scale.emplace_back();
      for (size_t device = 0; device < devices; ++device)
        job.step_scale.back().push_back(0.5 + random.Unit());
    }
    const absl::StatusOr<PipelineShares> shares = SharesOf(job, NeverStop);
    ASSERT_TRUE(shares.ok()) << shares.status();
    CountedComputation counted;
    ASSERT_TRUE(SimulatePipeline(job, NeverStop, &counted).ok());
    const std::vector<Instant>& ends = shares->run.step_ends;
    const Instant from =
        job.counted_from == 0 ? Instant{} : ends[static_cast<size_t>(job.counted_from) - 1];
    const double time = ToSeconds(ends.back() - from) * static_cast<double>(devices);
    EXPECT_NEAR(shares->idle_fraction, 1 - counted.Seconds(from) / time, 1e-12);
    for (const double share :
         {shares->bubble_fraction, shares->imbalance_fraction, shares->transfer_fraction,
          shares->reduction_fraction, shares->rest_fraction})
      EXPECT_GE(share, 0);
    EXPECT_TRUE(devices > 1 || shares->idle_fraction < 1e-12);
    EXPECT_NEAR(shares->bubble_fraction + shares->imbalance_fraction + shares->transfer_fraction +
                    shares->reduction_fraction + shares->rest_fraction,
                shares->idle_fraction, 1e-12);
  }
}

TEST(PipelineScheduleTest, AGatherIsOfTheStepsEnd) {
  PipelineJob job = JobOf({.devices = 2, .micro_batches = 4});
  job.replicas = 2;
  for (auto& of_stage : job.reductions)
    of_stage = {{.before_end = {}, .alone = Milliseconds(6), .wire_bytes = 0, .bytes = 1}};
  job.gathers.assign(2, {.before_end = {}, .alone = Milliseconds(5), .wire_bytes = 0, .bytes = 1});
  job.tails.assign(2, Milliseconds(3));
  job.step_barrier = true;
  const absl::StatusOr<PipelineShares> shares = SharesOf(job, NeverStop);
  ASSERT_TRUE(shares.ok()) << shares.status();
  EXPECT_NEAR(shares->rest_fraction * shares->step_seconds, 0.008, 1e-9);
  EXPECT_NEAR(shares->reduction_fraction * shares->step_seconds, 0.006, 1e-9);
}

TEST(PipelineScheduleTest, PrimusComputesInThatOrderOnEveryRank) {
  const auto folder = testing::RecordedDataFolder() / "layouts" / "primus_pp8";
  if (!std::filesystem::exists(folder))
    GTEST_SKIP() << "no recorded pipeline; set STEPCAST_SHARED_DATA to the folder that has layouts";
  const PipelineLayout layout{.devices = 8, .micro_batches = 16};
  for (int32_t rank = 0; rank < 8; ++rank) {
    std::ifstream file(folder / ("pp_rank_" + std::to_string(rank) + ".json"));
    const nlohmann::json steps = nlohmann::json::parse(file);
    ASSERT_EQ(steps.size(), 20U);
    for (const auto& step : steps) {
      std::vector<std::pair<double, PipelineWork>> begun;
      for (int32_t k = 0; k < 16; ++k) {
        begun.push_back(
            {step.at("fwd_start").at(static_cast<size_t>(k)), {PipelinePart::kForward, k, 0}});
        begun.push_back(
            {step.at("bwd_start").at(static_cast<size_t>(k)), {PipelinePart::kBackward, k, 0}});
      }
      std::sort(begun.begin(), begun.end(),
                [](const auto& a, const auto& b) { return a.first < b.first; });
      std::vector<PipelineWork> order;
      for (const auto& one : begun) order.push_back(one.second);
      EXPECT_EQ(order, OrderOf(layout, rank)) << rank;
    }
  }
}

// Unlike replicas, of whose messages an int32 could not number all.
TEST(PipelineScheduleTest, MoreMessagesThanThereIsRoomForAreRefused) {
  PipelineJob job = JobOf({.devices = 96, .micro_batches = 40'000});
  job.replicas = 300;
  const absl::StatusOr<PipelineRun> run = SimulatePipeline(job, NeverStop);
  EXPECT_EQ(run.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(DetailsOf(run.status()).reason, "PIPELINE_TOO_LARGE");
  EXPECT_NE(run.status().message().find("40000 micro-batches"), std::string::npos);
}

}  // namespace
}  // namespace stepcast::pipeline_schedule_test
