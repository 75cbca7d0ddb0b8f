#include "stepcast/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/src/advice_request.h"

#include "stepcast/error_details.h"
#include "tests/client/support/text_proto.h"

namespace stepcast::client::advice_test {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using testing::ElementsAre;
using testing::HasSubstr;

using Request = v1::RecommendWorkersRequest;
using Response = v1::RecommendWorkersResponse;

std::string FaultOf(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(GetErrorDetails(status).reason, "ADVICE_INVALID");
  return std::string(status.message());
}

std::string FaultOfText(std::string_view text) {
  const auto question = ParseAdviceText(text);
  EXPECT_FALSE(question.ok()) << text;
  return question.ok() ? "" : FaultOf(question.status());
}

AdviceQuestion Parsed(std::string_view text) {
  const auto question = ParseAdviceText(text);
  EXPECT_TRUE(question.ok()) << question.status();
  return question.ok() ? *question : AdviceQuestion();
}

TEST(AdviceTextTest, AProfileAloneAsksForTheKneeOfOneToSixteen) {
  const AdviceQuestion question = Parsed("profile=resnet50");
  EXPECT_EQ(question.profile, "resnet50");
  EXPECT_EQ(question.objective, AdviceObjective::kKnee);
  EXPECT_EQ(question.min_workers, 1);
  EXPECT_EQ(question.max_workers, 16);
  EXPECT_TRUE(CheckAdviceQuestion(question).ok());
}

TEST(AdviceTextTest, EveryFieldIsTakenInAnyOrder) {
  const AdviceQuestion question = Parsed(
      "examples=1000000;min=2;objective=deadline=90m;max=64;worker-hour=2.5;node-hour=20;"
      "workers-per-node=2;intra-bandwidth=300e9;profile=profiles/a-1");
  EXPECT_EQ(question.intra_node_bandwidth_bytes_per_second, 300e9);
  EXPECT_EQ(question.workers_per_node, 2);
  EXPECT_EQ(question.profile, "profiles/a-1");
  EXPECT_EQ(question.examples, 1'000'000);
  EXPECT_EQ(question.min_workers, 2);
  EXPECT_EQ(question.max_workers, 64);
  EXPECT_EQ(question.objective, AdviceObjective::kDeadline);
  EXPECT_EQ(question.deadline, nanoseconds(minutes(90)));
  EXPECT_EQ(question.prices.worker_hour(), 2.5);
  EXPECT_EQ(question.prices.node_hour(), 20);
}

TEST(AdviceTextTest, EveryObjectiveHasItsWord) {
  EXPECT_EQ(Parsed("profile=a;objective=knee").objective, AdviceObjective::kKnee);
  EXPECT_EQ(Parsed("profile=a;objective=throughput").objective, AdviceObjective::kThroughput);
  EXPECT_EQ(Parsed("profile=a;objective=cost").objective, AdviceObjective::kCost);
  const AdviceQuestion efficient = Parsed("profile=a;objective=efficiency=0.8");
  EXPECT_EQ(efficient.objective, AdviceObjective::kEfficiency);
  EXPECT_EQ(efficient.min_efficiency, 0.8);
  EXPECT_EQ(Parsed("profile=a;objective=deadline=2d").deadline, nanoseconds(hours(48)));
  EXPECT_EQ(Parsed("profile=a;objective=deadline=1h30m").deadline, nanoseconds(minutes(90)));
}

TEST(AdviceTextTest, WhatIsWrongIsNamedWithItsField) {
  EXPECT_EQ(FaultOfText(""), "text: \"\" is not a field KEY=VALUE");
  EXPECT_EQ(FaultOfText("objective=knee"), "profile: required");
  EXPECT_EQ(FaultOfText("profile=a;"), "text: \"\" is not a field KEY=VALUE");
  EXPECT_EQ(FaultOfText("profile=a;profile=b"), "\"profile\": given twice");
  EXPECT_THAT(FaultOfText("profile=a;color=red"), HasSubstr("\"color\": no such field"));
  EXPECT_THAT(FaultOfText("profile=a;=1"), HasSubstr("\"\": no such field"));
  EXPECT_THAT(FaultOfText("profile=A"), HasSubstr("profile: \"A\" is not the name of a profile"));
  EXPECT_THAT(FaultOfText("profile=../x"), HasSubstr("profile: "));
  EXPECT_THAT(FaultOfText("profile=profiles/"), HasSubstr("profile: "));
  EXPECT_THAT(FaultOfText("profile=a b"), HasSubstr("profile: "));
  for (const char* value :
       {"", "fast", "efficiency", "efficiency=", "efficiency=0", "efficiency=1.1", "efficiency=nan",
        "efficiency=-1", "knee=1", "deadline", "deadline=", "deadline=0h", "deadline=-6h",
        "deadline=6", "deadline=inf", "deadline=1e9h", "deadline=99999d", "deadline=d"})
    EXPECT_THAT(FaultOfText(absl::StrCat("profile=a;objective=", value)),
                HasSubstr(absl::StrCat("objective: \"", value, "\" is not knee")));
  for (const char* value : {"", "0", "-1", "4097", "1.5", "99999999999999999999", "+1", " 1"}) {
    EXPECT_THAT(FaultOfText(absl::StrCat("profile=a;min=", value)), HasSubstr("min: \""));
    EXPECT_THAT(FaultOfText(absl::StrCat("profile=a;max=", value)), HasSubstr("max: \""));
  }
  for (const char* value : {"", "0", "-1", "1e6", "9007199254740993"})
    EXPECT_THAT(FaultOfText(absl::StrCat("profile=a;examples=", value)), HasSubstr("examples: \""));
  for (const char* value : {"", "0", "-1", "inf", "nan", "1e13", "$3"})
    EXPECT_THAT(FaultOfText(absl::StrCat("profile=a;worker-hour=", value)),
                HasSubstr("worker-hour: \""));
}

TEST(AdviceTextTest, HostileValuesAreShortenedAndEscapedInWhatIsSaid) {
  const std::string fault = FaultOfText("profile=\x1b[31m\n\"" + std::string(500, 'x'));
  EXPECT_THAT(fault, HasSubstr("\\x1b[31m\\n\\\"xxx"));
  EXPECT_LT(fault.size(), 300);
  EXPECT_THAT(FaultOfText("profile=" + std::string(2000, 'a')), HasSubstr("more than 1024"));
  AdviceQuestion question;
  EXPECT_THAT(FaultOf(SetAdviceField("profile", std::string(2000, 'a'), question)),
              HasSubstr("profile: 2000 bytes, more than 1024"));
}

TEST(AdviceTextTest, RandomBytesAreAnsweredOrRefusedAndNeverMore) {
  std::minstd_rand random(7);
  const std::string letters =
      std::string("profile=objctive;0123456789.=;hd-\xff\n \"") + std::string(1, '\0');
  for (int round = 0; round < 20'000; ++round) {
    std::string text = round % 2 == 0 ? "profile=a;objective=" : "";
    const size_t length = random() % 40;
    for (size_t i = 0; i < length; ++i) text += letters[random() % letters.size()];
    const auto question = ParseAdviceText(text);
    if (question.ok()) {
      EXPECT_FALSE(question->profile.empty()) << text;
    } else {
      EXPECT_EQ(question.status().code(), absl::StatusCode::kInvalidArgument) << text;
    }
  }
}

TEST(AdviceQuestionTest, WhatNeedsEachOtherIsChecked) {
  EXPECT_EQ(FaultOf(CheckAdviceQuestion(Parsed("profile=a;objective=deadline=1h"))),
            "examples: required by a deadline");
  EXPECT_THAT(FaultOf(CheckAdviceQuestion(Parsed("profile=a;objective=cost"))),
              HasSubstr("cost needs a price above 0"));
  EXPECT_EQ(FaultOf(CheckAdviceQuestion(Parsed("profile=a;min=4;max=3"))),
            "max: 3 is not from min, 4, to 4096");
  EXPECT_EQ(FaultOf(CheckAdviceQuestion(Parsed("profile=a;min=4;max=400"))),
            "max: 400 is more than 256 above min, 4");
  AdviceQuestion question = Parsed("profile=a;min=4;max=8");
  question.workers_per_node = 3;
  EXPECT_EQ(FaultOf(CheckAdviceQuestion(question)),
            "workers_per_node: 3 does not divide both min, 4, and max, 8");
  question.workers_per_node = 0;
  EXPECT_EQ(FaultOf(CheckAdviceQuestion(question)), "workers_per_node: 0 is not from 1 to 4096");
  question = AdviceQuestion();
  EXPECT_THAT(FaultOf(CheckAdviceQuestion(question)), HasSubstr("profile: "));
  question.profile = "a";
  question.objective = AdviceObjective::kEfficiency;
  question.min_efficiency = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(FaultOf(CheckAdviceQuestion(question)), HasSubstr("objective: "));
}

TEST(AdviceRequestTest, AnObjectiveIsTheServicesObjectiveAndConstraints) {
  const auto of = [](std::string_view text) { return RequestOf(Parsed(text)); };
  Request request = of("profile=a;min=2;max=9");
  EXPECT_EQ(request.profile(), "profiles/a");
  EXPECT_EQ(request.objective(), Request::KNEE);
  EXPECT_EQ(request.constraints().min_workers(), 2);
  EXPECT_EQ(request.constraints().max_workers(), 9);
  EXPECT_EQ(request.options().ByteSizeLong(), 0);
  EXPECT_FALSE(request.has_prices());
  EXPECT_EQ(of("profile=a;objective=throughput").objective(), Request::MAX_THROUGHPUT);
  request = of("profile=profiles/a;objective=efficiency=0.8");
  EXPECT_EQ(request.profile(), "profiles/a");
  EXPECT_EQ(request.objective(), Request::MAX_THROUGHPUT);
  EXPECT_EQ(request.constraints().min_scaling_efficiency(), 0.8);
  request = of("profile=a;objective=deadline=6h;examples=10");
  EXPECT_EQ(request.objective(), Request::MIN_COST);
  EXPECT_EQ(request.constraints().deadline().seconds(), 6 * 3600);
  EXPECT_EQ(request.constraints().examples(), 10);
  EXPECT_EQ(request.prices().worker_hour(), 1);
  request = of("profile=a;objective=deadline=6h;examples=10;node-hour=7");
  // A node of one worker: jobs with servers have no other.
  EXPECT_EQ(request.prices().worker_hour(), 7);
  EXPECT_EQ(request.prices().node_hour(), 0);
  EXPECT_EQ(of("profile=a;objective=cost;worker-hour=3").objective(), Request::MIN_COST);
}

TEST(AdviceRequestTest, TheKneeIsAskedForWhereOtherCountsMayHaveBeenLookedAt) {
  EXPECT_FALSE(NeedsKneeRequest(Parsed("profile=a;max=256")));
  EXPECT_FALSE(NeedsKneeRequest(Parsed("profile=a;max=8;objective=throughput")));
  EXPECT_TRUE(NeedsKneeRequest(Parsed("profile=a;max=9;objective=throughput")));
  const Request knee =
      KneeRequestOf(RequestOf(Parsed("profile=a;objective=deadline=6h;examples=10;max=9")));
  EXPECT_EQ(knee.objective(), Request::KNEE);
  EXPECT_FALSE(knee.has_prices());
  EXPECT_FALSE(knee.constraints().has_deadline());
  EXPECT_FALSE(knee.constraints().has_examples());
  EXPECT_EQ(knee.constraints().max_workers(), 9);
}

TEST(AdviceTextTest, ARateInsideANodeHasAUnitOrIsOfBytes) {
  AdviceQuestion question;
  for (const auto& [text, rate] : std::map<std::string, double>{{"300e9", 3e11},
                                                                {"300GB/s", 3e11},
                                                                {"2.4Tbit/s", 3e11},
                                                                {"3e11B/s", 3e11},
                                                                {"8bit/s", 1}}) {
    EXPECT_TRUE(SetAdviceField("intra-bandwidth", text, question).ok()) << text;
    EXPECT_DOUBLE_EQ(question.intra_node_bandwidth_bytes_per_second, rate) << text;
  }
  for (const char* text : {"", "fast", "GB/s", "300G", "300 GB/s", "300gB/s", "300GB", "300GGB/s",
                           "0", "-1GB/s", "1e16", "1e9TB/s", "300GB/s "}) {
    EXPECT_EQ(SetAdviceField("intra-bandwidth", text, question).code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(AdviceRequestTest, WorkersOfANodeShareItsLinksInCollectives) {
  AdviceQuestion question = Parsed("profile=a;min=4;max=16");
  EXPECT_FALSE(NeedsCommunication(question));
  question.workers_per_node = 4;
  EXPECT_TRUE(NeedsCommunication(question));
  Request request = RequestOf(question);
  v1::PredictThroughputResponse reply;
  reply.add_predictions()->mutable_scenario()->mutable_all_reduce();
  EXPECT_TRUE(SetWorkersPerNode(question, reply, request).ok());
  EXPECT_EQ(request.scenario().all_reduce().workers_per_node(), 4);
  EXPECT_FALSE(request.scenario().all_reduce().has_intra_node_bandwidth_bytes_per_second());
  question.intra_node_bandwidth_bytes_per_second = 3e11;
  EXPECT_TRUE(SetWorkersPerNode(question, reply, request).ok());
  EXPECT_EQ(request.scenario().all_reduce().intra_node_bandwidth_bytes_per_second(), 3e11);
  EXPECT_EQ(SetWorkersPerNode(question, {}, request).code(), absl::StatusCode::kInternal);
}

TEST(AdviceRequestTest, NodesOfAJobWithServersAreNumbersOfWorkersThatFillThem) {
  AdviceQuestion question = Parsed("profile=a;min=4;max=12;worker-hour=2;node-hour=20");
  question.workers_per_node = 4;
  question.intra_node_bandwidth_bytes_per_second = 3e11;
  Request request = RequestOf(question);
  v1::PredictThroughputResponse reply;
  reply.add_predictions()->mutable_scenario()->mutable_parameter_servers()->set_servers(1);
  EXPECT_TRUE(SetWorkersPerNode(question, reply, request).ok());
  EXPECT_FALSE(request.scenario().has_all_reduce());
  EXPECT_THAT(request.constraints().worker_counts(), ElementsAre(4, 8, 12));
  EXPECT_FALSE(request.constraints().has_min_workers());
  EXPECT_FALSE(request.constraints().has_max_workers());
  EXPECT_EQ(request.prices().worker_hour(), 7);
  EXPECT_EQ(request.prices().node_hour(), 0);
  question = Parsed("profile=a;min=4;max=8");
  question.workers_per_node = 4;
  request = RequestOf(question);
  EXPECT_TRUE(SetWorkersPerNode(question, reply, request).ok());
  EXPECT_FALSE(request.has_prices());
}

TEST(AdviceRequestTest, QuestionsThatDifferHaveOtherKeys) {
  std::map<std::string, std::string> texts;
  for (const char* text :
       {"profile=a", "profile=b", "profile=a;min=2", "profile=a;max=9", "profile=a;examples=3",
        "profile=a;objective=throughput", "profile=a;objective=efficiency=0.8",
        "profile=a;objective=efficiency=0.9", "profile=a;worker-hour=2",
        "profile=a;objective=deadline=1h;examples=3", "profile=a;objective=deadline=2h;examples=3"})
    EXPECT_TRUE(texts.emplace(KeyOf(Parsed(text)), text).second) << text;
  AdviceQuestion nodes = Parsed("profile=a");
  nodes.unit = AdviceUnit::kNodes;
  EXPECT_EQ(texts.count(KeyOf(nodes)), 0);
  EXPECT_EQ(KeyOf(Parsed("max=9;profile=a")), KeyOf(Parsed("profile=profiles/a;max=9")));
}

// A reply that chose `workers` of a curve of examples per second, by workers.
Response Reply(int32_t workers, const std::map<int32_t, double>& curve, double one = 100) {
  Response reply;
  for (const auto& [count, throughput] : curve) {
    v1::Prediction& prediction = *reply.add_frontier();
    prediction.mutable_scenario()->set_workers(count);
    prediction.set_examples_per_second(throughput);
    prediction.mutable_confidence_interval()->set_lower(throughput * 0.99);
    prediction.mutable_confidence_interval()->set_upper(throughput * 1.01);
    prediction.set_scaling_efficiency(throughput / one / count);
    prediction.set_steady_state(true);
    if (count == workers) *reply.mutable_prediction() = prediction;
  }
  reply.set_workers(workers);
  reply.set_reason("Because.");
  return reply;
}

const std::map<int32_t, double>& Curve() {
  static const auto* const curve =
      new std::map<int32_t, double>{{1, 100}, {2, 190}, {4, 340}, {8, 500}, {16, 520}};
  return *curve;
}

TEST(AdviceOfTest, TheCurveAndWhatStandsOutOfIt) {
  const auto advice = AdviceOf(Parsed("profile=a"), Reply(8, Curve()), nullptr);
  ASSERT_TRUE(advice.ok()) << advice.status();
  EXPECT_EQ(advice->chosen.workers, 8);
  EXPECT_EQ(advice->chosen.examples_per_second, 500);
  EXPECT_EQ(advice->chosen.lower, 495);
  EXPECT_EQ(advice->chosen.upper, 505);
  EXPECT_EQ(advice->curve.size(), 5);
  EXPECT_EQ(advice->knee, 8);
  EXPECT_EQ(advice->least_workers, 3);  // 265 between 190 and 340 is the least of 250 or more
  EXPECT_FALSE(advice->low_confidence);
  EXPECT_EQ(advice->summary, "8 workers 500/s 62% eff; 16 workers 520/s 32%");
  EXPECT_EQ(advice->reason, "Because.");
}

TEST(AdviceOfTest, NodesAreCountedWhereTheyAreAskedAbout) {
  AdviceQuestion question = Parsed("profile=a;min=4;max=16");
  question.unit = AdviceUnit::kNodes;
  question.workers_per_node = 4;
  const auto advice = AdviceOf(question, Reply(4, {{4, 340}, {8, 500}, {16, 3300}}, 200), nullptr);
  ASSERT_TRUE(advice.ok()) << advice.status();
  EXPECT_EQ(advice->summary, "1 node 340/s 42% eff; 4 nodes 3300/s 103%");
}

TEST(AdviceOfTest, TheLargestIsComparedWithTheSmallestAndALoneOneWithNothing) {
  auto advice = AdviceOf(Parsed("profile=a"), Reply(16, Curve()), nullptr);
  ASSERT_TRUE(advice.ok());
  EXPECT_EQ(advice->summary, "16 workers 520/s 32% eff; 1 worker 100/s 100%");
  advice = AdviceOf(Parsed("profile=a;max=1"), Reply(1, {{1, 0.01234}}), nullptr);
  ASSERT_TRUE(advice.ok());
  EXPECT_EQ(advice->summary, "1 worker 0.0123/s 0% eff");
}

TEST(AdviceOfTest, TheLeastWorthStartingKeepsADeadline) {
  const auto advice = AdviceOf(Parsed("profile=a;objective=deadline=10s;examples=4000"),
                               Reply(8, Curve()), nullptr);
  ASSERT_TRUE(advice.ok()) << advice.status();
  EXPECT_EQ(advice->least_workers, 6);  // 5 make 380/s on the line, and would take 10.5 s
  EXPECT_FALSE(advice->curve[2].keeps_constraints);
  EXPECT_TRUE(advice->curve[3].keeps_constraints);
}

TEST(AdviceOfTest, TheKneesReplyAddsItsPointsAndItsKnee) {
  const AdviceQuestion question = Parsed("profile=a;objective=efficiency=0.5");
  const Response knee = Reply(4, {{1, 100}, {3, 280}, {4, 341}, {6, 250}});
  const auto advice = AdviceOf(question, Reply(8, Curve()), &knee);
  ASSERT_TRUE(advice.ok()) << advice.status();
  EXPECT_EQ(advice->knee, 4);
  std::vector<int32_t> counts;
  for (const AdvicePoint& point : advice->curve) counts.push_back(point.workers);
  EXPECT_THAT(counts, ElementsAre(1, 2, 3, 4, 6, 8, 16));
  EXPECT_EQ(advice->curve[3].examples_per_second, 340);  // of the reply that chose
  EXPECT_FALSE(advice->curve[4].keeps_constraints);      // 42 % at 6
  EXPECT_EQ(advice->least_workers, 3);
}

TEST(AdviceOfTest, TheLeastWorthStartingIsFoundBetweenFewPointsAndFillsNodes) {
  AdviceQuestion question = Parsed("profile=a;min=2;max=16");
  question.workers_per_node = 2;
  auto advice = AdviceOf(question, Reply(16, {{2, 200}, {14, 1280}, {16, 1400}}), nullptr);
  ASSERT_TRUE(advice.ok());
  EXPECT_EQ(advice->least_workers, 8);  // 740 of 1400; 560 with 6
  question.objective = AdviceObjective::kEfficiency;
  question.min_efficiency = 0.9;
  advice = AdviceOf(question, Reply(14, {{2, 200}, {14, 1280}, {16, 1400}}), nullptr);
  ASSERT_TRUE(advice.ok());
  EXPECT_EQ(advice->least_workers, 8);
  advice = AdviceOf(question, Reply(16, {{16, 1400}}), nullptr);
  ASSERT_TRUE(advice.ok());
  EXPECT_EQ(advice->least_workers, 16);
}

TEST(AdviceOfTest, DoubtIsSaid) {
  Response reply = Reply(8, Curve());
  reply.mutable_prediction()->set_steady_state(false);
  EXPECT_TRUE(AdviceOf(Parsed("profile=a"), reply, nullptr)->low_confidence);
  reply = Reply(8, Curve());
  reply.mutable_prediction()->add_regimes();
  EXPECT_TRUE(AdviceOf(Parsed("profile=a"), reply, nullptr)->low_confidence);
  reply = Reply(8, Curve());
  reply.mutable_prediction()->mutable_confidence_interval()->set_upper(600);
  EXPECT_TRUE(AdviceOf(Parsed("profile=a"), reply, nullptr)->low_confidence);
}

TEST(AdviceOfTest, NoCountThatWillDoIsAFailedPrecondition) {
  Response reply;
  reply.set_infeasible_reason("too late by\n12 %");
  const auto advice = AdviceOf(Parsed("profile=a"), reply, nullptr);
  EXPECT_EQ(advice.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(advice.status().message(), "no number of workers will do: too late by?12 %");
}

TEST(AdviceOfTest, AReplyThatIsNotAboutTheQuestionIsRefused) {
  const AdviceQuestion question = Parsed("profile=a");
  const auto code = [&](const Response& reply) {
    return AdviceOf(question, reply, nullptr).status().code();
  };
  EXPECT_EQ(code(Reply(17, {{17, 100}})), absl::StatusCode::kInternal);
  EXPECT_EQ(code(Reply(-3, {{-3, 100}})), absl::StatusCode::kInternal);
  EXPECT_EQ(code(Reply(8, {{8, 0}})), absl::StatusCode::kInternal);
  EXPECT_EQ(code(Reply(8, {{8, std::numeric_limits<double>::quiet_NaN()}})),
            absl::StatusCode::kInternal);
  Response reply = Reply(8, Curve());
  reply.set_workers(4);
  EXPECT_EQ(code(reply), absl::StatusCode::kInternal);
  reply = Reply(8, Curve());
  reply.mutable_frontier(0)->mutable_scenario()->set_workers(0);
  EXPECT_EQ(code(reply), absl::StatusCode::kInternal);
}

TEST(AdviceOfTest, TextsOfTheServerFitALine) {
  Response reply = Reply(8, Curve());
  reply.set_reason(std::string(9000, 'x') + "\x1b[2J");
  for (int i = 0; i < 100; ++i) reply.add_warnings()->set_message("\xe2\x80\xae\n");
  const auto advice = AdviceOf(Parsed("profile=a"), reply, nullptr);
  ASSERT_TRUE(advice.ok());
  EXPECT_EQ(advice->reason.size(), 500);
  EXPECT_EQ(advice->warnings.size(), 20);
  EXPECT_EQ(advice->warnings[0], "????");
  EXPECT_EQ(PrintableText("abcdef", 5), "ab...");
}

}  // namespace
}  // namespace stepcast::client::advice_test
