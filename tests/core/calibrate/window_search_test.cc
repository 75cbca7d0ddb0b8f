#include "core/calibrate/window_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "tests/core/calibrate/streams.h"
#include "tests/support/repetitions.h"

namespace stepcast::window_search_test {
namespace {

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
}  // namespace stepcast::window_search_test
