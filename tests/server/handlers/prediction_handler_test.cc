#include "server/handlers/prediction_handler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "server/convert/profile_codec.h"
#include "server/handlers/profile_handler.h"
#include "server/store/memory_stores.h"
#include "tests/server/support/random_profile.h"

namespace stepcast::server::prediction_handler_test {
namespace {

constexpr size_t kRoom = size_t{1} << 20;

class Bytes final : public CacheObserver {
 public:
  void OnAsked(bool found) override { (found ? hits : misses) += 1; }
  void OnChanged(int64_t /*entries*/, int64_t change, int64_t /*dropped*/) override {
    bytes += change;
  }

  int hits = 0;
  int misses = 0;
  int64_t bytes = 0;
};

StoredProfile Stored(const std::string& id, const ProfileDraft& draft) {
  EncodedProfile encoded = EncodeProfile(Profile::Create(draft).value());
  return {.summary = {.id = id, .digest = std::move(encoded.digest)},
          .content = std::move(encoded.content)};
}

TEST(DecodedProfilesTest, AKeptProfileIsNotDecodedAgain) {
  Bytes seen;
  DecodedProfiles profiles(kRoom, &seen);
  const StoredProfile stored = Stored("a", SmallProfile());
  const Profile first = profiles.Decode(stored).value();
  const Profile second = profiles.Decode(stored).value();
  EXPECT_EQ(first.content(), SmallProfile());
  EXPECT_EQ(&first.content(), &second.content());
  EXPECT_EQ(seen.hits, 1);
  EXPECT_EQ(seen.misses, 1);
}

TEST(DecodedProfilesTest, OtherBytesUnderTheSameNameAreAnotherProfile) {
  DecodedProfiles profiles(kRoom);
  ProfileDraft other = SmallProfile();
  other.labels["team"] = "vision";  // of which the digest says nothing
  ASSERT_EQ(Stored("a", other).summary.digest, Stored("a", SmallProfile()).summary.digest);
  EXPECT_EQ(profiles.Decode(Stored("a", SmallProfile()))->content(), SmallProfile());
  EXPECT_EQ(profiles.Decode(Stored("a", other))->content(), other);
  EXPECT_EQ(profiles.Decode(Stored("a", SmallProfile()))->content(), SmallProfile());
}

TEST(DecodedProfilesTest, WithoutRoomEachIsDecodedAnew) {
  Bytes seen;
  DecodedProfiles profiles(0, &seen);
  const StoredProfile stored = Stored("a", SmallProfile());
  const Profile first = profiles.Decode(stored).value();
  const Profile second = profiles.Decode(stored).value();
  EXPECT_EQ(first.content(), second.content());
  EXPECT_NE(&first.content(), &second.content());
  EXPECT_EQ(seen.bytes, 0);
}

TEST(DecodedProfilesTest, BytesThatAreNoProfileFailEachTime) {
  DecodedProfiles profiles(kRoom);
  StoredProfile stored = Stored("a", SmallProfile());
  ASSERT_TRUE(profiles.Decode(stored).ok());
  stored.content.resize(stored.content.size() - 1);
  for (int turn = 0; turn < 2; ++turn)
    EXPECT_EQ(DetailsOf(profiles.Decode(stored).status()).reason, "PROFILE_CORRUPT");
}

TEST(DecodedProfilesTest, TheRoomCountsWhatWasDecodedAndTheBytesThatStandForIt) {
  Bytes seen;
  DecodedProfiles profiles(kRoom, &seen);
  ProfileDraft draft = SmallProfile();
  const StoredProfile few = Stored("a", draft);
  ASSERT_TRUE(profiles.Decode(few).ok());
  const int64_t bytes_of_few = seen.bytes;
  const RecordedStep step = draft.steps.front();
  draft.steps.resize(draft.steps.size() + 100, step);
  const StoredProfile many = Stored("a", draft);
  ASSERT_TRUE(profiles.Decode(many).ok());
  const auto times = 200 * static_cast<int64_t>(draft.operations.size());
  EXPECT_GE(seen.bytes - bytes_of_few,
            times * 8 + static_cast<int64_t>(many.content.size() - few.content.size()));
}

using ::testing::ElementsAre;

class PredictionHandlerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const ProfileHandler profiles(store_, ProfileLimits());
    ASSERT_TRUE(profiles
                    .Create({.placement = {.profile_id = "small"},
                             .profile = ProfileInput{.draft = SmallProfile()}},
                            NeverStop)
                    .ok());
  }
  static std::vector<std::string> Fields(const absl::Status& status) {
    std::vector<std::string> fields;
    for (const Fault& fault : DetailsOf(status).faults) fields.push_back(fault.field);
    return fields;
  }
  static SimulationOptionsDraft Short() { return {.steps_per_worker = 20, .warmup_steps = 2}; }

  FakeClock clock_;
  MemoryProfileStore store_{StoreLimits(), clock_};
  InOrder executor_;
  PredictionHandler handler_{{.store = store_, .clock = clock_, .executor = executor_},
                             ProfileLimits()};
};

TEST_F(PredictionHandlerTest, AStoredAndAnInlineProfileGiveTheSameAnswer) {
  const ThroughputDraft draft{.worker_counts = {1, 3}, .options = Short()};
  auto stored =
      handler_.PredictThroughput({.source = {.recorded = "profiles/small"}, .draft = draft});
  auto in_line = handler_.PredictThroughput(
      {.source = {.recorded = ProfileInput{.draft = SmallProfile()}}, .draft = draft});
  ASSERT_TRUE(stored.ok()) << stored.status();
  ASSERT_TRUE(in_line.ok()) << in_line.status();
  const auto first = (*std::move(stored))(NeverStop);
  const auto second = (*std::move(in_line))(NeverStop);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_EQ(first->answer.predictions.size(), 2U);
  EXPECT_EQ(first->answer.predictions[1].scenario.workers, 3);
  EXPECT_GT(first->answer.predictions[1].examples_per_second,
            first->answer.predictions[0].examples_per_second);
  EXPECT_EQ(first->answer.predictions[1].examples_per_second,
            second->answer.predictions[1].examples_per_second);
  EXPECT_EQ(first->context.profile_digest, second->context.profile_digest);
  EXPECT_EQ(first->context.profile_digest, DigestOf(*Profile::Create(SmallProfile())));
  EXPECT_EQ(first->context.options.steps_per_worker, 20);
}

TEST_F(PredictionHandlerTest, WithoutAScenarioOneWorkerIsPredicted) {
  auto computation = handler_.PredictThroughput(
      {.source = {.recorded = "profiles/small"}, .draft = {.options = Short()}});
  ASSERT_TRUE(computation.ok()) << computation.status();
  const auto answer = (*std::move(computation))(NeverStop);
  ASSERT_EQ(answer->answer.predictions.size(), 1U);
  EXPECT_EQ(answer->answer.predictions[0].scenario.workers, 1);
}

TEST_F(PredictionHandlerTest, AllThreeMethodsAnswer) {
  auto recommendation = handler_.RecommendWorkers(
      {.source = {.recorded = "profiles/small"}, .draft = {.options = Short()}});
  ASSERT_TRUE(recommendation.ok()) << recommendation.status();
  EXPECT_GE((*std::move(recommendation))(NeverStop)->answer.workers, 1);
  auto order = handler_.OptimizeOrder(
      {.source = {.recorded = "profiles/small"}, .draft = {.options = Short()}});
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_FALSE((*std::move(order))(NeverStop)->answer.orders.empty());
}

TEST_F(PredictionHandlerTest, ADiagnosisIsOfTheJobThatIsPredicted) {
  const ScenarioDraft scenario{.workers = 2};
  auto diagnosis = handler_.DiagnoseJob({.source = {.recorded = "profiles/small"},
                                         .draft = {.scenario = scenario, .options = Short()}});
  ASSERT_TRUE(diagnosis.ok()) << diagnosis.status();
  EXPECT_EQ(diagnosis->content(), DigestOf(*Profile::Create(SmallProfile())));
  const auto answer = (*std::move(diagnosis))(NeverStop);
  ASSERT_TRUE(answer.ok()) << answer.status();
  auto prediction =
      handler_.PredictThroughput({.source = {.recorded = "profiles/small"},
                                  .draft = {.scenario = scenario, .options = Short()}});
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_EQ(answer->answer.prediction.examples_per_second,
            (*std::move(prediction))(NeverStop)->answer.predictions[0].examples_per_second);
  EXPECT_EQ(answer->answer.path.workers.size(), 2U);
  EXPECT_FALSE(answer->answer.what_ifs.empty());
  EXPECT_EQ(answer->context.options.steps_per_worker, 20);
  EXPECT_EQ(answer->context.profile_digest, DigestOf(*Profile::Create(SmallProfile())));
  EXPECT_THAT(Fields(handler_
                         .DiagnoseJob({.source = {.recorded = "profiles/small"},
                                       .draft = {.scenario = {.workers = -1}}})
                         .status()),
              ElementsAre("scenario.workers"));
}

TEST_F(PredictionHandlerTest, AStrategyIsOfAllReduces) {
  EXPECT_THAT(Fields(handler_.OptimizeJob({.source = {.recorded = "profiles/small"}}).status()),
              ::testing::Contains("profile"));
  EXPECT_THAT(Fields(handler_
                         .OptimizeJob({.source = {.recorded = "profiles/small"},
                                       .draft = {.fused_share = 2},
                                       .time_budget_seconds = 0})
                         .status()),
              ::testing::IsSupersetOf({"fused_share", "time_budget"}));
}

TEST_F(PredictionHandlerTest, AProfileIsRequired) {
  EXPECT_THAT(Fields(handler_.OptimizeJob({}).status()), ElementsAre("profile"));
  EXPECT_THAT(Fields(handler_.DiagnoseJob({}).status()), ElementsAre("profile"));
  EXPECT_THAT(Fields(handler_.PredictThroughput({}).status()), ElementsAre("profile"));
  EXPECT_THAT(Fields(handler_.RecommendWorkers({}).status()), ElementsAre("profile"));
  EXPECT_THAT(Fields(handler_.OptimizeOrder({}).status()), ElementsAre("profile"));
}

TEST_F(PredictionHandlerTest, AProfilesNameMustBeOneAndExist) {
  EXPECT_THAT(Fields(handler_.PredictThroughput({.source = {.recorded = "small"}}).status()),
              ElementsAre("profile"));
  const absl::Status status =
      handler_.PredictThroughput({.source = {.recorded = "profiles/none"}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(DetailsOf(status).resource.name, "profiles/none");
}

TEST_F(PredictionHandlerTest, AnInlineProfilesFaultsHaveItsPathAndComeWithTheRequests) {
  ProfileDraft draft = SmallProfile();
  draft.batch_size = -3;
  const absl::Status status =
      handler_
          .PredictThroughput(
              {.source = {.recorded = ProfileInput{.draft = draft,
                                                   .faults = {{.field = "operations[0].resource",
                                                               .description = "9"}}}},
               .faults = {{.field = "options.start", .description = "8"}}})
          .status();
  EXPECT_EQ(DetailsOf(status).reason, "PROFILE_INVALID");
  EXPECT_THAT(Fields(status), ElementsAre("inline_profile.operations[0].resource", "options.start",
                                          "inline_profile.batch_size"));
}

TEST_F(PredictionHandlerTest, TheRequestsFaultsComeWithTheCores) {
  PredictThroughputCall call{.source = {.recorded = "profiles/small"},
                             .draft = {.worker_counts = {-1}, .options = {.replications = 0}},
                             .faults = {{.field = "options.start", .description = "8"}}};
  const absl::Status status = handler_.PredictThroughput(call).status();
  EXPECT_EQ(DetailsOf(status).reason, "REQUEST_INVALID");
  EXPECT_THAT(Fields(status), ::testing::UnorderedElementsAre(
                                  "options.start", "options.replications", "worker_counts[0]"));
}

TEST_F(PredictionHandlerTest, EitherOffsetsOrAStaggeredStart) {
  ScenarioDraft scenario{.workers = 2, .start_offsets_ns = {0, 5}};
  const SimulationOptionsDraft staggered{.start = Start::kStaggered};
  EXPECT_THAT(
      Fields(handler_
                 .PredictThroughput({.source = {.recorded = "profiles/small"},
                                     .draft = {.scenarios = {scenario}, .options = staggered}})
                 .status()),
      ElementsAre("scenarios[0].start_offsets_ns"));
  EXPECT_THAT(Fields(handler_
                         .PredictThroughput({.source = {.recorded = "profiles/small"},
                                             .draft = {.scenario = scenario, .options = staggered}})
                         .status()),
              ElementsAre("scenario.start_offsets_ns"));
  EXPECT_THAT(Fields(handler_
                         .OptimizeOrder({.source = {.recorded = "profiles/small"},
                                         .draft = {.scenario = scenario, .options = staggered}})
                         .status()),
              ElementsAre("scenario.start_offsets_ns"));
}

TEST_F(PredictionHandlerTest, AnOrdersTimeBudgetIsOneOfItsOptions) {
  EXPECT_THAT(Fields(handler_
                         .OptimizeOrder(
                             {.source = {.recorded = "profiles/small"}, .time_budget_seconds = -1})
                         .status()),
              ElementsAre("time_budget"));
  auto computation = handler_.OptimizeOrder({.source = {.recorded = "profiles/small"},
                                             .draft = {.options = Short()},
                                             .time_budget_seconds = 3});
  ASSERT_TRUE(computation.ok()) << computation.status();
  EXPECT_EQ((*std::move(computation))(NeverStop)->context.options.time_budget_seconds, 3);
}

TEST_F(PredictionHandlerTest, ATraceIsWrittenToItsSink) {
  auto computation = handler_.GenerateTrace(
      {.source = {.recorded = "profiles/small"}, .draft = {.options = {.steps_per_worker = 2}}});
  ASSERT_TRUE(computation.ok()) << computation.status();
  std::string text;
  const auto take = [&text](const std::string& piece) {
    text += piece;
    return absl::OkStatus();
  };
  const auto answer = std::move(computation->run)(take, NeverStop);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(text.substr(0, 2) + text.substr(text.size() - 4), "{\"\n]}\n");
  EXPECT_GT(answer->answer.events, 0);
  EXPECT_EQ(answer->context.profile_digest, DigestOf(*Profile::Create(SmallProfile())));
}

TEST_F(PredictionHandlerTest, ATracesFaultsAreFoundTogether) {
  GenerateTraceCall call;
  call.source.recorded = "profiles/small";
  call.draft.scenario.workers = -1;
  call.draft.options.replications = 2;
  call.faults = {{.field = "options.start", .description = "7 is unknown"}};
  EXPECT_THAT(
      Fields(handler_.GenerateTrace(std::move(call)).status()),
      ::testing::UnorderedElementsAre("options.start", "scenario.workers", "options.replications"));
  EXPECT_EQ(handler_.GenerateTrace({.source = {.recorded = "profiles/nobody"}}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(PredictionHandlerTest, AParsingOverheadIsAboutNoProfile) {
  FitParsingOverheadCall call{
      .draft = {.measurements = {{1000, 3e-6}, {2000, 5e-6}, {3000, 7e-6}}}};
  auto computation = handler_.FitParsingOverhead(call);
  ASSERT_TRUE(computation.ok()) << computation.status();
  EXPECT_FALSE(computation->content().empty()) << "equal calls share an answer";
  const auto answer = (*std::move(computation))(NeverStop);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_NEAR(answer->answer.fit.line.slope, 2e-9, 1e-18);
  auto stopped = handler_.FitParsingOverhead(call);
  EXPECT_EQ((*std::move(stopped))([] { return absl::CancelledError(); }).status().code(),
            absl::StatusCode::kCancelled);
  call.draft.measurements[1].seconds = -1;
  EXPECT_THAT(Fields(handler_.FitParsingOverhead(call).status()),
              ElementsAre("measurements[1].seconds"));
}

TEST_F(PredictionHandlerTest, ALinkOfCollectivesIsAboutNoProfile) {
  // 2 (10 us + bytes / (2 x 1 GB/s)).
  FitCollectivesCall call{
      .draft = {.measurements = {{.workers = 2, .size_bytes = 10'000, .seconds = 30e-6},
                                 {.workers = 2, .size_bytes = 100'000, .seconds = 120e-6},
                                 {.workers = 2, .size_bytes = 1'000'000, .seconds = 1020e-6}}}};
  auto computation = handler_.FitCollectives(call);
  ASSERT_TRUE(computation.ok()) << computation.status();
  EXPECT_FALSE(computation->content().empty()) << "equal calls share an answer";
  const auto answer = (*std::move(computation))(NeverStop);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_NEAR(answer->answer.bandwidth.value, 1e9, 1);
  EXPECT_NEAR(answer->answer.latency.value, 10e-6, 1e-12);
  auto stopped = handler_.FitCollectives(call);
  EXPECT_EQ((*std::move(stopped))([] { return absl::CancelledError(); }).status().code(),
            absl::StatusCode::kCancelled);
  call.draft.measurements[1].seconds = -1;
  call.faults = {{.field = "algorithm", .description = "77 is unknown"}};
  EXPECT_THAT(Fields(handler_.FitCollectives(call).status()),
              ElementsAre("algorithm", "measurements[1].seconds"));
}

// Computation at 1 - threads / 10,000 of its speed beside an all-reduce, and rates of 1e9 - 5e8
// exp(-0.01 threads^0.6) bytes a second, 1.2 times that alone.
TEST_F(PredictionHandlerTest, ContentionIsAboutNoProfile) {
  FitContentionCall call;
  for (const int32_t threads : {64, 128, 256, 512, 1024}) {
    const double rate = BytesPerSecond({1e9, 5e8, 0.01}, 0.6, threads);
    call.draft.transfers.push_back({threads, 1'000'000, 1e6 / rate, true});
    call.draft.transfers.push_back({threads, 1'000'000, 1e6 / (1.2 * rate), false});
    call.draft.slowdowns.push_back({threads, 1 / (1 - 1e-4 * threads)});
  }
  auto computation = handler_.FitContention(call);
  ASSERT_TRUE(computation.ok()) << computation.status();
  EXPECT_FALSE(computation->content().empty()) << "equal calls share an answer";
  const auto answer = (*std::move(computation))(NeverStop);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_NEAR(answer->answer.contention.alpha2, 1e-4, 1e-9);
  EXPECT_NEAR(answer->answer.contention.alone.gamma1 / 1.2e9, 1, 1e-3);
  EXPECT_EQ(answer->unusable_because, "");
  EXPECT_TRUE(answer->assumptions.Hold()) << answer->assumptions.why;
  // Twice as fast beside computation as alone: A2 fails, and is named.
  for (MeasuredTransfer& transfer : call.draft.transfers)
    transfer.seconds *= transfer.overlapped ? 0.5 : 1;
  const auto odd = (*handler_.FitContention(call))(NeverStop);
  ASSERT_TRUE(odd.ok()) << odd.status();
  EXPECT_FALSE(odd->assumptions.transfer_not_faster);
  EXPECT_THAT(odd->assumptions.why, ::testing::HasSubstr("64 threads"));
  auto stopped = handler_.FitContention(call);
  EXPECT_EQ((*std::move(stopped))([] { return absl::CancelledError(); }).status().code(),
            absl::StatusCode::kCancelled);
  call.draft.slowdowns[1].slowdown = -1;
  EXPECT_THAT(Fields(handler_.FitContention(call).status()), ElementsAre("slowdowns[1].slowdown"));
}

TEST_F(PredictionHandlerTest, AStopReachesTheSimulation) {
  auto computation = handler_.PredictThroughput(
      {.source = {.recorded = "profiles/small"},
       .draft = {.worker_counts = {8}, .options = {.steps_per_worker = 10'000'000}}});
  ASSERT_TRUE(computation.ok()) << computation.status();
  int checks = 0;
  const auto stop = [&]() -> absl::Status {
    return ++checks < 3 ? absl::OkStatus() : absl::CancelledError("enough");
  };
  EXPECT_EQ((*std::move(computation))(stop).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(checks, 3);
}

TEST_F(PredictionHandlerTest, AComputationOutlivesItsProfile) {
  auto computation = handler_.PredictThroughput(
      {.source = {.recorded = "profiles/small"}, .draft = {.options = Short()}});
  ASSERT_TRUE(store_.Delete("small", "").ok());
  EXPECT_TRUE((*std::move(computation))(NeverStop).ok());
}

TEST_F(PredictionHandlerTest, AProfileThatCannotBeReadIsDataLoss) {
  ASSERT_TRUE(store_.Put({.summary = {.id = "broken", .digest = "d"}, .content = "\xFF"}, "").ok());
  EXPECT_EQ(handler_.PredictThroughput({.source = {.recorded = "profiles/broken"}}).status().code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace stepcast::server::prediction_handler_test
