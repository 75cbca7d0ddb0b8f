// The search for a choice of workers and servers, against trying every one of them.
//
// By default one model and short runs; with STEPCAST_EXHAUSTIVE=full four, 32 x 4 choices and
// longer runs, which takes half an hour.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/stop_check.h"
#include "core/importing/layers/layer_profile.h"
#include "core/recommend/recommendation.h"
#include "core/zoo/model_zoo.h"
#include "tests/core/predict/example_profiles.h"
#include "tests/support/recorded_data.h"
#include "tests/support/repetitions.h"

namespace stepcast::exhaustive_comparison_test {
namespace {

// Values closer than this, as a share, are as good.
constexpr double kAsGood = 0.001;

constexpr int32_t kWorkers = testing::kSanitized ? 6 : 16;

bool IsFull() {
  const char* const asked = std::getenv("STEPCAST_EXHAUSTIVE");
  return asked != nullptr && std::string_view(asked) == "full";
}

struct Effort {
  int64_t searched = 0;  // runs
  int64_t exhaustive = 0;
  size_t choices_tried = 0;
  size_t choices = 0;
  double worst = 0;  // largest share by which a chosen value was below the best one

  void Add(const Effort& other) {
    searched += other.searched;
    exhaustive += other.exhaustive;
    choices_tried += other.choices_tried;
    choices += other.choices;
    worst = std::max(worst, other.worst);
  }

  void Print(const std::string& name) const {
    std::printf(
        "%-24s %6ld of %6ld runs (%4.1f %%), %4zu of %4zu choices, at most %.3f %% below the "
        "best\n",
        name.c_str(), static_cast<long>(searched), static_cast<long>(exhaustive),
        100.0 * static_cast<double>(searched) / static_cast<double>(exhaustive), choices_tried,
        choices, 100 * worst);
  }
};

// One profile's choices, all of them simulated once.
class Exhaustive {
 public:
  Exhaustive(const Profile& profile, const RecommendationDraft& draft) : profile_(profile) {
    RecommendationDraft any = draft;
    any.objective = Objective::kMaxThroughput;
    const RecommendationQuery query = ResolveRecommendation(profile, any).value();
    ThroughputQuery all{.options = query.options};
    for (const Scenario& servers : query.server_choices) {
      for (int32_t workers = query.min_workers; workers <= query.max_workers; ++workers) {
        all.scenarios.push_back(servers);
        all.scenarios.back().workers = workers;
      }
    }
    answer_ = PredictThroughput(profile, all, NeverStop).value();
  }

  void Compare(const RecommendationDraft& draft, Effort& effort) const {
    const RecommendationQuery query = ResolveRecommendation(profile_, draft).value();
    const Recommendation found = RecommendWorkers(profile_, query, NeverStop).value();
    const Weighing weighing(query);
    const auto score_of = [&](const Prediction& p, double examples_per_second) {
      return weighing.ScoreOf(
          {p.scenario.workers, p.scenario.servers().servers},
          {.examples_per_second = examples_per_second,
           .one_worker_examples_per_second = p.examples_per_second / p.speedup});
    };
    const Prediction* best = nullptr;
    for (const Prediction& p : answer_.predictions) {
      if (best == nullptr ||
          score_of(p, p.examples_per_second) > score_of(*best, best->examples_per_second))
        best = &p;
    }
    const Score best_score = score_of(*best, best->examples_per_second);
    effort.searched += found.simulation.runs;
    effort.exhaustive += answer_.simulation.runs;
    effort.choices_tried += found.frontier.size();
    effort.choices += answer_.predictions.size();
    ASSERT_EQ(found.workers == 0, best_score.miss > 0) << found.reason << found.infeasible_reason;
    const Prediction& chosen = found.workers == 0 ? found.nearest->prediction : *found.prediction;
    const Score chosen_score = score_of(chosen, chosen.examples_per_second);
    if (found.workers == 0) {
      EXPECT_NEAR(chosen_score.miss, best_score.miss, kAsGood * (1 + best_score.miss))
          << found.infeasible_reason;
      return;
    }
    effort.worst = std::max(effort.worst, 1 - chosen_score.value / best_score.value);
    const double highest = score_of(chosen, chosen.confidence_interval.upper).value;
    const double lowest = score_of(*best, best->confidence_interval.lower).value;
    EXPECT_GE(highest, (1 - kAsGood) * lowest)
        << found.reason << "\nbest: " << best->scenario.workers << " workers, "
        << best->scenario.servers().servers << " servers, " << best->examples_per_second;
  }

 private:
  const Profile& profile_;
  ThroughputAnswer answer_;
};

RecommendationDraft DraftFor(int32_t workers, int32_t servers, int32_t steps) {
  RecommendationDraft draft{.options = {.steps_per_worker = steps},
                            .max_workers = workers,
                            .prices = MachinePrices{.worker_hour = 3, .parameter_server_hour = 1}};
  if (servers > 1) draft.max_parameter_servers = servers;
  return draft;
}

// Each objective, with what else may be asked beside it.
std::vector<RecommendationDraft> Questions(const RecommendationDraft& base) {
  std::vector<RecommendationDraft> questions;
  for (const Objective objective :
       {Objective::kMaxThroughput, Objective::kKnee, Objective::kMinCost, Objective::kMinTime}) {
    questions.push_back(base);
    questions.back().objective = objective;
  }
  questions.push_back(base);
  questions.back().min_scaling_efficiency = 0.7;
  questions.back().objective = Objective::kMaxThroughput;
  questions.push_back(base);
  questions.back().objective = Objective::kMinTime;
  questions.back().examples = 20'000;
  questions.back().budget = 2;
  questions.back().current = CurrentAllocation{.workers = 3, .rescale_seconds = 10};
  return questions;
}

void CompareEveryQuestion(const std::string& name, const Profile& profile,
                          const RecommendationDraft& base, Effort& total) {
  SCOPED_TRACE(name);
  const Exhaustive exhaustive(profile, base);
  Effort effort;
  for (const RecommendationDraft& question : Questions(base)) {
    SCOPED_TRACE(::testing::Message() << "objective " << static_cast<int>(question.objective));
    exhaustive.Compare(question, effort);
  }
  effort.Print(name);
  total.Add(effort);
}

TEST(ExhaustiveComparisonTest, ZooModels) {
  std::vector<std::string> models = {"alexnet"};
  if (IsFull()) models = {"alexnet", "vgg16", "googlenet", "resnet50"};
  Effort total;
  for (const std::string& model : models) {
    for (const int gigabit : {10, 40}) {
      for (const double variation : {0.0, 0.1}) {
        const Profile profile =
            BuildZooProfile(model, {.platform = {.bandwidth_bytes_per_second = gigabit * 125e6},
                                    .variation = {.own = variation}})
                .value();
        const std::string name =
            absl::StrCat(model, " ", gigabit, " Gbit/s", variation > 0 ? " varied" : "");
        CompareEveryQuestion(name, profile,
                             IsFull() ? DraftFor(32, 4, 150) : DraftFor(kWorkers, 2, 30), total);
      }
    }
  }
  total.Print("all");
  STEPCAST_SKIP_SHARES_UNDER_SANITIZERS();
  // Of 32 choices a third or so is tried, and all of those are run in full.
  EXPECT_LE(5 * total.searched, 2 * total.exhaustive);
}

TEST(ExhaustiveComparisonTest, RandomJobs) {
  Effort total;
  for (uint64_t seed = 0; seed < (IsFull() ? 100u : testing::Repetitions(10u)); ++seed) {
    const Profile profile = testing::NetworkProfile(
        seed, {.layers = 5, .steps = seed % 2 == 0 ? 4 : 1, .downloads_reversed = seed % 3 == 0});
    CompareEveryQuestion(absl::StrCat("seed ", seed), profile,
                         IsFull() ? DraftFor(64, 1, 200) : DraftFor(2 * kWorkers, 1, 100), total);
  }
  total.Print("all");
  STEPCAST_SKIP_SHARES_UNDER_SANITIZERS();
  // A third is tried; what would help those that are told takes runs of its own, of whose changes
  // some are run in full.
  EXPECT_LE(100 * total.searched, 36 * total.exhaustive);
}

TEST(ExhaustiveComparisonTest, MeasuredLayerProfiles) {
  Effort total;
  int found = 0;
  for (const char* const model : {"alexnet", "vgg16", "resnet18", "resnet50"}) {
    const std::filesystem::path file =
        testing::RecordedDataFolder() / "layer_profiles" / (std::string(model) + ".graph.txt");
    if (!std::filesystem::exists(file)) continue;
    ++found;
    std::ifstream stream(file, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    const Profile profile =
        ImportLayerProfile(
            text,
            {.model = model, .batch_size = 64, .platform = {.bandwidth_bytes_per_second = 1.25e9}})
            .value()
            .profile;
    CompareEveryQuestion(model, profile,
                         IsFull() ? DraftFor(32, 4, 150) : DraftFor(kWorkers, 2, 30), total);
  }
  if (found == 0)
    GTEST_SKIP()
        << "no layer profiles; set STEPCAST_SHARED_DATA to the folder that has layer_profiles";
  total.Print("all");
  STEPCAST_SKIP_SHARES_UNDER_SANITIZERS();
  EXPECT_LE(3 * total.searched, total.exhaustive);
}

}  // namespace
}  // namespace stepcast::exhaustive_comparison_test
