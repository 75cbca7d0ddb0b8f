#include "deploy/kubernetes/admission/job_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"

#include "core/base/error.h"

namespace stepcast::admission::job_advice_test {
namespace {

using client::Advice;
using client::AdvicePoint;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Review Job(json annotations, int parallelism = 16) {
  Review review{.api_version = "admission.k8s.io/v1",
                .uid = "u",
                .operation = "CREATE",
                .group = "batch",
                .kind = "Job",
                .name = "train"};
  review.object = {{"metadata", {{"labels", {{"stepcast.dev/profile", "resnet"}}}}},
                   {"spec",
                    {{"parallelism", parallelism},
                     {"completions", parallelism},
                     {"completionMode", "Indexed"}}}};
  if (!annotations.is_null()) review.object["metadata"]["annotations"] = std::move(annotations);
  return review;
}

JobQuestion Question(const Review& review) {
  const absl::StatusOr<JobQuestion> question = QuestionOf(review, {});
  EXPECT_TRUE(question.ok()) << question.status();
  return question.ok() ? *question : JobQuestion{};
}

std::string Why(const Review& review) {
  return std::string(QuestionOf(review, {}).status().message());
}

Advice Eight() {
  Advice advice{.chosen = {8, 3120, 3050, 3190, 0.84}, .knee = 8, .least_workers = 4};
  advice.curve = {{1, 464, 460, 470, 1},
                  {4, 1700, 1650, 1750, 0.92},
                  advice.chosen,
                  {16, 3300, 3200, 3400, 0.45}};
  advice.summary = "8 workers 3120/s 84% eff";
  advice.reason = "8 workers are the knee.";
  return advice;
}

json After(const Review& review, const JobAnswer& decided) {
  return review.object.patch(decided.answer.patch);
}

TEST(JobAdviceTest, OnlyCreationsOfLabelledObjectsAsk) {
  EXPECT_TRUE(AsksForAdvice(Job({})));
  Review other = Job({});
  other.operation = "UPDATE";
  EXPECT_FALSE(AsksForAdvice(other));
  other = Job({});
  other.sub_resource = "status";
  EXPECT_FALSE(AsksForAdvice(other));
  other = Job({});
  other.object["metadata"].erase("labels");
  EXPECT_FALSE(AsksForAdvice(other));
}

TEST(JobAdviceTest, NobodyGetsMoreThanAskedForUnlessItMayBe) {
  const json set{{"stepcast.dev/mode", "set"}};
  EXPECT_EQ(Question(Job(set, 4)).max_pods, 4);
  EXPECT_EQ(Question(Job({}, 4)).max_pods, 16);
  EXPECT_EQ(Question(Job({}, 40)).max_pods, 40);
  json more = set;
  more["stepcast.dev/max"] = "32";
  EXPECT_EQ(Question(Job(more, 4)).max_pods, 32);
}

TEST(JobAdviceTest, TheServicesSpreadIsKeptAtTheCostOfTheSmallest) {
  const JobQuestion question = Question(Job({}, 1000));
  EXPECT_EQ(question.question.max_workers, 1000);
  EXPECT_EQ(question.question.min_workers, 744);
  EXPECT_TRUE(client::CheckAdviceQuestion(question.question).ok());
}

TEST(JobAdviceTest, PodsOfSeveralWorkersAreAskedAboutInFullPods) {
  const JobQuestion question =
      Question(Job({{"stepcast.dev/workers-per-pod", "4"}, {"stepcast.dev/min", "2"}}, 8));
  EXPECT_EQ(question.question.workers_per_node, 4);
  EXPECT_EQ(question.question.min_workers, 8);
  EXPECT_EQ(question.question.max_workers, 64);
}

TEST(JobAdviceTest, LinksInsideAPodAreTheAnnotationsElseTheClusters) {
  const JobDefaults defaults{.intra_bandwidth_bytes_per_second = 3e11};
  const auto rate = [&](const json& annotations) {
    return QuestionOf(Job(annotations), defaults)->question.intra_node_bandwidth_bytes_per_second;
  };
  EXPECT_EQ(rate({}), 3e11);
  EXPECT_EQ(rate({{"stepcast.dev/intra-bandwidth", "25GB/s"}}), 25e9);
  EXPECT_EQ(Question(Job({})).question.intra_node_bandwidth_bytes_per_second, 0);
}

TEST(JobAdviceTest, LinksInsideAPodThatNobodyKnowsAreAskedForByTheAnnotationsName) {
  const Review review = Job({{"stepcast.dev/workers-per-pod", "4"}});
  const auto refusal = [](const char* field) {
    google::rpc::BadRequest details;
    details.add_field_violations()->set_field(field);
    absl::Status status = absl::InvalidArgumentError(absl::StrCat(field, ": not given"));
    status.SetPayload("type.googleapis.com/google.rpc.BadRequest",
                      absl::Cord(details.SerializeAsString()));
    return status;
  };
  const JobAnswer lacks =
      AnswerOf(review, Question(review),
               refusal("scenario.all_reduce.intra_node_bandwidth_bytes_per_second"));
  EXPECT_EQ(lacks.outcome, Outcome::kWrong);
  EXPECT_THAT(lacks.answer.warnings,
              ElementsAre("stepcast: no advice: annotation stepcast.dev/intra-bandwidth is needed, "
                          "for 4 workers share a pod (NVLink: 300GB/s)"));
  const JobAnswer other = AnswerOf(review, Question(review), refusal("scenario.workers"));
  EXPECT_THAT(other.answer.warnings,
              ElementsAre(HasSubstr("no advice: scenario.workers: not given")));
}

TEST(JobAdviceTest, AnnotationsThatAreNoneSayWhy) {
  EXPECT_THAT(Why(Job({{"stepcast.dev/max", "x"}})), HasSubstr("stepcast.dev/max is \"x\""));
  EXPECT_THAT(Why(Job({{"stepcast.dev/min", "0"}})), HasSubstr("stepcast.dev/min is \"0\""));
  EXPECT_THAT(Why(Job({{"stepcast.dev/mode", "x"}})), HasSubstr("stepcast.dev/mode"));
  EXPECT_THAT(Why(Job({{"stepcast.dev/objective", "knee;max=9"}})), HasSubstr("objective"));
  EXPECT_THAT(Why(Job({{"stepcast.dev/objective", "cost"}})), HasSubstr("price"));
}

TEST(JobAdviceTest, ASuggestionHasOldAndNewAndChangesOnlyAnnotations) {
  const Review review = Job({});
  const JobAnswer decided = AnswerOf(review, Question(review), Eight());
  EXPECT_EQ(decided.outcome, Outcome::kAdvised);
  EXPECT_THAT(decided.answer.warnings,
              ElementsAre("stepcast: suggests 8 instead of 16 pods: 3120 examples/s (84 % "
                          "efficient); 16 pods 3300 (45 %)"));
  json after = After(review, decided);
  const json annotations = after["metadata"]["annotations"];
  EXPECT_EQ(annotations["stepcast.dev/recommended"], "8");
  EXPECT_EQ(annotations["stepcast.dev/requested"], "16, of 1 to 16");
  EXPECT_EQ(annotations["stepcast.dev/throughput"], "3120 examples/s (3050 to 3190)");
  EXPECT_EQ(annotations["stepcast.dev/reason"], "8 workers are the knee.");
  EXPECT_EQ(json::parse(annotations["stepcast.dev/curve"].get<std::string>())[2],
            json::parse(R"({"workers": 8, "examples_per_second": 3120.0, "efficiency": 0.84})"));
  after["metadata"].erase("annotations");
  EXPECT_EQ(after, review.object);
}

TEST(JobAdviceTest, SettingChangesBothCountsAndIsDoneOnce) {
  Review review = Job({{"stepcast.dev/mode", "set"}});
  const JobAnswer decided = AnswerOf(review, Question(review), Eight());
  EXPECT_EQ(decided.outcome, Outcome::kSet);
  EXPECT_THAT(decided.answer.warnings,
              ElementsAre("stepcast: spec.parallelism 16 -> 8: 3120 examples/s (84 % efficient); "
                          "16 pods 3300 (45 %)"));
  const JobQuestion first = Question(review);
  review.object = After(review, decided);
  EXPECT_EQ(review.object["spec"]["parallelism"], 8);
  EXPECT_EQ(review.object["spec"]["completions"], 8);
  const JobQuestion again = Question(review);
  EXPECT_EQ(again.question.min_workers, first.question.min_workers);
  EXPECT_EQ(again.question.max_workers, first.question.max_workers);
  EXPECT_THAT(AnswerOf(review, again, Eight()).answer.patch, IsEmpty());
}

TEST(JobAdviceTest, KueueIsToldTheFewestWorthStartingUnlessTheUserHas) {
  Review review = Job({{"stepcast.dev/mode", "set"}});
  review.object["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "q";
  JobAnswer decided = AnswerOf(review, Question(review), Eight());
  json annotations = After(review, decided)["metadata"]["annotations"];
  EXPECT_EQ(annotations["kueue.x-k8s.io/job-min-parallelism"], "4");
  EXPECT_EQ(annotations["kueue.x-k8s.io/job-completions-equal-parallelism"], "true");
  review.object["metadata"]["annotations"]["kueue.x-k8s.io/job-min-parallelism"] = "6";
  decided = AnswerOf(review, Question(review), Eight());
  annotations = After(review, decided)["metadata"]["annotations"];
  EXPECT_EQ(annotations["kueue.x-k8s.io/job-min-parallelism"], "6");
  // Kueue would refuse 6 of 6.
  EXPECT_EQ(Question(review).min_pods, 7);
}

TEST(JobAdviceTest, UncertainPredictionsAreNotTold) {
  Advice advice = Eight();
  advice.low_confidence = true;
  Review review = Job({});
  EXPECT_THAT(AnswerOf(review, Question(review), advice).answer.warnings, IsEmpty());
  review = Job({{"stepcast.dev/mode", "set"}});
  const JobAnswer decided = AnswerOf(review, Question(review), advice);
  EXPECT_EQ(decided.outcome, Outcome::kUncertain);
  EXPECT_THAT(decided.answer.warnings, ElementsAre(HasSubstr("spec.parallelism stays")));
  EXPECT_EQ(After(review, decided)["spec"], review.object["spec"]);
}

TEST(JobAdviceTest, WithoutAnAnswerOnlyWhoCanMendItIsTold) {
  const Review advise = Job({});
  const Review set = Job({{"stepcast.dev/mode", "set"}});
  const auto warnings = [](const Review& review, const absl::Status& fault) {
    const JobAnswer decided = AnswerOf(review, Question(review), fault);
    EXPECT_THAT(decided.answer.patch, IsEmpty());
    return decided.answer.warnings.size();
  };
  EXPECT_EQ(warnings(advise, absl::UnavailableError("x")), 0U);
  EXPECT_EQ(warnings(advise, absl::PermissionDeniedError("x")), 0U);
  EXPECT_EQ(warnings(set, absl::UnavailableError("x")), 1U);
  EXPECT_EQ(warnings(advise, absl::DeadlineExceededError("x")), 1U);
  EXPECT_EQ(warnings(advise, absl::NotFoundError("there is no profile")), 1U);
}

TEST(JobAdviceTest, AnAnnotationThatThereIsNotIsNamed) {
  const Review review = Job({{"stepcast.dev/objektive", "knee"}});
  EXPECT_THAT(AnswerOf(review, Question(review), Eight()).answer.warnings.back(),
              HasSubstr("\"stepcast.dev/objektive\""));
}

TEST(JobAdviceTest, ALongCurveIsThinnedAndKeepsTheChosenPoint) {
  Advice advice = Eight();
  advice.curve.clear();
  for (int workers = 1; workers <= 200; ++workers)
    advice.curve.push_back({workers, 10.0 * workers, 9.0 * workers, 11.0 * workers, 1});
  advice.chosen = advice.curve[122];
  const Review review = Job({}, 200);
  const json after = After(review, AnswerOf(review, Question(review), advice));
  const json curve =
      json::parse(after["metadata"]["annotations"]["stepcast.dev/curve"].get<std::string>());
  EXPECT_LE(curve.size(), kMaxCurvePoints + 2);
  EXPECT_EQ(curve.front()["workers"], 1);
  EXPECT_EQ(curve.back()["workers"], 200);
  EXPECT_TRUE(std::any_of(curve.begin(), curve.end(),
                          [](const json& point) { return point["workers"] == 123; }));
}

}  // namespace
}  // namespace stepcast::admission::job_advice_test
