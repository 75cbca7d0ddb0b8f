#include "core/orders/transfer_ranks.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "core/communication/parameter_servers.h"
#include "core/engine/simulation.h"
#include "tests/core/predict/example_profiles.h"

namespace stepcast::transfer_ranks_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int32_t kNone = Ranking::kUnranked;

Scenario ScenarioOf(const Profile& profile, const ScenarioDraft& draft) {
  return ResolveScenario(profile, draft).value();
}

std::vector<int32_t> RanksOf(const Profile& profile, const ScenarioDraft& draft,
                             ProgramTimes times = ProgramTimes::kRecorded) {
  const Scenario scenario = ScenarioOf(profile, draft);
  return TransferRanks(profile, scenario, BuildProgram(profile, scenario, times), NeverStop)
      .value();
}

// recv0, recv1, forward0, forward1, backward1, send1, update1, backward0, send0, update0.
Profile TwoLayers() { return testing::NetworkProfile(1, {.layers = 2}); }

TEST(TransferRanksTest, OrdersThatNeedNoRanksHaveNone) {
  for (const TransferOrder order :
       {TransferOrder::kGraph, TransferOrder::kRecorded, TransferOrder::kRandom}) {
    EXPECT_THAT(
        RanksOf(TwoLayers(), {.communication = ParameterServersDraft{.transfer_order = order}}),
        IsEmpty());
  }
}

TEST(TransferRanksTest, ReverseRanksTransfersInBothDirections) {
  EXPECT_THAT(
      RanksOf(TwoLayers(),
              {.communication = ParameterServersDraft{.transfer_order = TransferOrder::kReverse}}),
      ElementsAre(3, 2, kNone, kNone, kNone, 1, kNone, kNone, 0, kNone));
}

TEST(TransferRanksTest, ExplicitRanksWhatItNames) {
  EXPECT_THAT(
      RanksOf(TwoLayers(),
              {.communication =
                   ParameterServersDraft{.transfer_priorities = {{"recv1", 4}, {"send0", 2}}}}),
      ElementsAre(kNone, 4, kNone, kNone, kNone, kNone, kNone, kNone, 2, kNone));
}

TEST(TransferRanksTest, TicAndTacRankDownloadsOnly) {
  for (const TransferOrder order : {TransferOrder::kTic, TransferOrder::kTac}) {
    EXPECT_THAT(
        RanksOf(TwoLayers(), {.communication = ParameterServersDraft{.transfer_order = order}}),
        ElementsAre(0, order == TransferOrder::kTic ? 0 : 1, kNone, kNone, kNone, kNone, kNone,
                    kNone, kNone, kNone));
  }
}

TEST(TransferRanksTest, ParsingOverheadMovesTheOperationsButNotTheNames) {
  const ScenarioDraft draft{
      .communication = ParameterServersDraft{
          .parsing_overhead = ParsingOverhead{.seconds_per_byte = 0, .seconds = 1e-6},
          .transfer_priorities = {{"recv1", 4}}}};
  const std::vector<int32_t> ranks = RanksOf(TwoLayers(), draft);
  ASSERT_EQ(ranks.size(), 14u);  // ten, and parsing for each of the four transfers
  for (size_t op = 0; op < ranks.size(); ++op) EXPECT_EQ(ranks[op], op == 2 ? 4 : kNone);
}

// Alone, b goes first: it frees 2 ns, a but 1. Parsing takes half as long as the transfer: a frees
// 16 ns, b 7.
TEST(TransferRanksTest, ParsingIsComputationThatADownloadFrees) {
  const Profile profile =
      Profile::Create(
          testing::DraftOf({{.name = "a", .resource = Resource::kDownlink, .time_ns = 30},
                            {.name = "b", .resource = Resource::kDownlink, .time_ns = 10},
                            {.name = "of_a", .time_ns = 1, .waiting_for = {0}},
                            {.name = "of_b", .time_ns = 2, .waiting_for = {1}}}))
          .value();
  EXPECT_THAT(RanksOf(profile, {.communication =
                                    ParameterServersDraft{.transfer_order = TransferOrder::kTac}}),
              ElementsAre(1, 0, kNone, kNone));
  const ScenarioDraft parsing{
      .communication = ParameterServersDraft{
          .parsing_overhead = ParsingOverhead{.seconds_per_byte = 0.5e-9, .seconds = 0},
          .transfer_order = TransferOrder::kTac}};
  EXPECT_THAT(RanksOf(profile, parsing), ElementsAre(0, kNone, 1, kNone, kNone, kNone));
}

// By the first step, or by the mean, a would go first.
TEST(TransferRanksTest, TacTakesTheLeastTimeOfEachOperationOverTheSteps) {
  ProfileDraft draft =
      testing::DraftOf({{.name = "a", .resource = Resource::kDownlink, .time_ns = 10},
                        {.name = "b", .resource = Resource::kDownlink, .time_ns = 10},
                        {.name = "of_a", .time_ns = 9, .waiting_for = {0}},
                        {.name = "of_b", .time_ns = 5, .waiting_for = {1}}});
  draft.steps.push_back(draft.steps[0]);
  draft.steps[1].end_ns = {10, 10, 4, 6};
  draft.steps.push_back({.start_ns = {0, 0, 100, 100}, .end_ns = {10, 10, 109, 105}});
  const Profile profile = Profile::Create(std::move(draft)).value();
  for (const ProgramTimes times : {ProgramTimes::kRecorded, ProgramTimes::kLeast}) {
    EXPECT_THAT(
        RanksOf(profile,
                {.communication = ParameterServersDraft{.transfer_order = TransferOrder::kTac}},
                times),
        ElementsAre(1, 0, kNone, kNone));
  }
}

TEST(TransferRanksTest, SlowerLinksMayChangeTacButNeverTic) {
  const Profile profile =
      Profile::Create(
          testing::DraftOf({{.name = "a", .resource = Resource::kDownlink, .time_ns = 30},
                            {.name = "b", .resource = Resource::kDownlink, .time_ns = 10},
                            {.name = "of_a", .time_ns = 16, .waiting_for = {0}},
                            {.name = "of_b", .time_ns = 7, .waiting_for = {1}}}))
          .value();
  const auto ranks_at = [&](TransferOrder order, double bandwidth) {
    return RanksOf(profile, {.bandwidth_bytes_per_second = bandwidth,
                             .communication = ParameterServersDraft{.transfer_order = order}});
  };
  EXPECT_THAT(ranks_at(TransferOrder::kTac, testing::kNanosecondPerByte),
              ElementsAre(0, 1, kNone, kNone));
  // At ten times the speed transfers are 3 and 1 ns: min(P_b, M_a) = 3, min(P_a, M_b) = 1.
  EXPECT_THAT(ranks_at(TransferOrder::kTac, 10 * testing::kNanosecondPerByte),
              ElementsAre(1, 0, kNone, kNone));
  EXPECT_EQ(ranks_at(TransferOrder::kTic, testing::kNanosecondPerByte),
            ranks_at(TransferOrder::kTic, 10 * testing::kNanosecondPerByte));
}

// Two transfers of 16 TiB at a byte per second: their sum is no Span.
TEST(TransferRanksTest, TimesPastTheSimulatedTimeThereIsAreAnError) {
  const Profile profile =
      Profile::Create(
          testing::DraftOf(
              {{.name = "a", .resource = Resource::kDownlink, .time_ns = int64_t{1} << 44},
               {.name = "b", .resource = Resource::kDownlink, .time_ns = int64_t{1} << 44},
               {.name = "compute", .time_ns = 1, .waiting_for = {0, 1}}}))
          .value();
  const Scenario scenario = ScenarioOf(
      profile, {.bandwidth_bytes_per_second = 1,
                .communication = ParameterServersDraft{.transfer_order = TransferOrder::kTac}});
  EXPECT_EQ(
      TransferRanks(profile, scenario, BuildProgram(profile, scenario), NeverStop).status().code(),
      absl::StatusCode::kOutOfRange);
}

TEST(TransferRanksTest, StopsWhenTold) {
  const Profile profile = testing::NetworkProfile(1, {.layers = 2000});
  const Scenario scenario = ScenarioOf(
      profile, {.communication = ParameterServersDraft{.transfer_order = TransferOrder::kTac}});
  const Program graph = BuildProgram(profile, scenario);
  EXPECT_EQ(TransferRanks(profile, scenario, graph, [] { return absl::CancelledError("enough"); })
                .status(),
            absl::CancelledError("enough"));
}

}  // namespace
}  // namespace stepcast::transfer_ranks_test
