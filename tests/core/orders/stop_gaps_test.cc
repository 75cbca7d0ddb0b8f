// Work between two questions whether to stop, on a large graph, in passes over that graph.
//
// The engine's blocks are not counted, the words that it moves are: its questions within a run are
// those of simulation_limits_test.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/model/made_steps.h"
#include "core/model/scenario.h"
#include "core/orders/least_step.h"
#include "core/orders/order_search.h"
#include "core/orders/transfer_graph.h"
#include "core/orders/transfer_ranks.h"
#include "tests/support/work_count.h"

namespace stepcast::stop_gaps_test {
namespace {

constexpr int32_t kLayers = 12'000;
// Passes over the graph between two questions: making a list of it, or following it once, is one or
// two.
constexpr double kMostPasses = 3;

// Layers that each wait for the one before and for two others.
Profile LargeProfile() {
  Random random({1});
  std::vector<TrainingLayer> layers;
  for (int32_t i = 0; i < kLayers; ++i) {
    TrainingLayer layer{.name = std::to_string(i)};
    if (i > 0) layer.inputs.push_back(i - 1);
    for (int k = 0; k < 2 && i > 1; ++k)
      layer.inputs.push_back(static_cast<int32_t>(random.Below(static_cast<uint64_t>(i - 1))));
    std::sort(layer.inputs.begin(), layer.inputs.end());
    layer.inputs.erase(std::unique(layer.inputs.begin(), layer.inputs.end()), layer.inputs.end());
    layer.parameters.push_back(
        {.name = layer.name, .size_bytes = static_cast<int64_t>(50'000 + random.Below(300'000))});
    layer.forward_ns = static_cast<int64_t>(20'000 + random.Below(120'000));
    layer.backward_ns = static_cast<int64_t>(40'000 + random.Below(240'000));
    layers.push_back(std::move(layer));
  }
  TrainingGraph graph = BuildTrainingGraph(layers);
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1.25e9}};
  draft.steps = MakeSteps(graph.operations, graph.durations_ns, draft.platform,
                          {.own = 0.1, .steps = 2, .seed = 1});
  draft.operations = std::move(graph.operations);
  return Profile::Create(std::move(draft)).value();
}

class StopGapsTest : public ::testing::Test {
 protected:
  StopGapsTest()
      : profile_(LargeProfile()),
        scenario_(ResolveScenario(profile_, {}).value()),
        step_(LeastStep::Build(profile_, scenario_).value()) {}

  // A list of all operations and dependencies, sorted by what waits for what.
  int64_t WorkOfAPass() const {
    const Program& graph = step_.graph();
    const int64_t begin = WorkSoFar();
    std::vector<TransferGraph::Operation> operations(Index(graph.size()));
    std::vector<TransferGraph::Dependency> dependencies;
    for (OpIndex op = 0; op < graph.size(); ++op) {
      for (const OpIndex after : graph.dependents(op))
        dependencies.push_back({.before = op, .after = after});
    }
    const TransferGraph list(std::move(operations), dependencies);
    EXPECT_EQ(list.size(), graph.size());
    return WorkSoFar() - begin;
  }

  // The most work without a question, in passes.
  double MostPasses(const std::function<void(StopCheck)>& compute) const {
    int64_t most = 0;
    int64_t asked = 0;
    int64_t last = WorkSoFar();
    const auto see = [&] {
      const int64_t now = WorkSoFar();
      most = std::max(most, now - last);
      last = now;
    };
    compute([&] {
      ++asked;
      see();
      return absl::OkStatus();
    });
    see();
    EXPECT_GT(asked, 0);
    const double passes = static_cast<double>(most) / static_cast<double>(WorkOfAPass());
    std::cout << asked << " questions, at most " << passes << " passes apart\n";
    return passes;
  }

  const Profile profile_;
  const Scenario scenario_;
  const LeastStep step_;
};

TEST_F(StopGapsTest, BoundsAskAfterAFewPassesAtMost) {
  EXPECT_LE(MostPasses([&](StopCheck stop) { ASSERT_TRUE(LeastMakespanOf(step_, stop).ok()); }),
            kMostPasses);
}

TEST_F(StopGapsTest, RanksAskAfterAFewPassesAtMost) {
  for (const OrderMethod method : {OrderMethod::kTic, OrderMethod::kReverse, OrderMethod::kRandom,
                                   OrderMethod::kRecorded, OrderMethod::kGraph}) {
    EXPECT_LE(
        MostPasses([&](StopCheck stop) {
          ASSERT_TRUE(stop().ok());
          ASSERT_TRUE(DownloadRanks(method, profile_, scenario_, step_.graph(), 1, stop).ok());
        }),
        kMostPasses)
        << static_cast<int>(method);
  }
}

TEST_F(StopGapsTest, TheSearchAsksAfterAFewPassesAtMost) {
  const auto search = [&](StopCheck stop) {
    // Its starts, and some orders more.
    int64_t asked = 0;
    const auto search_stop = [&] {
      const absl::Status status = stop();
      return ++asked > 40 ? TimeBudgetSpent() : status;
    };
    ASSERT_TRUE(SearchRanks(profile_, scenario_, step_, {.seed = 1}, stop, search_stop).ok());
    EXPECT_GT(asked, 40);
  };
  EXPECT_LE(MostPasses(search), kMostPasses);
}

TEST_F(StopGapsTest, AStepAsksAfterAFewPassesAtMost) {
  std::vector<int32_t> ranks =
      DownloadRanks(OrderMethod::kReverse, profile_, scenario_, step_.graph(), 1, NeverStop)
          .value();
  EXPECT_LE(MostPasses([&](StopCheck stop) { ASSERT_TRUE(step_.Makespan(ranks, stop).ok()); }),
            kMostPasses);
}

}  // namespace
}  // namespace stepcast::stop_gaps_test
