#include "core/advise/recomputation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "core/advise/strategy_query.h"
#include "core/base/error.h"
#include "core/base/index.h"
#include "core/importing/common/byte_source.h"
#include "core/importing/pytorch/pytorch_trace.h"
#include "core/zoo/model_zoo.h"

namespace stepcast::recomputation_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int32_t kAll = 1'000'000;

struct NamedLayer {
  std::string name;
  int64_t kept_bytes = 1000;
  int64_t forward_ns = 10'000;
  bool has_gradient = true;
  int64_t output_bytes = 0;
};

// A step of layers, each undone in 10 us, whose gradients have 1000 bytes; then the optimizer.
Profile JobOf(const std::vector<NamedLayer>& layers) {
  ProfileDraft draft{.batch_size = 2, .platform = {.bandwidth_bytes_per_second = 1e9}};
  RecordedStep& step = draft.steps.emplace_back();
  int64_t now = 0;
  int32_t before = -1;
  std::vector<int32_t> all;
  const auto compute = [&](Operation operation, int64_t ns) {
    operation.resource = Resource::kWorker;
    if (before >= 0) operation.waiting_for.push_back(before);
    before = static_cast<int32_t>(draft.operations.size());
    draft.operations.push_back(std::move(operation));
    step.start_ns.push_back(now);
    now += ns;
    step.end_ns.push_back(now);
  };
  for (const NamedLayer& layer : layers) {
    compute({.name = "forward/" + layer.name,
             .kept_bytes = layer.kept_bytes,
             .output_bytes = layer.output_bytes},
            layer.forward_ns);
  }
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    compute({.name = "backward/" + layer->name}, 10'000);
    if (!layer->has_gradient) continue;
    all.push_back(static_cast<int32_t>(draft.operations.size()));
    draft.operations.push_back({.name = "all_reduce/" + layer->name,
                                .resource = Resource::kCollective,
                                .size_bytes = 1000,
                                .waiting_for = {before},
                                .collective = Collective::kAllReduce});
    step.start_ns.push_back(now);
    step.end_ns.push_back(now);
  }
  compute({.name = "optimizer", .waiting_for = all}, 10'000);
  return Profile::Create(draft).value();
}

Profile Layers(int layers) {
  std::vector<NamedLayer> all;
  for (int i = 0; i < layers; ++i) all.push_back({.name = absl::StrCat(i)});
  return JobOf(all);
}

Profile Zoo(const char* model) {
  return BuildZooProfile(model, {.batch_size = 32,
                                 .platform = {.bandwidth_bytes_per_second = 1.25e9},
                                 .variation = {.own = 0, .common = 0},
                                 .communication = ZooCommunication::kAllReduce})
      .value();
}

Profile Imported(const std::string& file) {
  const std::string path = absl::StrCat(STEPCAST_SOURCE_DIR, "/tests/data/", file);
  const std::string packed(
      std::istreambuf_iterator<char>(std::ifstream(path, std::ios::binary).rdbuf()), {});
  TextSource source(packed);
  GunzipSource trace(source,
                     {.admit = [](int64_t) { return absl::OkStatus(); },
                      .damaged = [](const std::string& why) { return absl::DataLossError(why); }});
  return ImportPyTorchTrace(trace,
                            {.recording = {.model = "m",
                                           .batch_size = 64,
                                           .platform = {.bandwidth_bytes_per_second = 1e9}}},
                            {}, NeverStop)
      .value()
      .profile;
}

MemoryModel ModelOf(const Profile& profile) {
  return ResolveStrategies(profile, {}).value().memory.value();
}

size_t PlaceOf(const Profile& profile, const std::string& name) {
  for (size_t i = 0; i < profile.operations().size(); ++i) {
    if (profile.operations()[i].name == name) return i;
  }
  ADD_FAILURE() << "no " << name;
  return 0;
}

int64_t EndOf(const Profile& profile) {
  const std::vector<int64_t>& ends = profile.steps()[0].end_ns;
  return *std::max_element(ends.begin(), ends.end());
}

// Bytes at the peak of a planned job, by going through its step: what forward and recomputed
// operations keep comes when they end, and goes when NAME has been undone.
double ReplayedPeak(const Profile& planned, const Profile& recorded) {
  const RecordedStep& step = planned.steps()[0];
  std::vector<size_t> order(planned.operations().size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return step.start_ns[a] < step.start_ns[b]; });
  std::map<std::string, double> held;
  std::vector<std::string> forward;
  double peak = 0;
  for (const size_t i : order) {
    const std::string& name = planned.operations()[i].name;
    const std::string last = name.substr(name.find('/') + 1);
    const auto kept = static_cast<double>(planned.operations()[i].kept_bytes);
    if (absl::StartsWith(name, "forward/")) forward.push_back(last);
    if (absl::StartsWith(name, "forward/") || absl::StartsWith(name, "recompute/"))
      held[last] += kept;
    if (!absl::StartsWith(name, "backward/")) continue;
    double bytes = 0;
    for (const auto& [each, of_it] : held) bytes += of_it;
    const auto gradient_of = [&](const std::string& each) {
      const Operation& made = recorded.operations()[PlaceOf(recorded, "forward/" + each)];
      return static_cast<double>(made.output_bytes > 0 ? made.output_bytes : made.kept_bytes);
    };
    const auto place = std::find(forward.begin(), forward.end(), last);
    if (place != forward.begin()) bytes += gradient_of(*(place - 1));
    peak = std::max(peak, bytes + gradient_of(last));
    held[last] = 0;
  }
  return peak;
}

TEST(RecomputationTest, ASegmentIsComputedAgainBeforeItsBackwardOperations) {
  const Profile profile = Layers(4);
  const absl::StatusOr<MemoryPlan> plan =
      Recomputation(profile, ModelOf(profile)).Plan(Recomputed::kSegments, 2);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->recomputed, ElementsAre("forward/0"));
  // The checkpoint, both outputs of the last segment and their gradients: no more than that.
  EXPECT_EQ(plan->memory.output_bytes, 1000 + 2000 + 2000);
  ASSERT_EQ(plan->profile.operations().size(), profile.operations().size() + 1);
  const size_t again = PlaceOf(plan->profile, "recompute/0");
  const size_t undone = PlaceOf(plan->profile, "backward/1");
  EXPECT_THAT(plan->profile.operations()[undone].waiting_for,
              Contains(static_cast<int32_t>(again)));
  const RecordedStep& step = plan->profile.steps()[0];
  EXPECT_EQ(step.start_ns[again], 60'000);
  EXPECT_EQ(step.start_ns[undone], 70'000);
  EXPECT_EQ(step.start_ns[PlaceOf(plan->profile, "backward/2")], 50'000) << "before, nothing moves";
  EXPECT_EQ(EndOf(plan->profile), 100'000) << "10 us later than it was";
}

// Between convolutions what is cheap, and no more.
TEST(RecomputationTest, CheapOutputsComeFromTheKeptOnesBeforeThem) {
  const Profile profile = JobOf({{"conv1", 100, 50'000},
                                 {"bn1", 100, 2000},
                                 {"relu1", 100, 1000, false},
                                 {"conv2", 300, 60'000},
                                 {"add", 300, 1000, false},
                                 {"relu2", 300, 1000, false},
                                 {"fc", 10, 5000},
                                 {"loss", 1, 1000, false}});
  const Recomputation again(profile, ModelOf(profile));
  ASSERT_EQ(again.Most(Recomputed::kCheapOutputs), 2);
  const absl::StatusOr<MemoryPlan> one = again.Plan(Recomputed::kCheapOutputs, 1);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_THAT(one->recomputed, ElementsAre("forward/relu2")) << "300 bytes in 1 us";
  const absl::StatusOr<MemoryPlan> both = again.Plan(Recomputed::kCheapOutputs, 2);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_THAT(both->recomputed, ElementsAre("forward/bn1", "forward/relu1", "forward/relu2"));
  EXPECT_EQ(EndOf(both->profile), EndOf(profile) + 4000) << "each takes as long as it did";
  // While relu2 is undone: both convolutions and the sum, itself once more, and two gradients.
  EXPECT_EQ(both->memory.output_bytes, 100 + 300 + 300 + 300 + 300 + 300);
  EXPECT_EQ(both->memory.output_bytes, ReplayedPeak(both->profile, profile));
  const RecordedStep& step = both->profile.steps()[0];
  EXPECT_EQ(step.end_ns[PlaceOf(both->profile, "recompute/relu1")],
            step.start_ns[PlaceOf(both->profile, "backward/conv2")]);
  EXPECT_THAT(both->profile.operations()[PlaceOf(both->profile, "recompute/relu1")].waiting_for,
              ElementsAre(static_cast<int32_t>(PlaceOf(both->profile, "recompute/bn1"))));
}

TEST(RecomputationTest, WhatIsCheapIsToldByItsNameElseByItsGradient) {
  for (const auto& [name, has_gradient, is_cheap] :
       {std::tuple("layer1.0.bn1", true, true), std::tuple("conv1/batch_norm", true, true),
        std::tuple("0/native_layer_norm", true, true), std::tuple("features.1", false, true),
        std::tuple("features.0", true, false), std::tuple("attention.self.scores", false, false),
        std::tuple("attention.self.softmax", false, true), std::tuple("output.add", false, false),
        std::tuple("3/addmm", true, false), std::tuple("Mixed_5b.cat", false, false),
        std::tuple("branch_pool", true, false), std::tuple("branch_pool", false, true),
        std::tuple("lm_head", false, false), std::tuple("loss", false, false)}) {
    EXPECT_EQ(IsCheapOutput(name, has_gradient), is_cheap) << name;
  }
  const Profile bert = Zoo("bert_base");
  const absl::StatusOr<MemoryPlan> plan =
      Recomputation(bert, ModelOf(bert)).Plan(Recomputed::kCheapOutputs, kAll);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->recomputed.size(), 1U + 12 * 4);
  for (const std::string& name : plan->recomputed) {
    EXPECT_TRUE(absl::StrContains(name, "LayerNorm") || absl::EndsWith(name, ".softmax") ||
                absl::EndsWith(name, ".gelu"))
        << name;
  }
}

// Every plan's peak, and what it says of its time, against a replay of the job that it makes.
TEST(RecomputationTest, ThePeakIsThatOfTheJobThatIsMade) {
  for (uint32_t seed = 1; seed <= 24; ++seed) {
    std::mt19937 random(seed);
    const auto drawn = [&random](uint32_t below) { return static_cast<int64_t>(random() % below); };
    std::vector<NamedLayer> layers;
    const int64_t count = 3 + drawn(30);
    // What a layer keeps is its output, or what it hands on is known apart.
    const bool knows_outputs = seed % 2 == 0;
    for (int64_t i = 0; i < count; ++i) {
      const bool is_cheap = drawn(2) == 0;
      layers.push_back({.name = absl::StrCat(is_cheap ? "relu" : "conv", i),
                        .kept_bytes = 1 + drawn(1000),
                        .forward_ns = 1 + drawn(10'000),
                        .has_gradient = !is_cheap,
                        .output_bytes = knows_outputs ? 1 + drawn(500) : 0});
    }
    const Profile profile = JobOf(layers);
    const Recomputation again(profile, ModelOf(profile));
    for (const auto& [what, from] :
         {std::pair(Recomputed::kCheapOutputs, 1), std::pair(Recomputed::kSegments, 2)}) {
      for (int32_t many = from; many <= again.Most(what); ++many) {
        const absl::StatusOr<MemoryPlan> plan = again.Plan(what, many);
        ASSERT_TRUE(plan.ok()) << plan.status() << seed;
        EXPECT_EQ(plan->memory.output_bytes, ReplayedPeak(plan->profile, profile))
            << "seed " << seed << ", " << plan->recomputes;
        int64_t added = 0;
        for (const std::string& name : plan->recomputed) {
          const size_t place = PlaceOf(profile, name);
          added += profile.steps()[0].end_ns[place] - profile.steps()[0].start_ns[place];
        }
        EXPECT_EQ(EndOf(plan->profile), EndOf(profile) + added) << "seed " << seed;
      }
    }
  }
}

TEST(RecomputationTest, TheFewestThatFitAreTaken) {
  const Profile profile = Zoo("resnet50");
  const MemoryModel model = ModelOf(profile);
  const Recomputation again(profile, model);
  const double whole = EstimateMemory(profile, model).bytes();
  for (const Recomputed what : {Recomputed::kCheapOutputs, Recomputed::kSegments}) {
    const absl::StatusOr<MemoryPlan> plan = again.Fitting(what, 0.8 * whole, NeverStop);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_LE(plan->memory.bytes(), 0.8 * whole);
    int32_t least = what == Recomputed::kSegments ? 2 : 1;
    while (again.Plan(what, least)->memory.bytes() > 0.8 * whole) ++least;
    EXPECT_EQ(again.Plan(what, least)->recomputed, plan->recomputed);
    // Where none fit, those of the least memory.
    const absl::StatusOr<MemoryPlan> out_of_reach = again.Fitting(what, 1, NeverStop);
    ASSERT_TRUE(out_of_reach.ok()) << out_of_reach.status();
    EXPECT_LT(out_of_reach->memory.bytes(), 0.8 * whole);
    EXPECT_EQ(again.Fitting(what, 1, [] { return absl::CancelledError("no"); }).status(),
              absl::CancelledError("no"));
  }
}

TEST(RecomputationTest, MoreSegmentsKeepLessUntilCheckpointsAreMost) {
  const Profile profile = Zoo("vgg16");
  const MemoryModel model = ModelOf(profile);
  const Recomputation again(profile, model);
  const double whole = EstimateMemory(profile, model).bytes();
  double least = whole;
  for (int32_t segments = 2; segments <= 12; ++segments) {
    const absl::StatusOr<MemoryPlan> plan = again.Plan(Recomputed::kSegments, segments);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_LT(plan->memory.bytes(), whole) << segments;
    least = std::min(least, plan->memory.bytes());
  }
  EXPECT_LT(least, 0.75 * whole);
}

TEST(RecomputationTest, WhereNothingCanBeComputedAgainItSaysWhy) {
  const auto why = [](const Profile& profile, Recomputed what) {
    const absl::Status status = Recomputation(profile, ModelOf(profile)).Plan(what, 2).status();
    EXPECT_EQ(DetailsOf(status).reason, "NOTHING_TO_RECOMPUTE");
    return std::string(status.message());
  };
  EXPECT_THAT(why(Layers(1), Recomputed::kSegments), HasSubstr("no two operations forward/NAME"));
  EXPECT_THAT(why(Layers(3), Recomputed::kCheapOutputs), HasSubstr("nothing cheap"));
}

// A recorded forward pass is known by its parts, each of which a backward operation waits for:
// they are computed again from what the part before them hands on, which is then held.
TEST(RecomputationTest, PartsOfARecordingAreComputedAgain) {
  const Profile profile = Imported("cases/activation_checkpoint/without.json.gz");
  const MemoryModel model = ModelOf(profile);
  const Recomputation again(profile, model);
  const absl::StatusOr<MemoryPlan> plan = again.Plan(Recomputed::kSegments, 3);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_GT(plan->recomputed.size(), 2U);
  EXPECT_EQ(plan->recomputed.front(), "forward/0/addmm");
  // What all parts keep, without those computed again, and with what the second segment begins
  // from: the first one's begins from the batch.
  double kept = 0;
  for (const int64_t bytes : model.kept_bytes) kept += static_cast<double>(bytes);
  double gone = 0;
  double held = 0;
  double planned = 0;
  for (const std::string& name : plan->recomputed) {
    const size_t place = PlaceOf(profile, name);
    gone += static_cast<double>(model.kept_bytes[place]);
    const auto now = static_cast<double>(plan->profile.operations()[place].kept_bytes);
    if (now > 0) {
      EXPECT_EQ(now, static_cast<double>(profile.operations()[place].output_bytes));
    }
    held += now;
  }
  EXPECT_GT(held, 0);
  EXPECT_GT(gone, 0.3 * kept);
  for (const Operation& operation : plan->profile.operations()) {
    if (absl::StartsWith(operation.name, "forward/"))
      planned += static_cast<double>(operation.kept_bytes);
  }
  EXPECT_EQ(planned, kept - gone + held);
  EXPECT_GE(plan->memory.output_bytes, planned);
  EXPECT_LT(plan->memory.output_bytes, EstimateMemory(profile, model).output_bytes);
  // An activation that keeps its output is no cheaper to compute again than to keep.
  EXPECT_EQ(again.Most(Recomputed::kCheapOutputs), 0);
  const Profile normalized = Imported("saved_tensors/residual.json.gz");
  const absl::StatusOr<MemoryPlan> cheap =
      Recomputation(normalized, ModelOf(normalized)).Plan(Recomputed::kCheapOutputs, kAll);
  ASSERT_TRUE(cheap.ok()) << cheap.status();
  EXPECT_THAT(cheap->recomputed,
              ElementsAre("forward/1/native_batch_norm", "forward/2/max_pool2d_with_indices"));
}

// The same network recorded with checkpointing keeps what hooks of autograd counted, and no more
// can be saved by computing again what already is.
TEST(RecomputationTest, ACheckpointedRecordingKeepsLess) {
  const Profile without = Imported("cases/activation_checkpoint/without.json.gz");
  const Profile with = Imported("cases/activation_checkpoint/with.json.gz");
  EXPECT_NEAR(EstimateMemory(without, ModelOf(without)).output_bytes, 747'012, 7000);
  EXPECT_NEAR(EstimateMemory(with, ModelOf(with)).output_bytes, 353'796, 3500);
}

}  // namespace
}  // namespace stepcast::recomputation_test
