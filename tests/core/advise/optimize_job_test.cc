#include "core/advise/optimize_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/zoo/model_zoo.h"
#include "tests/core/advise/chain_job.h"

namespace stepcast::optimize_job_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Profile Zoo(const char* model, int32_t batch = 32) {
  return BuildZooProfile(model, {.batch_size = batch,
                                 .platform = {.bandwidth_bytes_per_second = 1.25e9},
                                 .variation = {.own = 0.05, .common = 0.05},
                                 .communication = ZooCommunication::kAllReduce})
      .value();
}

StrategyDraft DraftOf(int32_t workers, double latency) {
  return {.scenario = RingOf(workers, latency),
          .options = {.steps_per_worker = 40, .warmup_steps = 5, .replications = 3}};
}

StrategyAnswer Optimized(const Profile& profile, const StrategyDraft& draft) {
  const absl::StatusOr<StrategyQuery> query = ResolveStrategies(profile, draft);
  EXPECT_TRUE(query.ok()) << query.status();
  absl::StatusOr<StrategyAnswer> answer = OptimizeJob(profile, *query, NeverStop);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.ok() ? *std::move(answer) : StrategyAnswer{};
}

const ComparedStrategy& Compared(const StrategyAnswer& answer, const std::string& name) {
  for (const ComparedStrategy& compared : answer.compared) {
    if (compared.name == name) return compared;
  }
  ADD_FAILURE() << "nothing is named " << name;
  return answer.compared.front();
}

TEST(OptimizeJobTest, IsNeverWorseThanAnyDefaultOnTheZoo) {
  for (const char* model : {"resnet18", "resnet50", "vgg16", "inception_v3", "bert_base"}) {
    for (const bool fuses : {false, true}) {
      const Profile profile = Zoo(model);
      StrategyDraft draft = DraftOf(8, 2e-5);
      if (fuses) draft.fused_share = kDproFusedShare;
      const StrategyAnswer answer = Optimized(profile, draft);
      const double found = answer.prediction.examples_per_second;
      for (const ComparedStrategy& other : answer.compared)
        EXPECT_GE(found, other.examples_per_second * (1 - 1e-9)) << model << other.name;
      for (const char* name : {"AS_RECORDED", "DDP_BUCKETS", "HOROVOD", "HOROVOD_64MB_5MS",
                               "HOROVOD_128MB_1MS", "MG_WFBP", "NO_FUSION"})
        EXPECT_FALSE(Compared(answer, name).rests_on_share) << model << name;
      EXPECT_EQ(answer.rests_on_share, fuses) << model;
      EXPECT_GE(found, answer.as_recorded.examples_per_second);
      std::printf(
          "%-13s %-9s as recorded %7.1f, ddp %7.1f, horovod %7.1f, mg-wfbp %7.1f, none "
          "%7.1f, found %7.1f examples/s, %d replays\n",
          model, fuses ? "fused .8" : "", answer.as_recorded.examples_per_second,
          Compared(answer, "DDP_BUCKETS").examples_per_second,
          Compared(answer, "HOROVOD").examples_per_second,
          Compared(answer, "MG_WFBP").examples_per_second,
          Compared(answer, "NO_FUSION").examples_per_second, found, answer.search.replays);
      if (fuses) {
        EXPECT_FALSE(answer.lower_bound_seconds.has_value());
        EXPECT_FALSE(answer.why_no_bound.empty());
        EXPECT_FALSE(answer.fused.empty());
        EXPECT_TRUE(Compared(answer, "XLA_FUSE_ALL").rests_on_share);
        EXPECT_THAT(answer.reason, HasSubstr("it rests on the assumed share of 0.8"));
      } else {
        ASSERT_TRUE(answer.lower_bound_seconds.has_value());
        EXPECT_GE(answer.prediction.step_time.mean, *answer.lower_bound_seconds * (1 - 1e-9));
        EXPECT_TRUE(answer.fused.empty());
      }
      // Every gradient is sent once.
      std::set<std::string> names;
      for (const NamedTensors& tensors : answer.tensors)
        names.insert(tensors.operations.begin(), tensors.operations.end());
      if (!answer.keeps_as_recorded) {
        EXPECT_EQ(names.size(), NothingFused(profile).tensors.size()) << model;
      }
    }
  }
}

// dPRO, 7.1: tensors are fused in intervals of 5 ms, up to 64 MB.
TEST(OptimizeJobTest, HorovodsOwnSettingsAreJudgedAsTheScenariosAre) {
  const Profile profile = Zoo("resnet50");
  const StrategyAnswer answer = Optimized(profile, DraftOf(8, 2e-5));
  const auto asked = [&](int64_t bytes, double seconds) {
    StrategyDraft draft = DraftOf(8, 2e-5);
    std::get<AllReduceDraft>(draft.scenario.communication).fusion =
        HorovodDraft{.fusion_bytes = bytes, .cycle_seconds = seconds};
    return Optimized(profile, draft).as_recorded.examples_per_second;
  };
  EXPECT_DOUBLE_EQ(Compared(answer, "HOROVOD_64MB_5MS").examples_per_second,
                   asked(64 << 20, 0.005));
  EXPECT_DOUBLE_EQ(Compared(answer, "HOROVOD_128MB_1MS").examples_per_second,
                   asked(128 << 20, 0.001));
  EXPECT_LT(Compared(answer, "HOROVOD_64MB_5MS").examples_per_second,
            Compared(answer, "HOROVOD_128MB_1MS").examples_per_second);
}

// dPRO, 2.2: fusing all of the backward pass delays what could have been sent.
TEST(OptimizeJobTest, FusingEverythingHidesNoGradientBehindComputation) {
  const Profile profile = Zoo("vgg16");
  StrategyDraft draft = DraftOf(8, 2e-5);
  draft.fused_share = 1;  // so fusing saves nothing
  const StrategyAnswer answer = Optimized(profile, draft);
  EXPECT_LT(Compared(answer, "XLA_FUSE_ALL").examples_per_second,
            Compared(answer, "NO_FUSION").examples_per_second);
  // A table that does not name all that could be fused does not say what that costs.
  StrategyDraft measured = DraftOf(8, 2e-5);
  measured.fused_costs = {
      {.operations = {"forward/features.0", "forward/features.1"}, .seconds = 1e-6}};
  const StrategyAnswer by_table = Optimized(profile, measured);
  for (const ComparedStrategy& other : by_table.compared) EXPECT_NE(other.name, "XLA_FUSE_ALL");
  EXPECT_FALSE(by_table.rests_on_share);
}

TEST(OptimizeJobTest, TheSameQuestionHasTheSameAnswer) {
  const Profile profile = Zoo("resnet18");
  StrategyDraft draft = DraftOf(4, 2e-5);
  draft.fused_share = 0.8;
  const StrategyAnswer one = Optimized(profile, draft);
  const StrategyAnswer other = Optimized(profile, draft);
  EXPECT_EQ(one.prediction.examples_per_second, other.prediction.examples_per_second);
  EXPECT_EQ(one.reason, other.reason);
  ASSERT_EQ(one.tensors.size(), other.tensors.size());
  for (size_t i = 0; i < one.tensors.size(); ++i)
    EXPECT_EQ(one.tensors[i].operations, other.tensors[i].operations);
}

// Gains and settling are of the same pairs of runs, with whatever is compared.
TEST(OptimizeJobTest, HowSureItIsAgreesWithTheGainsThatAreTold) {
  for (const char* model : {"resnet50", "vgg16", "resnet18"}) {
    SCOPED_TRACE(model);
    const StrategyAnswer answer = Optimized(Zoo(model), DraftOf(8, 2e-5));
    double best = 0;
    for (const ComparedStrategy& other : answer.compared) {
      EXPECT_EQ(other.gain.confidence_interval.level, 0.95) << other.name;
      if (other.name != "FOUND") best = std::max(best, other.gain.confidence_interval.upper);
    }
    EXPECT_LT(answer.settled.expected_loss, 0.001);
    // A gain apart from all others is the best.
    if (answer.gain.confidence_interval.lower > best) {
      EXPECT_GT(answer.settled.probability_best, 0.9);
    }
  }
}

TEST(OptimizeJobTest, WhereNothingHelpsTheJobStaysAsItIs) {
  const ChainJob job{.lengths_ns = {50'000}, .gradient_bytes = {{100}}};
  const StrategyAnswer answer = Optimized(ProfileOf(job), DraftOf(2, 1e-6));
  EXPECT_TRUE(answer.keeps_as_recorded);
  EXPECT_TRUE(answer.gain.is_none);
  EXPECT_TRUE(answer.tensors.empty());
  EXPECT_THAT(answer.reason, StartsWith("no difference"));
  EXPECT_THAT(answer.cost_source, StartsWith("none is known"));
}

TEST(OptimizeJobTest, JobsWithoutGradientsOrWithOneWorkerStayAsTheyAre) {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = {{.name = "broadcast",
                       .resource = Resource::kCollective,
                       .size_bytes = 1000,
                       .collective = Collective::kBroadcast},
                      {.name = "compute", .resource = Resource::kWorker, .waiting_for = {0}},
                      {.name = "more", .resource = Resource::kWorker, .waiting_for = {1}}};
  draft.steps = {{.start_ns = {0, 0, 9000}, .end_ns = {0, 9000, 20'000}}};
  const Profile profile = Profile::Create(draft).value();
  const StrategyAnswer answer = Optimized(profile, DraftOf(3, 1e-6));
  EXPECT_TRUE(answer.keeps_as_recorded);
  const ChainJob job{.lengths_ns = {5000, 5000}, .gradient_bytes = {{100}, {100}}};
  EXPECT_TRUE(Optimized(ProfileOf(job), DraftOf(1, 1e-6)).keeps_as_recorded);
}

// Whole buckets of unknown gradients may go together, and nothing else of them.
TEST(OptimizeJobTest, BucketsOfUnknownGradientsThatGoTogetherAreTold) {
  const ChainJob job{.lengths_ns = {5000, 5000, 5000}, .gradient_bytes = {{100}, {200}, {300}}};
  const auto warned = [](const StrategyAnswer& answer) {
    return std::ranges::any_of(answer.warnings, [](const Warning& warning) {
      return warning.reason == Warning::Reason::kGradientsNotKnown;
    });
  };
  const Profile known = ProfileOf(job);
  EXPECT_FALSE(warned(Optimized(known, DraftOf(4, 1e-4))));
  ProfileDraft draft = known.content();
  draft.framework = kPytorchFramework;
  draft.buckets.emplace();
  for (Operation& operation : draft.operations) {
    if (operation.resource != Resource::kCollective) continue;
    operation.name = absl::StrCat("bucket/", draft.buckets->sizes_bytes.size());
    operation.parameter.clear();
    draft.buckets->sizes_bytes.push_back(operation.size_bytes);
  }
  const absl::StatusOr<Profile> unknown = Profile::Create(draft);
  ASSERT_TRUE(unknown.ok()) << unknown.status();
  const StrategyAnswer answer = Optimized(*unknown, DraftOf(4, 1e-4));
  EXPECT_FALSE(answer.keeps_as_recorded);
  EXPECT_TRUE(warned(answer));
  // Joining is not advised where it helps nothing.
  EXPECT_FALSE(warned(Optimized(*unknown, DraftOf(4, 0))));
}

TEST(OptimizeJobTest, SideBySideCollectivesAreCutWhereThatPays) {
  const ChainJob job{.lengths_ns = {5000, 5000}, .gradient_bytes = {{}, {60'000}}};
  StrategyDraft draft = DraftOf(4, 5e-6);
  AllReduceDraft& reduce = std::get<AllReduceDraft>(draft.scenario.communication);
  reduce.algorithm = CollectiveAlgorithm::kGloo;
  reduce.concurrent_collectives = 4;
  const StrategyAnswer answer = Optimized(ProfileOf(job), draft);
  const StrategyAnswer whole = [&] {
    StrategyDraft uncut = draft;
    uncut.max_partitions = 1;
    return Optimized(ProfileOf(job), uncut);
  }();
  EXPECT_GE(answer.prediction.examples_per_second,
            whole.prediction.examples_per_second * (1 - 1e-9));
  if (!answer.keeps_as_recorded) {
    EXPECT_GT(answer.tensors[0].partitions, 1);
    EXPECT_FALSE(answer.gain.is_none);
  }
}

TEST(OptimizeJobTest, ABudgetIsKeptByThePassThatMakesTheShorterStep) {
  const Profile profile = Zoo("resnet50");
  StrategyDraft draft = DraftOf(4, 2e-5);
  const StrategyAnswer whole = Optimized(profile, draft);
  ASSERT_TRUE(whole.memory.has_value());
  EXPECT_EQ(whole.memory->pass, MemoryPass::kNone);
  EXPECT_EQ(whole.memory->before.bytes(), whole.memory->after.bytes());
  EXPECT_FALSE(whole.memory->assumptions.empty());
  const double needed = whole.memory->before.bytes();
  draft.memory = StrategyDraft::Memory{.budget_bytes = static_cast<int64_t>(0.7 * needed)};
  const StrategyAnswer saved = Optimized(profile, draft);
  ASSERT_TRUE(saved.memory.has_value());
  EXPECT_NE(saved.memory->pass, MemoryPass::kNone);
  EXPECT_LE(saved.memory->after.bytes(), 0.7 * needed);
  ASSERT_EQ(saved.memory->tried.size(), 3U);
  EXPECT_THAT(saved.reason, HasSubstr(NameOf(saved.memory->pass)));
  EXPECT_FALSE(saved.keeps_as_recorded);
  ASSERT_TRUE(saved.prediction.memory.has_value());
  EXPECT_NEAR(saved.prediction.memory->bytes(), saved.memory->after.bytes(), 1000);
  EXPECT_THAT(saved.memory->tried[0].recomputes, HasSubstr("cheap outputs"));
  EXPECT_THAT(saved.memory->tried[1].recomputes, HasSubstr("segments"));
  // Cheap outputs cost less than segments, and either less than what two halves of 0.57 do.
  EXPECT_EQ(saved.memory->pass, MemoryPass::kRecomputation);
  EXPECT_LT(saved.memory->tried[0].step_seconds, saved.memory->tried[1].step_seconds);
  EXPECT_LT(saved.memory->tried[1].step_seconds, saved.memory->tried[2].step_seconds);
  // A slow half leaves recomputation.
  draft.memory->half_batch_share = 1;
  const StrategyAnswer again = Optimized(profile, draft);
  EXPECT_EQ(again.memory->pass, MemoryPass::kRecomputation);
  EXPECT_FALSE(again.memory->recomputed.empty());
  // Where cheap outputs do not save as much, free halves win over segments.
  const Profile bert = Zoo("bert_base");
  draft.memory = StrategyDraft::Memory{
      .budget_bytes =
          static_cast<int64_t>(0.6 * Optimized(bert, DraftOf(4, 2e-5)).memory->before.bytes()),
      .half_batch_share = 0.5};
  const StrategyAnswer halved = Optimized(bert, draft);
  EXPECT_THAT(halved.memory->tried[0].why_not, StartsWith("needs"));
  EXPECT_GT(halved.memory->tried[1].step_seconds, halved.memory->tried[2].step_seconds);
  EXPECT_EQ(halved.memory->pass, MemoryPass::kGradientAccumulation);
}

TEST(OptimizeJobTest, ABudgetOutOfReachNamesWhatIsNeeded) {
  const Profile profile = Zoo("resnet18");
  for (const int64_t budget : {int64_t{0}, int64_t{100'000'000}}) {
    StrategyDraft draft = DraftOf(2, 2e-5);
    draft.memory = StrategyDraft::Memory{.budget_bytes = budget};
    const absl::StatusOr<StrategyQuery> query = ResolveStrategies(profile, draft);
    ASSERT_TRUE(query.ok()) << query.status();
    const absl::Status status = OptimizeJob(profile, *query, NeverStop).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_EQ(DetailsOf(status).reason, "MEMORY_BUDGET_UNREACHABLE");
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("memory.budget_bytes is " + std::to_string(budget)));
    EXPECT_EQ(DetailsOf(status).metadata.at("budget_bytes"), std::to_string(budget));
  }
}

TEST(OptimizeJobTest, StopsWhenToldTo) {
  const Profile profile = Zoo("resnet50");
  const StrategyQuery query = ResolveStrategies(profile, DraftOf(8, 2e-5)).value();
  for (const int after : {1, 50, 1000}) {
    int asked = 0;
    const auto stop = [&] {
      return ++asked < after ? absl::OkStatus() : absl::CancelledError("enough");
    };
    EXPECT_EQ(OptimizeJob(profile, query, stop).status(), absl::CancelledError("enough")) << after;
    EXPECT_LE(asked, after + 20) << "it goes on after it was told";
  }
  int asked = 0;
  const auto budget = [&] { return ++asked < 3000 ? absl::OkStatus() : TimeBudgetSpent(); };
  const absl::StatusOr<StrategyAnswer> answer = OptimizeJob(profile, query, budget);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_GT(answer->prediction.examples_per_second, 0);
  EXPECT_FALSE(answer->reason.empty());
}

}  // namespace
}  // namespace stepcast::optimize_job_test
