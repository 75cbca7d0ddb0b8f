#include "deploy/slurm/submission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "absl/status/status.h"

namespace stepcast::slurm::submission_test {
namespace {

using client::Advice;
using client::AdviceObjective;
using client::AdviceQuestion;
using testing::HasSubstr;
using testing::IsEmpty;

Submission Job(std::string_view comment = "stepcast:profile=a") {
  return {.comment = comment, .min_nodes = 2, .max_nodes = 16};
}

// 8 nodes of `per_node`, of up to 16.
Advice Eight(int32_t per_node = 1) {
  Advice advice;
  advice.chosen = {.workers = 8 * per_node, .examples_per_second = 3120, .efficiency = 0.84};
  advice.curve = {advice.chosen};
  advice.least_workers = 4 * per_node;
  advice.summary = "8 nodes 3120/s 84% eff; 16 nodes 3300/s 45%";
  advice.reason = "Because.";
  return advice;
}

class Asked {
 public:
  explicit Asked(absl::StatusOr<Advice> answer) : answer_(std::move(answer)) {}

  Decision Decide(const Submission& job, const Settings& settings = {}) {
    return slurm::Decide(job, settings, [&](const AdviceQuestion& question) {
      ++times;
      last = question;
      return answer_;
    });
  }

  int times = 0;
  AdviceQuestion last;

 private:
  absl::StatusOr<Advice> answer_;
};

void ExpectUnchanged(const Decision& decision) {
  EXPECT_FALSE(decision.min_nodes.has_value());
  EXPECT_FALSE(decision.max_nodes.has_value());
}

void ExpectSilence(const Decision& decision) {
  ExpectUnchanged(decision);
  EXPECT_EQ(decision.admin_comment, "");
  EXPECT_EQ(decision.user_line, "");
}

Settings Setting() {
  Settings settings;
  settings.mode = Mode::kSet;
  return settings;
}

TEST(SubmissionTest, ACommentsTextIsAWordOfItsOwn) {
  EXPECT_EQ(AdviceTextOf("stepcast:profile=a;objective=knee"), "profile=a;objective=knee");
  EXPECT_EQ(AdviceTextOf("night run stepcast:profile=a more"), "profile=a");
  EXPECT_EQ(AdviceTextOf("stepcast:"), "");
  EXPECT_FALSE(AdviceTextOf("").has_value());
  EXPECT_FALSE(AdviceTextOf("mystepcast:profile=a").has_value());
  EXPECT_FALSE(AdviceTextOf(std::string(5000, ' ') + "stepcast:profile=a").has_value());
}

TEST(SubmissionTest, GpusAreCountedOfWhatSlurmWrites) {
  EXPECT_EQ(GpusOf(""), 0);
  EXPECT_EQ(GpusOf("gres:gpu:4"), 4);
  EXPECT_EQ(GpusOf("gres:gpu:a100:4"), 4);
  EXPECT_EQ(GpusOf("gres/gpu=2"), 2);
  EXPECT_EQ(GpusOf("gres:gpu"), 1);
  EXPECT_EQ(GpusOf("gres:gpu:a100"), 1);
  EXPECT_EQ(GpusOf("gres:nvme:3,gres:gpu:a100:2,gres:gpu:v100:1"), 3);
  EXPECT_EQ(GpusOf("gres:gpuless:4"), 0);
  EXPECT_FALSE(GpusOf("gres:gpu:99999999999").has_value());
  EXPECT_FALSE(GpusOf("gres:gpu:4k").has_value());
}

TEST(SubmissionTest, ARangeOfNodesIsAsked) {
  Asked asked(Eight());
  asked.Decide(Job("stepcast:profile=a;objective=efficiency=0.8;examples=9"));
  EXPECT_EQ(asked.last.profile, "a");
  EXPECT_EQ(asked.last.min_workers, 2);
  EXPECT_EQ(asked.last.max_workers, 16);
  EXPECT_EQ(asked.last.workers_per_node, 1);
  EXPECT_EQ(asked.last.unit, client::AdviceUnit::kNodes);
  EXPECT_EQ(asked.last.objective, AdviceObjective::kEfficiency);
  EXPECT_EQ(asked.last.examples, 9);
}

TEST(SubmissionTest, TheEnvironmentNamesAProfileAndACommentCountsMore) {
  Asked asked(Eight());
  Submission job = Job("");
  job.profile = "b";
  asked.Decide(job);
  EXPECT_EQ(asked.last.profile, "b");
  job.comment = "stepcast:profile=a";
  asked.Decide(job);
  EXPECT_EQ(asked.last.profile, "a");
}

TEST(SubmissionTest, AdviseTellsAndChangesNothing) {
  const Decision decision = Asked(Eight()).Decide(Job());
  ExpectUnchanged(decision);
  EXPECT_EQ(decision.user_line,
            "stepcast: --nodes=2-8 is advised instead of --nodes=2-16: 8 nodes 3120/s 84% eff; 16 "
            "nodes 3300/s 45%");
  EXPECT_EQ(decision.admin_comment, decision.user_line + "; a: Because.");
  EXPECT_EQ(decision.log_line, "");
}

TEST(SubmissionTest, SetNarrowsTheRangeAndTellsTheOldAndTheNew) {
  const Decision decision = Asked(Eight()).Decide(Job(), Setting());
  EXPECT_EQ(decision.min_nodes, 2);
  EXPECT_EQ(decision.max_nodes, 8);
  EXPECT_THAT(decision.user_line, HasSubstr("stepcast: --nodes=2-16 is set to --nodes=2-8: 8 "));
  EXPECT_THAT(decision.admin_comment, HasSubstr(decision.user_line));
}

TEST(SubmissionTest, TheLeastIsRaisedOnlyWhereAskedFor) {
  Settings settings = Setting();
  settings.raise_min = true;
  const Decision decision = Asked(Eight()).Decide(Job(), settings);
  EXPECT_EQ(decision.min_nodes, 4);
  EXPECT_EQ(decision.max_nodes, 8);
  EXPECT_THAT(decision.user_line, HasSubstr("set to --nodes=4-8"));
}

TEST(SubmissionTest, ARangeThatIsGoodIsSaidToBe) {
  Submission job = Job();
  job.max_nodes = 8;
  const Decision decision = Asked(Eight()).Decide(job, Setting());
  ExpectUnchanged(decision);
  EXPECT_THAT(decision.user_line, HasSubstr("stepcast: --nodes=2-8 is kept: "));
}

TEST(SubmissionTest, AnAnswerOutsideTheRangeIsNeverSet) {
  Submission job = Job();
  job.min_nodes = 10;
  Decision decision = Asked(Eight()).Decide(job, Setting());
  EXPECT_EQ(decision.min_nodes, 10);
  EXPECT_EQ(decision.max_nodes, 10);
  job = Job();
  job.max_nodes = 4;
  decision = Asked(Eight()).Decide(job, Setting());
  ExpectUnchanged(decision);
}

TEST(SubmissionTest, NothingIsAskedWithoutAProfileOrARange) {
  Asked asked(Eight());
  ExpectSilence(asked.Decide(Job("")));
  ExpectSilence(asked.Decide(Job("a comment of another kind")));
  Submission job = Job();
  job.max_nodes = 2;
  ExpectSilence(asked.Decide(job));
  job.max_nodes.reset();
  ExpectSilence(asked.Decide(job));
  job = Job();
  job.min_nodes.reset();
  ExpectSilence(asked.Decide(job));
  job = Job();
  job.max_nodes = 1;
  ExpectSilence(asked.Decide(job));
  job = Job();
  job.has_fixed_size = true;
  ExpectSilence(asked.Decide(job));
  EXPECT_EQ(asked.times, 0);
}

TEST(SubmissionTest, DoubtIsNotTold) {
  Advice doubtful = Eight();
  doubtful.low_confidence = true;
  doubtful.warnings = {"two regimes"};
  const Decision decision = Asked(doubtful).Decide(Job(), Setting());
  ExpectSilence(decision);
  EXPECT_EQ(decision.log_line,
            "no advice: a is not sure enough: 8 nodes 3120/s 84% eff; 16 nodes 3300/s 45%; two "
            "regimes");
}

TEST(SubmissionTest, NodesHaveWorkersByTheirGpusTheirTasksOrTheSettings) {
  Asked asked(Eight(4));
  Submission job = Job();
  job.tres_per_node = "gres:gpu:4";
  job.tasks_per_node = 2;
  Decision decision = asked.Decide(job, Setting());
  EXPECT_EQ(asked.last.workers_per_node, 4);
  EXPECT_EQ(asked.last.min_workers, 8);
  EXPECT_EQ(asked.last.max_workers, 64);
  EXPECT_EQ(decision.max_nodes, 8);
  Settings settings = Setting();
  settings.node_rule = NodeRule::kTasks;
  asked.Decide(job, settings);
  EXPECT_EQ(asked.last.workers_per_node, 2);
  settings.node_rule = NodeRule::kFixed;
  settings.workers_per_node = 3;
  asked.Decide(job, settings);
  EXPECT_EQ(asked.last.workers_per_node, 3);
  job.tres_per_node = "";
  settings.node_rule = NodeRule::kAuto;
  asked.Decide(job, settings);
  EXPECT_EQ(asked.last.workers_per_node, 2);
  job.comment = "stepcast:profile=a;workers-per-node=8";
  asked.Decide(job, settings);
  EXPECT_EQ(asked.last.workers_per_node, 8);
  const int times = asked.times;
  job.comment = "stepcast:profile=a";
  settings.node_rule = NodeRule::kGpus;
  ExpectSilence(asked.Decide(job, settings));
  job.tres_per_node = "gres:gpu:many:4x";
  settings.node_rule = NodeRule::kAuto;
  ExpectSilence(asked.Decide(job, settings));
  EXPECT_EQ(asked.times, times);
}

TEST(SubmissionTest, ARangeTooLargeToAskAboutIsAskedAboutInPart) {
  Advice advice = Eight();
  Asked asked(advice);
  Submission job = Job();
  job.max_nodes = 5000;
  EXPECT_EQ(asked.Decide(job, Setting()).max_nodes, 8);
  EXPECT_EQ(asked.last.max_workers, 258);
  // The best may lie behind what was asked about.
  advice.chosen.workers = 258;
  ExpectSilence(Asked(advice).Decide(job, Setting()));
  job.tasks_per_node = 100;
  asked.Decide(job);
  EXPECT_EQ(asked.last.max_workers, 400);
  job.min_nodes = 41;
  const int times = asked.times;
  ExpectSilence(asked.Decide(job));
  EXPECT_EQ(asked.times, times);
}

TEST(SubmissionTest, WhatTheAuthorCanMendIsSaidToTheAuthor) {
  Asked asked(Eight());
  Decision decision = asked.Decide(Job("stepcast:profile=A"));
  ExpectUnchanged(decision);
  EXPECT_THAT(decision.user_line,
              HasSubstr("stepcast: no advice: profile: \"A\" is not the name of a profile"));
  EXPECT_THAT(decision.admin_comment, IsEmpty());
  EXPECT_EQ(asked.Decide(Job("stepcast:profile=a;max=3")).user_line,
            "stepcast: no advice: max: given, but the range is that of --nodes");
  EXPECT_EQ(asked.Decide(Job("stepcast:profile=a;objective=cost")).user_line,
            "stepcast: no advice: objective: cost needs a price above 0: worker-hour or node-hour");
  EXPECT_EQ(asked.times, 0);
  decision = Asked(absl::NotFoundError("there is no profile profiles/a")).Decide(Job());
  ExpectUnchanged(decision);
  EXPECT_EQ(decision.user_line, "stepcast: no advice: there is no profile profiles/a");
}

TEST(SubmissionTest, WhatTheServerLacksIsSaidToTheAdministratorAlone) {
  const Decision decision = Asked(absl::UnavailableError("refused")).Decide(Job(), Setting());
  ExpectSilence(decision);
  EXPECT_EQ(decision.log_line, "no advice: UNAVAILABLE: refused");
}

TEST(SubmissionTest, TheSettingsPricesAndObjectiveStandInForTheComments) {
  Asked asked(Eight());
  Settings settings;
  settings.objective = "cost";
  settings.prices.set_node_hour(20);
  asked.Decide(Job(), settings);
  EXPECT_EQ(asked.last.objective, AdviceObjective::kCost);
  EXPECT_EQ(asked.last.prices.node_hour(), 20);
  asked.Decide(Job("stepcast:profile=a;objective=throughput;node-hour=3"), settings);
  EXPECT_EQ(asked.last.objective, AdviceObjective::kThroughput);
  EXPECT_EQ(asked.last.prices.node_hour(), 3);
}

TEST(SubmissionTest, LinesAreOnePrintableLineWhateverTheServerSays) {
  Advice advice = Eight();
  advice.summary = std::string(5000, 'x') + "\x1b[2J\n";
  advice.reason = std::string(5000, '\n');
  const Decision decision = Asked(advice).Decide(Job());
  EXPECT_EQ(decision.user_line.size(), 300);
  EXPECT_EQ(decision.admin_comment.size(), 700);
  for (const std::string& line : {decision.user_line, decision.admin_comment})
    EXPECT_TRUE(std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; }));
}

TEST(SubmissionTest, HostileJobsAreDecidedOn) {
  std::minstd_rand random(3);
  const std::string letters =
      std::string("stepcast:profile=a;objective=knee efficiency=0.8 \xff\n\"'`$;=:,k9") +
      std::string(1, '\0');
  for (int round = 0; round < 20'000; ++round) {
    std::string comment = round % 2 == 0 ? "stepcast:profile=a;" : "";
    std::string gres = "gres:gpu:";
    for (size_t i = random() % 60; i > 0; --i) comment += letters[random() % letters.size()];
    for (size_t i = random() % 10; i > 0; --i) gres += letters[random() % letters.size()];
    Submission job = Job(comment);
    job.tres_per_node = gres;
    job.min_nodes = static_cast<uint32_t>(random());
    job.max_nodes = static_cast<uint32_t>(random());
    if (round % 3 == 0) job.min_nodes = 1;
    job.tasks_per_node = static_cast<uint32_t>(random());
    Asked asked(Eight());
    const Decision decision = asked.Decide(job, Setting());
    if (!decision.max_nodes) continue;
    EXPECT_FALSE(decision.admin_comment.empty());
    EXPECT_LE(*decision.max_nodes, *job.max_nodes);
    EXPECT_GE(*decision.max_nodes, *job.min_nodes);
    EXPECT_EQ(*decision.min_nodes, *job.min_nodes);
  }
}

}  // namespace
}  // namespace stepcast::slurm::submission_test
