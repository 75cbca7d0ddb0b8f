#include "core/calibrate/link_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/base/stop_check.h"
#include "tests/core/calibrate/streams.h"
#include "tests/core/engine/job_builder.h"
#include "tests/support/repetitions.h"

namespace stepcast::link_replay_test {
namespace {

using testing::EngineEnds;
using testing::PhaseFrom;
using testing::StreamRequest;

// At a byte a nanosecond.
constexpr double kNanosecondsPerByte = 1e9;

std::vector<double> Replayed(const std::vector<StreamRequest>& requests, LinkSetting setting) {
  setting.bytes_per_second = kNanosecondsPerByte;
  LinkReplay replay;
  const std::span<const double> ends = replay.AtHand(PhaseFrom(requests), setting);
  return {ends.begin(), ends.end()};
}

// Up to 30 streams; half of the cases request many at once.
std::vector<StreamRequest> RandomRequests(Random& random) {
  std::vector<StreamRequest> requests(1 + random.Below(30));
  const bool is_burst = random.Below(2) == 0;
  int64_t at = 0;
  for (StreamRequest& request : requests) {
    if (!is_burst || random.Below(6) == 0) at += static_cast<int64_t>(random.Below(20'000));
    request = {.start_ns = at,
               .size_bytes =
                   1 + static_cast<int64_t>(random.Below(random.Below(4) == 0 ? 60'000 : 3'000))};
  }
  return requests;
}

TEST(LinkReplayTest, EndsAsTheEngineEndsThemUnderEveryMultiplexing) {
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random({seed});
    const std::vector<StreamRequest> requests = RandomRequests(random);
    LinkSetting setting;
    ScenarioDraft scenario;
    scenario.servers().multiplexing = WholeStream{};
    if (seed % 3 > 0) {
      WindowDraft window{.bytes = 1 + static_cast<int64_t>(random.Below(20'000))};
      setting.first_bytes = static_cast<double>(*window.bytes);
      if (seed % 3 > 1) {
        window.quantum_bytes = 100 + static_cast<int64_t>(random.Below(20'000));
        setting.quantum_bytes = static_cast<double>(*window.quantum_bytes);
      }
      scenario.servers().multiplexing = window;
    }
    ASSERT_EQ(Replayed(requests, setting), EngineEnds(requests, scenario, TransferOrder::kGraph));
  }
}

TEST(LinkReplayTest, TheRecordedOrderIsTheEnginesRecordedOrder) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random({seed, 2});
    std::vector<StreamRequest> requests = RandomRequests(random);
    // In the engine transfers that wait for nothing come first in graph order, so that no two have
    // one end.
    for (size_t i = 0; i < requests.size(); ++i)
      requests[i].end_ns = requests[i].start_ns +
                           1000 * static_cast<int64_t>(random.Below(200'000)) +
                           static_cast<int64_t>(i);
    ASSERT_EQ(Replayed(requests, {.by_recorded_end = true}),
              EngineEnds(requests,
                         {.communication = ParameterServersDraft{.multiplexing = WholeStream{}}},
                         TransferOrder::kRecorded));
  }
}

// Fig. 12 of ICPE 2020: with a window of 3, A (5) and D (4) are stopped, and follow behind what
// waited.
TEST(LinkReplayTest, AStreamLargerThanTheWindowIsStoppedOnce) {
  const std::vector<StreamRequest> requests = {{.size_bytes = 5},
                                               {.size_bytes = 2},
                                               {.size_bytes = 1},
                                               {.size_bytes = 4},
                                               {.size_bytes = 3}};
  EXPECT_EQ(Replayed(requests, {.first_bytes = 3}), (std::vector<double>{14, 5, 6, 15, 12}));
}

TEST(LinkReplayTest, WhatFindsTheLinkIdleWaitsForItsStart) {
  const std::vector<StreamRequest> requests = {{.size_bytes = 100},
                                               {.start_ns = 50, .size_bytes = 100},
                                               {.start_ns = 5000, .size_bytes = 100}};
  EXPECT_EQ(Replayed(requests, {.start_seconds = 1e-6}), (std::vector<double>{1100, 1200, 6100}));
  EXPECT_EQ(Replayed(requests, {.start_seconds = 1e-6, .by_recorded_end = true}),
            (std::vector<double>{1100, 1200, 6100}));
}

TEST(LinkReplayTest, ParsingIsAddedWhenTheLinkIsDone) {
  RecordedPhase phase = PhaseFrom({{.size_bytes = 100}, {.size_bytes = 100}});
  for (RecordedTransfer& transfer : phase) transfer.parsing_ns = 7;
  LinkReplay replay;
  const std::span<const double> ends =
      replay.AtHand(phase, {.bytes_per_second = kNanosecondsPerByte});
  EXPECT_EQ(ends[0], 107);
  EXPECT_EQ(ends[1], 207);
}

TEST(LinkReplayTest, ServicesAreCounted) {
  EXPECT_EQ((LinkSetting{}.ServicesOf(1e9)), 1);
  EXPECT_EQ((LinkSetting{.first_bytes = 10}.ServicesOf(10)), 1);
  EXPECT_EQ((LinkSetting{.first_bytes = 10}.ServicesOf(11)), 2);
  EXPECT_EQ((LinkSetting{.first_bytes = 10, .quantum_bytes = 5}.ServicesOf(20)), 3);
  EXPECT_EQ((LinkSetting{.first_bytes = 10, .quantum_bytes = 5}.ServicesOf(21)), 4);
}

// At a byte a nanosecond the streams end 100, 200, 300 and 400 ns after the first request at 50.
const std::vector<RecordedPhase> kPhases = {
    PhaseFrom({{50, 100, 150}, {50, 100, 300}, {50, 100, 300}, {50, 100, 450}})};
const LinkSetting kLink{.bytes_per_second = 1e9};

TEST(EndTimeErrorsTest, AreSharesOfTheTimeSinceThePhaseBegan) {
  const EndTimeErrors errors = MeasureEndTimes(kPhases, kLink, NeverStop).value();
  // 0, 50 / 250, 50 / 250, 0.
  EXPECT_EQ(errors.transfers, 4);
  EXPECT_DOUBLE_EQ(errors.average, 0.1);
  EXPECT_DOUBLE_EQ(errors.median, 0);
  EXPECT_DOUBLE_EQ(errors.p95, 0.2);
  EXPECT_DOUBLE_EQ(errors.maximum, 0.2);
  EXPECT_DOUBLE_EQ(errors.distance, 0.5 * 0.2 / 0.22);
  EXPECT_DOUBLE_EQ(EndTimeDistance(kPhases, kLink, NeverStop).value(), errors.distance);
}

TEST(EndTimeErrorsTest, WhatEndsWithThePhasesStartHasNoError) {
  EXPECT_EQ(MeasureEndTimes(std::vector<RecordedPhase>{PhaseFrom({{50, 100, 50}, {50, 100, 250}})},
                            kLink, NeverStop)
                ->transfers,
            1);
}

TEST(EndTimeErrorsTest, ALinkHalfAsFastStretchesWhatItCarries) {
  const std::vector<RecordedPhase> slow = {
      PhaseFrom({{50, 100, 250}, {50, 100, 450}, {50, 100, 650}})};
  EXPECT_DOUBLE_EQ(MedianStretch(slow, kLink, NeverStop).value(), 2);
  EXPECT_EQ(MedianStretch({}, kLink, NeverStop).value(), 1);
}

TEST(EndTimeErrorsTest, StopsWhenTold) {
  const auto stop = [] { return absl::CancelledError(); };
  EXPECT_EQ(MeasureEndTimes(kPhases, kLink, stop).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(EndTimeDistance(kPhases, kLink, stop).status().code(), absl::StatusCode::kCancelled);
}

using testing::RecordedByEngine;
using testing::StreamRequest;

constexpr int kSteps = 10;

struct Sought {
  double window = 0;
  double noise = 0;
  QuantumRule rule = QuantumRule::kRest;
};

// A network of 12 to 30 tensors, most of them small; the largest three hold most bytes. Requested
// within a fiftieth of the time they take.
std::vector<StreamRequest> Network(Random& random) {
  std::vector<StreamRequest> requests(12 + random.Below(19));
  for (StreamRequest& request : requests)
    request.size_bytes = static_cast<int64_t>(1000 * std::exp2(8 * random.Unit()));
  for (size_t i = 0; i < 3; ++i)
    requests[random.Below(requests.size())].size_bytes =
        1'000'000 + static_cast<int64_t>(random.Below(4'000'000));
  return requests;
}

// Each step in a new order.
std::vector<RecordedPhase> Recorded(const Sought& sought, std::vector<StreamRequest> requests,
                                    Random& random) {
  ScenarioDraft scenario;
  scenario.servers().multiplexing = WholeStream{};
  if (sought.window > 0) {
    WindowDraft window{.bytes = static_cast<int64_t>(sought.window)};
    if (sought.rule == QuantumRule::kWindowAndMore)
      window.quantum_bytes = static_cast<int64_t>(sought.window + kQuantumBeyondWindowBytes);
    if (sought.rule == QuantumRule::kSame) window.quantum_bytes = window.bytes;
    scenario.servers().multiplexing = window;
  }
  std::vector<RecordedPhase> phases;
  for (int step = 0; step < kSteps; ++step) {
    for (size_t i = requests.size(); i > 1; --i)
      std::swap(requests[i - 1].size_bytes, requests[random.Below(i)].size_bytes);
    int64_t at = 0;
    for (StreamRequest& request : requests)
      request.start_ns = at += 1 + static_cast<int64_t>(random.Below(10'000));
    phases.push_back(RecordedByEngine(requests, scenario, sought.noise, random));
  }
  return phases;
}

double Largest(const std::vector<StreamRequest>& requests) {
  double largest = 0;
  for (const StreamRequest& request : requests)
    largest = std::max(largest, static_cast<double>(request.size_bytes));
  return largest;
}

class WindowSearchTest : public ::testing::TestWithParam<Sought> {};

TEST_P(WindowSearchTest, FindsTheWindowThatMadeTheRecording) {
  int worst = 0;
  for (uint64_t seed = 1; seed <= testing::Repetitions(60u); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random({seed, 4});
    const std::vector<StreamRequest> requests = Network(random);
    Sought sought = GetParam();
    sought.window = std::round(Largest(requests) * (0.1 + 0.7 * random.Unit()));
    const std::vector<RecordedPhase> phases = Recorded(sought, requests, random);
    const WindowEstimate found =
        FindWindow(phases, {.bytes_per_second = 1e9}, sought.rule, NeverStop).value();
    EXPECT_TRUE(found.is_identified) << found.distance;
    const double error = found.window_bytes / sought.window - 1;
    EXPECT_NEAR(error, 0, 0.2) << found.window_bytes << " for " << sought.window;
    EXPECT_LE(found.lower_bytes, found.window_bytes);
    EXPECT_GE(found.upper_bytes, found.window_bytes);
    worst = std::max(worst, static_cast<int>(std::ceil(1000 * std::abs(error))));
  }
  std::printf("noise %.0f %%: the worst of 60 windows found is off by %.1f %%\n",
              100 * GetParam().noise, 0.1 * worst);
}

INSTANTIATE_TEST_SUITE_P(NoiseAndRules, WindowSearchTest,
                         ::testing::Values(Sought{.noise = 0}, Sought{.noise = 0.01},
                                           Sought{.noise = 0.02}, Sought{.noise = 0.05},
                                           Sought{.noise = 0.02,
                                                  .rule = QuantumRule::kWindowAndMore},
                                           Sought{.noise = 0, .rule = QuantumRule::kSame},
                                           Sought{.noise = 0.02, .rule = QuantumRule::kSame}));

TEST(WindowSearchTest, WithoutAWindowThereIsNoneToFind) {
  for (uint64_t seed = 1; seed <= testing::Repetitions(60u); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random({seed, 5});
    const std::vector<StreamRequest> requests = Network(random);
    const std::vector<RecordedPhase> phases =
        Recorded({.noise = 0.01 * static_cast<double>(seed % 6)}, requests, random);
    const WindowEstimate found =
        FindWindow(phases, {.bytes_per_second = 1e9}, QuantumRule::kRest, NeverStop).value();
    EXPECT_FALSE(found.is_identified) << found.window_bytes << " at " << found.distance;
    EXPECT_EQ(found.window_bytes, 0);
    EXPECT_EQ(found.upper_bytes, Largest(requests));
    EXPECT_GT(found.lower_bytes, 0.8 * Largest(requests));
  }
}

TEST(WindowSearchTest, AWindowThatNoTensorExceedsCannotBeTold) {
  Random random({9});
  const std::vector<StreamRequest> requests = Network(random);
  const std::vector<RecordedPhase> phases =
      Recorded({.window = Largest(requests)}, requests, random);
  const WindowEstimate found =
      FindWindow(phases, {.bytes_per_second = 1e9}, QuantumRule::kRest, NeverStop).value();
  EXPECT_FALSE(found.is_identified);
  EXPECT_EQ(found.largest_bytes, Largest(requests));
}

TEST(WindowSearchTest, ARuleSaysWhatLaterServicesCarry) {
  EXPECT_EQ(WithWindow({}, 5, QuantumRule::kRest).quantum_bytes, 0);
  EXPECT_EQ(WithWindow({}, 5, QuantumRule::kWindowAndMore).quantum_bytes,
            5 + kQuantumBeyondWindowBytes);
  EXPECT_EQ(WithWindow({}, 5, QuantumRule::kSame).quantum_bytes, 5);
  EXPECT_EQ(WithWindow({}, 5, QuantumRule::kSame).first_bytes, 5);
  EXPECT_EQ(WithWindow({}, 0, QuantumRule::kSame).quantum_bytes, 0);
}

TEST(WindowSearchTest, StopsWhenTold) {
  Random random({9});
  const std::vector<RecordedPhase> phases = Recorded({}, Network(random), random);
  EXPECT_EQ(FindWindow(phases, {.bytes_per_second = 1e9}, QuantumRule::kRest,
                       [] { return absl::CancelledError(); })
                .status()
                .code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace stepcast::link_replay_test
