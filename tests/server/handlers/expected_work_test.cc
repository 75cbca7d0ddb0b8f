#include "server/handlers/expected_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/stop_check.h"
#include "tests/server/support/random_profile.h"

namespace stepcast::server::expected_work_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ExpectedWorkTest, APredictionsWorkIsThatOfItsWorkersAndOfTheOneTheyAreComparedWith) {
  const Profile profile = *Profile::Create(RandomProfile(1));
  ThroughputQuery query{.scenarios = {Scenario{.workers = 3}, Scenario{.workers = 6}},
                        .options = {.steps_per_worker = 100, .replications = 2}};
  EXPECT_DOUBLE_EQ(OperationsOf(profile, query),
                   1.5 * 10 * static_cast<double>(profile.operations().size()) * 100 * 2);
}

TEST(ExpectedWorkTest, IsWithinAFactorOfFiveOfWhatIsSimulated) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Profile profile = *Profile::Create(RandomProfile(seed));
    const absl::StatusOr<ThroughputQuery> query = ResolveThroughput(
        profile, {.worker_counts = {1, 2, 5},
                  .options = {.steps_per_worker = 60, .warmup_steps = 10, .replications = 3}});
    ASSERT_TRUE(query.ok()) << query.status();
    const auto answer = PredictThroughput(profile, *query, [] { return absl::OkStatus(); });
    if (!answer.ok()) continue;
    // The runs with the other start, which tell whether it is steady, come on top.
    EXPECT_LE(static_cast<double>(answer->simulation.simulated_operations),
              5 * OperationsOf(profile, *query))
        << "seed " << seed;
    EXPECT_GE(static_cast<double>(answer->simulation.simulated_operations),
              0.2 * OperationsOf(profile, *query))
        << "seed " << seed;
  }
}

TEST(ExpectedWorkTest, ADiagnosissWorkIsThatOfItsChangesToo) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Profile profile = *Profile::Create(RandomProfile(seed));
    const absl::StatusOr<DiagnosisQuery> query = ResolveDiagnosis(
        profile, {.scenario = {.workers = 4},
                  .options = {.steps_per_worker = 60, .warmup_steps = 10, .replications = 3}});
    ASSERT_TRUE(query.ok()) << query.status();
    const auto answer = DiagnoseJob(profile, *query, [] { return absl::OkStatus(); });
    if (!answer.ok()) continue;
    const auto simulated = static_cast<double>(answer->simulation.simulated_operations);
    EXPECT_LE(simulated, 5 * OperationsOf(profile, *query)) << "seed " << seed;
    EXPECT_GE(simulated, 0.2 * OperationsOf(profile, *query)) << "seed " << seed;
  }
}

TEST(ExpectedWorkTest, ALayoutIsSimulatedOnceForEachReduction) {
  TriedLayout tried{
      .scenario = {.workers = 2,
                   .pipeline = PipelineDraft{.stages = 2,
                                             .micro_batches = 4,
                                             .schedule = PipelineSchedule::kOneForwardOneBackward,
                                             .chunks = 1}}};
  const Profile profile = *Profile::Create(RandomProfile(1));
  const auto work_of = [&](std::vector<std::optional<PipelineReduction>> reductions) {
    LayoutQuery query;
    tried.reductions = std::move(reductions);
    query.tried = {tried};
    return OperationsOf(profile, query);
  };
  const double one = work_of({std::nullopt});
  EXPECT_GT(one, 0);
  EXPECT_EQ(work_of({PipelineReduction::kAtEnd, PipelineReduction::kBuckets}), 2 * one);
}

Scenario OfAllReduce() { return Scenario{.workers = 2, .communication = AllReduce{}}; }

TEST(CommunicationTest, IsThatOfItsJobsAndBothWhereTheyDiffer) {
  EXPECT_EQ(CommunicationOf(ThroughputQuery{.scenarios = {Scenario{}, Scenario{}}}),
            Communication::kParameterServers);
  EXPECT_EQ(CommunicationOf(ThroughputQuery{.scenarios = {OfAllReduce(), OfAllReduce()}}),
            Communication::kAllReduce);
  EXPECT_EQ(CommunicationOf(ThroughputQuery{.scenarios = {OfAllReduce(), Scenario{}}}),
            Communication::kBoth);
  EXPECT_EQ(CommunicationOf(RecommendationQuery{.server_choices = {OfAllReduce()}}),
            Communication::kAllReduce);
  EXPECT_EQ(CommunicationOf(DiagnosisQuery{.scenario = OfAllReduce()}), Communication::kAllReduce);
  EXPECT_EQ(CommunicationOf(StrategyQuery{.scenario = OfAllReduce()}), Communication::kAllReduce);
  EXPECT_EQ(CommunicationOf(TraceQuery{.scenario = OfAllReduce()}), Communication::kAllReduce);
}

TEST(CommunicationTest, AJobThatCannotBePlacedDoesNotCount) {
  const Profile profile = *Profile::Create(RandomProfile(1));
  const auto job = [&](const Scenario& scenario) {
    return AllocationJob{.profile = profile, .server_choices = {scenario}};
  };
  AllocationQuery query;
  query.jobs.emplace_back(absl::NotFoundError("no such profile"));
  EXPECT_EQ(CommunicationOf(query), Communication::kParameterServers);
  query.jobs.emplace_back(job(OfAllReduce()));
  EXPECT_EQ(CommunicationOf(query), Communication::kAllReduce);
  query.jobs.emplace_back(job(Scenario{}));
  EXPECT_EQ(CommunicationOf(query), Communication::kBoth);
}

const absl::Status kLate =
    MakeError(absl::StatusCode::kDeadlineExceeded, "late", {.reason = "DEADLINE_EXCEEDED"});

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(WorkProgressTest, WhoGivesUpHearsWhatWasAskedAndHowLongItWouldTake) {
  FakeClock clock;
  const ExpectedWork work{.operations = 340e6};
  const WorkProgress progress(work, clock, Remedy::kStartAJob);
  work.simulated->Add(8'500'000);
  clock.Advance(500'000'000);
  const absl::Status told = progress.Explain(kLate);
  EXPECT_EQ(told.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Message(told), HasSubstr("late; some 340 million simulated operations were asked "
                                       "for, of which 8.5 million were done in 0.5 s, so all "
                                       "would take about 20 s here; allow more time, "));
  EXPECT_THAT(Message(told), HasSubstr("stepcast job start"));
  const ErrorDetails details = DetailsOf(told);
  EXPECT_EQ(details.reason, "DEADLINE_EXCEEDED");
  EXPECT_EQ(details.metadata.at("expected_operations"), "340000000");
  EXPECT_EQ(details.metadata.at("simulated_operations"), "8500000");
  EXPECT_EQ(details.metadata.at("elapsed_seconds"), "0.5");
  EXPECT_EQ(details.metadata.at("expected_seconds"), "20");
}

TEST(WorkProgressTest, MoreThanWasExpectedTellsNothingOfWhatIsLeft) {
  FakeClock clock;
  const ExpectedWork work{.operations = 25e6};
  const WorkProgress progress(work, clock, Remedy::kStartAJob);
  work.simulated->Add(69'600'000);
  clock.Advance(4'760'000'000);
  const absl::Status told = progress.Explain(kLate);
  EXPECT_THAT(Message(told), HasSubstr("late; some 25 million simulated operations were expected, "
                                       "and 69.6 million were done in 4.76 s, so nothing tells how "
                                       "many are left; allow more time, "));
  const ErrorDetails details = DetailsOf(told);
  EXPECT_EQ(details.metadata.at("expected_operations"), "25000000");
  EXPECT_EQ(details.metadata.at("simulated_operations"), "69600000");
  EXPECT_EQ(details.metadata.count("expected_seconds"), 0);
}

TEST(WorkProgressTest, PiecesTellWhileNoRunHasEnded) {
  FakeClock clock;
  WorkProgress progress({.operations = 100.0 * kStopCheckInterval}, clock, Remedy::kAskForLess);
  progress.Count();
  clock.Advance(1'000'000'000);
  const absl::Status told = progress.Explain(kLate);
  EXPECT_EQ(DetailsOf(told).metadata.at("expected_seconds"), "100");
  EXPECT_THAT(Message(told), Not(HasSubstr("job start")));
}

TEST(WorkProgressTest, BeforeAnythingIsDoneNothingIsPromised) {
  const FakeClock clock;
  const WorkProgress progress({.operations = 5000}, clock, Remedy::kStartAJob);
  const absl::Status told = progress.Explain(kLate);
  EXPECT_THAT(
      Message(told),
      HasSubstr("late; some 5 thousand simulated operations were asked for; allow more time"));
  EXPECT_EQ(DetailsOf(told).metadata.count("expected_seconds"), 0U);
  EXPECT_EQ(told, SayWhatWasAsked(kLate, {.operations = 5000}, Remedy::kStartAJob));
}

TEST(WorkProgressTest, AllElseStaysAsItIs) {
  const FakeClock clock;
  WorkProgress progress({.operations = 5000}, clock, Remedy::kStartAJob);
  progress.Count();
  for (const absl::Status& status : {absl::OkStatus(), absl::CancelledError("x")})
    EXPECT_EQ(progress.Explain(status), status);
  EXPECT_EQ(SayWhatWasAsked(kLate, {}, Remedy::kStartAJob), kLate) << "nothing is simulated";
}

}  // namespace
}  // namespace stepcast::server::expected_work_test
