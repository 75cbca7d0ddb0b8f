#include "core/calibrate/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "tests/core/calibrate/streams.h"
#include "tests/support/profile_json.h"
#include "tests/support/repetitions.h"

namespace stepcast::calibration_test {
namespace {

using ::testing::AnyOf;
using testing::EngineEnds;
using testing::ProfileOf;
using testing::StreamRequest;

constexpr double kLevel = 0.95;

Calibration Calibrated(const Profile& profile) {
  absl::StatusOr<Calibration> calibration = Calibrate(profile, kLevel, NeverStop);
  EXPECT_TRUE(calibration.ok()) << calibration.status();
  return *std::move(calibration);
}

const DisciplineErrors& Of(const LinkCalibration& link, Discipline discipline) {
  return link.disciplines.at(static_cast<size_t>(discipline));
}

// 8 steps of one network whose requests come in another order each, as the engine ends them, 1 %
// off; with ties all are requested at once.
Profile Recorded(const ScenarioDraft& scenario, Random& random, bool has_ties) {
  std::vector<StreamRequest> network(20);
  for (StreamRequest& request : network)
    request.size_bytes = static_cast<int64_t>(1000 * std::exp2(8 * random.Unit()));
  for (size_t i = 0; i < 3; ++i)
    network[6 * i].size_bytes = 1'000'000 + static_cast<int64_t>(random.Below(4'000'000));
  std::vector<std::vector<StreamRequest>> steps;
  for (int s = 0; s < 8; ++s) {
    for (StreamRequest& request : network)
      request.start_ns = has_ties ? 0 : static_cast<int64_t>(random.Below(100'000));
    std::vector<size_t> order(network.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return network[a].start_ns < network[b].start_ns ||
             (network[a].start_ns == network[b].start_ns && a < b);
    });
    std::vector<StreamRequest> sorted;
    sorted.reserve(order.size());
    for (const size_t i : order) sorted.push_back(network[i]);
    const std::vector<double> ends = EngineEnds(sorted, scenario, TransferOrder::kGraph);
    std::vector<StreamRequest>& step = steps.emplace_back(network);
    for (size_t i = 0; i < order.size(); ++i) {
      const auto start = static_cast<double>(sorted[i].start_ns);
      step[order[i]].end_ns =
          static_cast<int64_t>(start + (ends[i] - start) * (1 + 0.01 * random.Normal()));
    }
  }
  return ProfileOf(steps, 0.8e9);
}

TEST(CalibrationTest, SaysHowTheRecordedLinkServedItsStreams) {
  for (uint64_t seed = 1; seed <= testing::Repetitions(40u); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random({seed});
    const bool has_ties = seed % 2 == 0;
    const Calibration whole = Calibrated(Recorded(
        {.communication = ParameterServersDraft{.multiplexing = WholeStream{}}}, random, has_ties));
    EXPECT_EQ(whole.downlink.nearest, Discipline::kWholeStream);
    EXPECT_FALSE(whole.downlink.window.is_identified);
    EXPECT_LT(Of(whole.downlink, Discipline::kWholeStream).errors.median, 0.02);
    EXPECT_NEAR(whole.downlink.bandwidth.bytes_per_second.value / 1e9, 1, 0.02);

    const Calibration window = Calibrated(Recorded(
        {.communication = ParameterServersDraft{.multiplexing = WindowDraft{.bytes = 300'000}}},
        random, has_ties));
    EXPECT_EQ(window.downlink.nearest, Discipline::kWindow);
    EXPECT_TRUE(window.downlink.window.is_identified);
    EXPECT_NEAR(window.downlink.window.window_bytes / 300'000, 1, 0.2);
    EXPECT_LT(Of(window.downlink, Discipline::kWindow).errors.median, 0.02);
    // The profile says 0.8e9 and no window.
    EXPECT_GT(Of(window.downlink, Discipline::kProfile).errors.median, 0.1);

    const Calibration quanta = Calibrated(
        Recorded({.communication = ParameterServersDraft{.multiplexing = RoundRobinDraft{}}},
                 random, has_ties));
    // A window of 64 KiB bounded by itself and 1 MiB is nearly the same.
    EXPECT_THAT(quanta.downlink.nearest,
                AnyOf(Discipline::kRoundRobin, Discipline::kBoundedWindow));
    EXPECT_LT(Of(quanta.downlink, Discipline::kRoundRobin).errors.median, 0.02);
  }
}

TEST(CalibrationTest, ADirectionWithoutTransfersAndSeveralServersAreNotGuessedAt) {
  const Profile one = ProfileOf({{{0, 1000, 1000}}}, 1e9);
  EXPECT_EQ(Calibrated(one).uplink.unavailable_reason, "no transfer was recorded to take any time");
  EXPECT_EQ(Calibrated(one).downlink.unavailable_reason, "");
  ProfileDraft draft = one.content();
  draft.parameter_servers = 2;
  EXPECT_EQ(Calibrated(Profile::Create(std::move(draft)).value()).downlink.unavailable_reason,
            "2 servers shared the worker's link");
}

TEST(CalibrationTest, StopsWhenTold) {
  const Profile one = ProfileOf({{{0, 1000, 1000}}}, 1e9);
  int checks = 0;
  // Wherever it is told.
  for (int last = 0; last < 1000; ++last) {
    checks = 0;
    const absl::Status status =
        Calibrate(one, kLevel, [&] {
          return ++checks > last ? absl::CancelledError() : absl::OkStatus();
        }).status();
    if (status.ok()) break;
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  }
  EXPECT_GT(checks, 10);
}

void PrintErrors(const char* name, const EndTimeErrors& errors) {
  std::printf("    %-22s average %6.2f %%  median %6.2f %%  95th %6.2f %%  maximum %7.2f %%\n",
              name, 100 * errors.average, 100 * errors.median, 100 * errors.p95,
              100 * errors.maximum);
}

// Recordings of a real parameter server whose tensors are all under gRPC's first window of 4 MiB.
class TestbedCalibrationTest : public ::testing::TestWithParam<const char*> {};

TEST_P(TestbedCalibrationTest, TheModelExplainsHalfOfTheEndsToTwoPercent) {
  const std::string path =
      std::string(STEPCAST_SOURCE_DIR) + "/tests/data/testbed/" + GetParam() + ".profile.json";
  const Profile profile =
      Profile::Create(testing::ProfileFromJson(testing::ReadJsonFile(path))).value();
  const Calibration calibration = Calibrated(profile);
  for (const LinkCalibration* link : {&calibration.downlink, &calibration.uplink}) {
    const PayloadBandwidth& bandwidth = link->bandwidth;
    std::printf("%s %s: %.1f MB/s (%.1f to %.1f), start %.0f us (%.0f to %.0f)\n", GetParam(),
                std::string(ResourceName(link->direction)).c_str(),
                1e-6 * bandwidth.bytes_per_second.value, 1e-6 * bandwidth.bytes_per_second.lower,
                1e-6 * bandwidth.bytes_per_second.upper, 1e6 * bandwidth.start_seconds.value,
                1e6 * bandwidth.start_seconds.lower, 1e6 * bandwidth.start_seconds.upper);
    PrintErrors("profile", Of(*link, Discipline::kProfile).errors);
    PrintErrors("whole stream", Of(*link, Discipline::kWholeStream).errors);
    PrintErrors("first come, with start", link->with_start);
    PrintErrors("round robin", Of(*link, Discipline::kRoundRobin).errors);
    EXPECT_LT(Of(*link, Discipline::kProfile).errors.median, 0.02);
    EXPECT_EQ(link->nearest, Discipline::kWholeStream);
    EXPECT_LT(link->with_start.median, 0.0125);
    EXPECT_FALSE(link->window.is_identified);
    EXPECT_GT(link->window.lower_bytes, 0.95 * link->window.largest_bytes);
    EXPECT_NEAR(bandwidth.bytes_per_second.value / profile.platform().bandwidth_bytes_per_second, 1,
                0.01);
  }
  EXPECT_LE(calibration.clocks.impossible_orders(), 1);
  EXPECT_EQ(calibration.clocks.server_ahead_ns(), 0);
}

INSTANTIATE_TEST_SUITE_P(Testbed, TestbedCalibrationTest,
                         ::testing::Values("alexnet_64", "vgg11_128", "resnet50_16"));

}  // namespace
}  // namespace stepcast::calibration_test
