#include "core/engine/phase_plan.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/engine/program.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/phase_case.h"
#include "tests/core/engine/random_case.h"

namespace stepcast::phase_plan_test {
namespace {

using testing::JobBuilder;
using testing::Resolved;

std::optional<PhasePlan> PlanOf(const JobBuilder& job, const ScenarioDraft& draft = {}) {
  const Profile profile = job.Build();
  return PhasePlan::Make(BuildProgram(profile, Resolved(profile, draft)), /*find_cut=*/true,
                         NeverStop)
      .value();
}

// Two layers forward and back.
JobBuilder Training() {
  JobBuilder job;
  const int32_t first = job.Download(100);
  const int32_t second = job.Download(200);
  const int32_t forward = job.Compute(10, {job.Compute(10, {first}), second});
  const int32_t loss = job.Compute(5, {forward});
  const int32_t back = job.Compute(10, {loss});
  job.Update(1, {job.Upload(200, {back})});
  job.Update(1, {job.Upload(100, {job.Compute(10, {back})})});
  return job;
}

TEST(PhasePlanTest, ATrainingStepRunsInPhasesAndIsCutAtTheFirstOperationThatAllGoesThrough) {
  const std::optional<PhasePlan> plan = PlanOf(Training());
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->downloads, (std::vector<OpIndex>{0, 1}));
  EXPECT_EQ(plan->computations, (std::vector<OpIndex>{2}));
  EXPECT_EQ(plan->after_cut.front(),
            3);  // the second layer's forward computation is the first with all before it
  EXPECT_EQ(plan->uploads_to[0].size(), 2U);
  EXPECT_EQ(plan->updates_on[0].size(), 2U);
}

TEST(PhasePlanTest, WhatComesBackIntoTheStepHasNoPlan) {
  JobBuilder download_waits = Training();
  download_waits.Download(100, {2});
  EXPECT_FALSE(PlanOf(download_waits).has_value());
  JobBuilder computation_waits_for_upload = Training();
  computation_waits_for_upload.Compute(10, {6});
  EXPECT_FALSE(PlanOf(computation_waits_for_upload).has_value());
  JobBuilder update_at_start = Training();
  update_at_start.Update(10);
  EXPECT_FALSE(PlanOf(update_at_start).has_value());
  JobBuilder early_upload = Training();
  early_upload.Upload(10, {2});
  EXPECT_FALSE(PlanOf(early_upload).has_value());
  JobBuilder nothing_to_download;
  nothing_to_download.Upload(10, {nothing_to_download.Compute(10)});
  EXPECT_FALSE(PlanOf(nothing_to_download).has_value());
}

TEST(PhasePlanTest, StoppedDownloadsFollowTurnByTurn) {
  JobBuilder job;
  const int32_t large = job.Download(250);
  const int32_t small = job.Download(100);
  job.Compute(10, {large, small});
  const Profile profile = job.Build();
  const Program program = BuildProgram(
      profile,
      Resolved(profile,
               {.communication = ParameterServersDraft{
                    .multiplexing = RoundRobinDraft{.window_bytes = 100, .quantum_bytes = 100}}}));
  const std::optional<PhasePlan> plan =
      PhasePlan::Make(program, /*find_cut=*/true, NeverStop).value();
  ASSERT_TRUE(plan.has_value());
  const PhasePlan::DownloadOrder order = plan->InOrder(program, nullptr);
  const std::vector<PhasePlan::Service>& services = order.phases[0].services;
  ASSERT_EQ(services.size(), 4U);
  const std::vector<std::pair<OpIndex, int32_t>> expected{{0, 0}, {1, 0}, {0, 1}, {0, 2}};
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(std::pair(services[i].op, services[i].service), expected[i]) << i;
  EXPECT_EQ(services[3].work, Nanoseconds(50));
  EXPECT_EQ(order.phases[0].total, Nanoseconds(350));
  EXPECT_EQ(order.arrival_order, (std::vector<int32_t>{4, 2}));
}

TEST(PhasePlanTest, RankedDownloadsGoFirstAndWhatIsStoppedGoesBehindTheOthers) {
  JobBuilder job;
  const int32_t unranked = job.Download(100);
  const int32_t second = job.Download(250);
  const int32_t first = job.Download(100);
  job.Compute(10, {unranked, second, first});
  const Profile profile = job.Build();
  const Program program =
      BuildProgram(profile, Resolved(profile, {.communication = ParameterServersDraft{
                                                   .multiplexing = WindowDraft{.bytes = 100}}}));
  const std::optional<PhasePlan> plan =
      PhasePlan::Make(program, /*find_cut=*/true, NeverStop).value();
  ASSERT_TRUE(plan.has_value());
  const std::vector<int32_t> ranks{Ranking::kUnranked, 7, 3, 0};
  const PhasePlan::DownloadOrder order = plan->InOrder(program, ranks.data());
  std::vector<std::pair<OpIndex, int32_t>> served;
  for (const PhasePlan::Service& service : order.phases[0].services)
    served.emplace_back(service.op, service.service);
  EXPECT_EQ(served, (std::vector<std::pair<OpIndex, int32_t>>{{2, 0}, {1, 0}, {0, 0}, {1, 1}}));
  EXPECT_EQ(order.arrival_order, (std::vector<int32_t>{3, 4, 1}));
}

// By the definitions: which operations lead to which.
class Reachability {
 public:
  explicit Reachability(const Program& graph)
      : graph_(graph), leads_(Index(graph.size()), std::vector<bool>(Index(graph.size()), false)) {
    for (OpIndex op = 0; op < graph.size(); ++op) Visit(op, op);
  }
  bool Leads(OpIndex from, OpIndex to) const { return leads_[Index(from)][Index(to)]; }

  Resource Kind(OpIndex op) const { return ServerLanes::ResourceOf(graph_, op); }
  bool UploadsWaitForDownloads() const {
    for (OpIndex up = 0; up < graph_.size(); ++up) {
      for (OpIndex down = 0; down < graph_.size(); ++down) {
        if (Kind(up) == Resource::kUplink && Kind(down) == Resource::kDownlink && !Leads(down, up))
          return false;
      }
    }
    return true;
  }
  bool IsCut(OpIndex cut) const {
    if (Kind(cut) != Resource::kWorker) return false;
    for (OpIndex op = 0; op < graph_.size(); ++op) {
      if (op != cut && Kind(op) != Resource::kParameterServer && !Leads(op, cut) && !Leads(cut, op))
        return false;
    }
    return true;
  }

 private:
  static size_t Index(OpIndex op) { return static_cast<size_t>(op); }
  void Visit(OpIndex from, OpIndex op) {
    for (const OpIndex next : graph_.dependents(op)) {
      if (leads_[Index(from)][Index(next)]) continue;
      leads_[Index(from)][Index(next)] = true;
      Visit(from, next);
    }
  }

  const Program& graph_;
  std::vector<std::vector<bool>> leads_;
};

TEST(PhasePlanTest, PlansAndCutsAreThoseOfTheDefinitions) {
  int cut = 0;
  int uncut = 0;
  int none = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    // Some that run in phases, and some that mostly do not.
    const bool in_phases = seed % 2 == 0;
    const Profile profile =
        in_phases ? testing::MakePhaseCase(seed).profile : testing::MakeRandomCase(seed).profile;
    const Program graph = BuildProgram(profile, Resolved(profile));
    const Reachability reachability(graph);
    const std::optional<PhasePlan> plan =
        PhasePlan::Make(graph, /*find_cut=*/true, NeverStop).value();
    if (!plan.has_value()) {
      EXPECT_FALSE(in_phases);
      ++none;
      continue;
    }
    EXPECT_TRUE(reachability.UploadsWaitForDownloads());
    std::vector<OpIndex> cuts;
    for (OpIndex op = 0; op < graph.size(); ++op) {
      if (reachability.IsCut(op)) cuts.push_back(op);
    }
    EXPECT_EQ(plan->after_cut.empty(), cuts.empty());
    ++(cuts.empty() ? uncut : cut);
    if (cuts.empty() || plan->after_cut.empty()) continue;
    // The first of them leads to all others.
    OpIndex first = cuts.front();
    for (const OpIndex op : cuts) first = reachability.Leads(op, first) ? op : first;
    for (const OpIndex op : plan->after_cut)
      EXPECT_TRUE(op == first || reachability.Leads(first, op));
    for (const OpIndex op : plan->computations) EXPECT_TRUE(reachability.Leads(op, first));
  }
  EXPECT_GT(cut, 200);
  EXPECT_GT(uncut, 50);
  EXPECT_GT(none, 200);
}

}  // namespace
}  // namespace stepcast::phase_plan_test
