#include "server/report/report.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/time_util.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast::server::report_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A service of one job: so many examples a second a worker, and the recommendation of three.
class FakeSource : public ReportSource {
 public:
  absl::StatusOr<v1::Profile> GetProfile(const v1::GetProfileRequest& request) override {
    if (no_profile) return MakeError(absl::StatusCode::kNotFound, "none", {.reason = "GONE"});
    v1::Profile profile;
    profile.set_name(request.name());
    profile.set_model("tiny");
    profile.set_owner("somebody");
    profile.set_operation_count(4);
    profile.set_batch_size(batch_size);
    return profile;
  }

  absl::StatusOr<v1::PredictThroughputResponse> PredictThroughput(
      const v1::PredictThroughputRequest& request) override {
    if (request.scenario().has_all_reduce() != all_reduce && !predicts_the_other)
      return MakeError(absl::StatusCode::kInvalidArgument, "not for this profile", {.reason = "X"});
    predicted.push_back(request);
    v1::PredictThroughputResponse reply;
    for (const int32_t workers : request.worker_counts())
      *reply.add_predictions() = PredictionOf(workers, request);
    return reply;
  }

  absl::StatusOr<v1::RecommendWorkersResponse> RecommendWorkers(
      const v1::RecommendWorkersRequest& request) override {
    recommended = request;
    if (no_advice) return absl::UnavailableError("too much to do");
    v1::RecommendWorkersResponse reply;
    reply.set_workers(3);
    reply.set_reason("three are best");
    *reply.mutable_prediction() = PredictionOf(3, {});
    *reply.add_frontier() = PredictionOf(3, {});
    return reply;
  }

  absl::StatusOr<v1::OptimizeOrderResponse> OptimizeOrder(
      const v1::OptimizeOrderRequest& request) override {
    ordered = request;
    v1::OptimizeOrderResponse reply;
    reply.set_chosen(v1::TAC);
    for (const v1::OrderMethod method : {v1::TIC, v1::TAC}) {
      v1::TransferOrderResult& order = *reply.add_orders();
      order.set_method(method);
      for (int i = 0; i < 100; ++i) order.add_transfers()->set_name("transfer");
    }
    return reply;
  }

  absl::StatusOr<v1::OptimizeCommunicationResponse> OptimizeCommunication(
      const v1::OptimizeCommunicationRequest& request) override {
    tuned = request;
    v1::OptimizeCommunicationResponse reply;
    for (const int groups : {2, 5}) {
      v1::CommunicationStrategy& strategy = *reply.add_strategies();
      for (int i = 0; i < groups; ++i) strategy.add_groups()->add_operations("gradient");
    }
    return reply;
  }

  absl::StatusOr<v1::CompareModelsResponse> CompareModels(
      const v1::CompareModelsRequest& request) override {
    compared = request;
    return v1::CompareModelsResponse();
  }

  absl::StatusOr<v1::DiagnoseJobResponse> DiagnoseJob(
      const v1::DiagnoseJobRequest& request) override {
    diagnosed.push_back(request);
    v1::DiagnoseJobResponse reply;
    *reply.mutable_prediction() = PredictionOf(request.scenario().workers(), {});
    reply.set_path_seconds(0.5);
    *reply.add_what_ifs()->mutable_prediction() = PredictionOf(2, {});
    for (int rank = 0; rank < recorded_workers; ++rank) {
      reply.mutable_recording()->mutable_report()->add_workers()->set_name(
          absl::StrCat("rank ", rank));
    }
    return reply;
  }

  absl::Status GenerateTrace(const v1::GenerateTraceRequest& request,
                             const std::function<absl::Status(std::string_view)>& take) override {
    traced = request;
    return take(R"({"traceEvents":[)"
                R"({"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"worker"}},)"
                R"({"ph":"X","pid":1,"tid":1,"cat":"step","ts":0,"dur":5,"args":{"step":0}},)"
                R"({"ph":"X","pid":1,"tid":2,"cat":"computation","name":"f","ts":1,"dur":2,)"
                R"("args":{"step":0}}]})");
  }

  bool no_profile = false;
  bool no_advice = false;
  bool all_reduce = false;
  bool predicts_the_other = true;
  int servers = 1;
  int recorded_workers = 0;
  int batch_size = 0;
  std::vector<v1::PredictThroughputRequest> predicted;
  std::optional<v1::RecommendWorkersRequest> recommended;
  std::optional<v1::OptimizeOrderRequest> ordered;
  std::optional<v1::OptimizeCommunicationRequest> tuned;
  std::optional<v1::CompareModelsRequest> compared;
  std::vector<v1::DiagnoseJobRequest> diagnosed;
  std::optional<v1::GenerateTraceRequest> traced;

 private:
  v1::Prediction PredictionOf(int32_t workers, const v1::PredictThroughputRequest& request) const {
    v1::Prediction prediction;
    v1::Scenario& scenario = *prediction.mutable_scenario();
    scenario.set_workers(workers);
    if (all_reduce && !request.scenario().has_parameter_servers()) {
      scenario.mutable_all_reduce()->add_measured();
      prediction.mutable_collectives()->add_collectives()->add_operations("gradient");
      prediction.mutable_collectives()->set_exposed_seconds(0.25);
    } else {
      (*scenario.mutable_parameter_servers()->mutable_transfer_priorities())["tensor"] = 1;
      scenario.mutable_parameter_servers()->set_servers(servers);
    }
    prediction.set_examples_per_second(0.1 * workers);
    *prediction.mutable_step_time()->mutable_mean() =
        google::protobuf::util::TimeUtil::MicrosecondsToDuration(5);
    return prediction;
  }
};

ReportRequest RequestOf(std::vector<int32_t> counts) {
  ReportSubject subject;
  subject.question.set_profile("profiles/job");
  subject.question.mutable_options()->set_seed(7);
  return {.subjects = {std::move(subject)}, .worker_counts = std::move(counts)};
}

nlohmann::json DataOf(const Report& report) {
  return nlohmann::json::parse(report.data).at("subjects").at(0);
}

TEST(ReportTest, AsksTheSameQuestionOfEveryMethod) {
  FakeSource source;
  const auto report = CollectReport(source, RequestOf({2, 1, 3, 9}));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->title, "Stepcast: tiny");
  EXPECT_EQ(report->summary, "three are best");
  ASSERT_EQ(source.predicted.size(), 2U);
  EXPECT_THAT(source.predicted[0].worker_counts(), ElementsAre(2, 1, 3, 9));
  EXPECT_EQ(source.predicted[0].options().seed(), 7U);
  EXPECT_TRUE(source.predicted[1].scenario().has_all_reduce());
  EXPECT_EQ(source.recommended->constraints().min_workers(), 1);
  EXPECT_EQ(source.recommended->constraints().max_workers(), 9);
  // About the recommended number.
  EXPECT_EQ(source.ordered->scenario().workers(), 3);
  EXPECT_EQ(source.traced->scenario().workers(), 3);
  ASSERT_EQ(source.diagnosed.size(), 1U);
  EXPECT_EQ(source.diagnosed[0].scenario().workers(), 3);
  EXPECT_FALSE(source.tuned.has_value());
  EXPECT_FALSE(source.compared->scenario().has_parameter_servers());
  const nlohmann::json data = DataOf(*report);
  EXPECT_EQ(data.at("missing"), nlohmann::json::object());
  EXPECT_EQ(data.at("prediction").at("predictions").size(), 4U);
  EXPECT_EQ(data.at("prediction").at("predictions").at(1).at("examplesPerSecond"), 0.1);
  EXPECT_EQ(data.at("diagnosis").at("pathSeconds"), 0.5);
  EXPECT_EQ(data.at("timeline").at("operations"),
            nlohmann::json::parse("[[0, 0, 0, 1000, 2000, 0]]"));
}

TEST(ReportTest, WeakAndStrongScalingStandBesideEachOther) {
  FakeSource source;
  source.batch_size = 12;
  const auto weak = CollectReport(source, RequestOf({1, 2, 4, 5, 8}));
  ASSERT_TRUE(weak.ok()) << weak.status();
  ASSERT_EQ(source.predicted.size(), 3U);
  EXPECT_EQ(source.predicted[2].scenario().change().global_batch_size(), 12);
  EXPECT_THAT(source.predicted[2].worker_counts(), ElementsAre(1, 2, 4)) << "what divides it";
  EXPECT_EQ(DataOf(*weak).at("scaling").at("other"), "strong");
  EXPECT_EQ(DataOf(*weak).at("scaling").at("globalBatch"), 12);

  ReportRequest shared = RequestOf({1, 2, 4});
  v1::JobChange& change = *shared.subjects[0].question.mutable_scenario()->mutable_change();
  change.set_global_batch_size(48);
  change.set_fixed_fraction(0.1);
  source.predicted.clear();
  const auto strong = CollectReport(source, shared);
  ASSERT_TRUE(strong.ok()) << strong.status();
  EXPECT_EQ(source.predicted[0].scenario().change().global_batch_size(), 48);
  EXPECT_EQ(source.predicted[2].scenario().change().ByteSizeLong(), 0U) << "as it was recorded";
  EXPECT_EQ(DataOf(*strong).at("scaling").at("other"), "weak");
  EXPECT_EQ(DataOf(*strong).at("scaling").at("globalBatch"), 48);

  source.batch_size = 7;
  const auto odd = CollectReport(source, RequestOf({2, 3}));
  ASSERT_TRUE(odd.ok()) << odd.status();
  EXPECT_EQ(DataOf(*odd).at("missing").at("scaling"),
            "no number of workers asked about divides a batch of 7");
}

TEST(ReportTest, ARecordingOfSeveralWorkersIsDiagnosedWithAsMany) {
  FakeSource source;
  source.recorded_workers = 2;
  const auto report = CollectReport(source, RequestOf({1, 2, 3}));
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(source.diagnosed.size(), 2U);
  EXPECT_EQ(source.diagnosed[1].scenario().workers(), 2);
  EXPECT_EQ(source.traced->scenario().workers(), 3) << "the rest is of what is recommended";
  const nlohmann::json diagnosis = DataOf(*report).at("diagnosis");
  EXPECT_EQ(diagnosis.at("prediction").at("scenario").at("workers"), 2);
  EXPECT_EQ(diagnosis.at("recording").at("report").at("workers").at(1).at("name"), "rank 1");
  // As many as are recommended: one question says it all.
  FakeSource as_recommended;
  as_recommended.recorded_workers = 3;
  ASSERT_TRUE(CollectReport(as_recommended, RequestOf({1, 2, 3})).ok());
  EXPECT_EQ(as_recommended.diagnosed.size(), 1U);
}

TEST(ReportTest, AJobOfAllReducesIsTunedAndComparedWithServers) {
  FakeSource source;
  source.all_reduce = true;
  const auto report = CollectReport(source, RequestOf({1, 2, 3}));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(source.ordered.has_value());
  EXPECT_EQ(source.tuned->scenario().workers(), 3);
  EXPECT_TRUE(source.predicted.at(1).scenario().has_parameter_servers());
  const nlohmann::json data = DataOf(*report);
  EXPECT_EQ(data.at("tuning").at("strategies").at(1).at("groupCount"), 5);
}

TEST(ReportTest, LeavesOutWhatIsThereOnceAnOperation) {
  FakeSource source;
  const auto servers = CollectReport(source, RequestOf({1, 2, 3}));
  source.all_reduce = true;
  const auto reduces = CollectReport(source, RequestOf({1, 2, 3}));
  ASSERT_TRUE(servers.ok() && reduces.ok());
  EXPECT_THAT(servers->data, testing::Not(HasSubstr("\"tensor\"")));
  EXPECT_THAT(servers->data, testing::Not(HasSubstr("somebody")));
  const nlohmann::json orders = DataOf(*servers).at("orders").at("orders");
  EXPECT_FALSE(orders.at(0).contains("transfers"));
  EXPECT_EQ(orders.at(1).at("transfers").size(), 20U);
  EXPECT_THAT(reduces->data, testing::Not(HasSubstr("\"gradient\"")));
  EXPECT_THAT(reduces->data, testing::Not(HasSubstr("\"measured\"")));
  EXPECT_THAT(reduces->data, HasSubstr("\"exposedSeconds\":0.25"));
}

TEST(ReportTest, WithoutAProfileThereIsNoReport) {
  FakeSource source;
  source.no_profile = true;
  EXPECT_EQ(DetailsOf(CollectReport(source, RequestOf({1})).status()).reason, "GONE");
}

TEST(ReportTest, WhatCouldNotBeHadIsNamedWithItsReason) {
  FakeSource source;
  source.no_advice = true;
  source.predicts_the_other = false;
  const auto report = CollectReport(source, RequestOf({1, 5}));
  ASSERT_TRUE(report.ok()) << report.status();
  const nlohmann::json data = DataOf(*report);
  EXPECT_EQ(data.at("missing").at("recommendation"), "too much to do");
  EXPECT_EQ(data.at("missing").at("otherKind"), "not for this profile");
  EXPECT_FALSE(data.contains("recommendation"));
  // Then it is about the last number.
  EXPECT_EQ(source.traced->scenario().workers(), 5);
}

TEST(ReportTest, OfManyNumbersTheOtherKindGetsFew) {
  FakeSource source;
  std::vector<int32_t> counts(64);
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = static_cast<int32_t>(i) + 1;
  ASSERT_TRUE(CollectReport(source, RequestOf(counts)).ok());
  EXPECT_THAT(source.predicted.at(1).worker_counts(), ElementsAre(1, 2, 3, 6, 12, 24, 48, 64));
}

TEST(ReportTest, WhereServersAreChosenTheCurveIsOfThose) {
  FakeSource source;
  ReportRequest request = RequestOf({1, 2});
  request.subjects[0].question.mutable_constraints()->set_max_parameter_servers(4);
  source.servers = 2;
  ASSERT_TRUE(CollectReport(source, request).ok());
  EXPECT_FALSE(source.recommended->scenario().has_parameter_servers());
  EXPECT_EQ(source.predicted.at(0).scenario().parameter_servers().servers(), 2);
  EXPECT_EQ(source.traced->scenario().parameter_servers().servers(), 2);
}

TEST(ReportTest, AnInlineProfileIsSentAlongAndNotAskedFor) {
  FakeSource source;
  source.no_profile = true;
  ReportRequest request = RequestOf({1});
  v1::Profile& profile = *request.subjects[0].question.mutable_inline_profile();
  profile.set_display_name("mine");
  profile.add_operations()->set_name("secret-operation");
  const auto report = CollectReport(source, request);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->title, "Stepcast: mine");
  EXPECT_EQ(source.predicted.at(0).inline_profile().display_name(), "mine");
  EXPECT_EQ(DataOf(*report).at("profile").at("operationCount"), 1);
}

TEST(ReportTest, SaysOfWhichFileWhenAndByWhichCommand) {
  FakeSource source;
  ReportRequest request = RequestOf({1});
  request.subjects[0].file = "runs/one.json";
  request.command = "stepcast report runs/one.json --workers 1";
  request.made_at_seconds = 86400 + 3600;
  const auto report = CollectReport(source, request);
  ASSERT_TRUE(report.ok()) << report.status();
  const nlohmann::json data = nlohmann::json::parse(report->data);
  EXPECT_EQ(data.at("command"), "stepcast report runs/one.json --workers 1");
  EXPECT_EQ(data.at("made"), "1970-01-02 01:00 UTC");
  EXPECT_EQ(data.at("subjects").at(0).at("file"), "runs/one.json");
  EXPECT_EQ(data.at("subjects").at(0).at("label"), "tiny");
}

TEST(ReportTest, AFileWithoutANameIsNamedByItself) {
  FakeSource source;
  ReportRequest request = RequestOf({1});
  request.subjects[0].file = "one.json";
  request.subjects[0].question.mutable_inline_profile();
  EXPECT_EQ(CollectReport(source, request)->title, "Stepcast: one.json");
}

TEST(ReportTest, AWordIsQuotedWhereAShellWouldReadMoreIntoIt) {
  EXPECT_EQ(ShellWord("1-16"), "1-16");
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("a b"), "'a b'");
  EXPECT_EQ(ShellWord("it's; rm $X"), "'it'\\''s; rm $X'");
}

TEST(ReportTest, TwoSubjectsAreNamedApart) {
  FakeSource source;
  ReportRequest request = RequestOf({1, 2});
  request.subjects.push_back(request.subjects[0]);
  request.subjects[0].label = "now";
  request.subjects[1].label = "then";
  const auto report = CollectReport(source, request);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->title, "Stepcast: now and then");
  EXPECT_EQ(report->summary, "now: three are best\nthen: three are best");
}

}  // namespace
}  // namespace stepcast::server::report_test
