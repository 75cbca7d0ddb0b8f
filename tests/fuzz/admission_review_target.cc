// The reviews that a cluster's API server sends to the admission webhook, and all that is on them.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "deploy/kubernetes/admission/job_advice.h"
#include "deploy/kubernetes/admission/review.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_mutator.h"

namespace stepcast::fuzz {

namespace {

using admission::JobAnswer;
using admission::JobQuestion;
using admission::Review;
using client::Advice;
using nlohmann::json;

// An answer that is a function of the question, as the service's is.
Advice AdviceFor(const client::AdviceQuestion& question) {
  const int32_t per_node = question.workers_per_node;
  const int32_t nodes = (question.max_workers - question.min_workers) / per_node;
  Advice advice{.least_workers = question.min_workers, .reason = "It is the middle."};
  for (int32_t i = 0; i <= std::min(nodes, 40); ++i) {
    const int32_t workers = question.min_workers + i * per_node;
    advice.curve.push_back({.workers = workers,
                            .examples_per_second = 10.0 * workers,
                            .lower = 9.0 * workers,
                            .upper = 11.0 * workers,
                            .efficiency = 0.9});
  }
  advice.chosen = advice.curve[advice.curve.size() / 2];
  advice.knee = advice.chosen.workers;
  advice.low_confidence = question.profile.size() % 7 == 0;
  advice.summary = "2 workers 20/s";
  return advice;
}

void DemandSoundAnswer(const Review& review, const JobAnswer& decided) {
  for (const std::string& warning : decided.answer.warnings) {
    const bool is_line =
        std::all_of(warning.begin(), warning.end(), [](char c) { return c >= ' ' && c <= '~'; });
    Demand(is_line && warning.size() <= admission::kMaxWarningBytes,
           "a warning is a line that kubectl prints whole:", warning);
  }
  const json written = json::parse(WriteAnswer(review, decided.answer), nullptr, false);
  Demand(written.is_object() && written["response"]["allowed"] == true &&
             written["response"]["uid"] == json(review.uid),
         "the answer is JSON, and admits");
}

// The object as the API server has it afterwards.
Review Patched(const Review& review, const JobAnswer& decided) {
  Review after = review;
  // The library reports a patch that does not fit by an exception.
  try {
    after.object = review.object.patch(decided.answer.patch);
  } catch (const json::exception& exception) {
    Demand(false, "a patch fits its object:", exception.what());
  }
  return after;
}

class AdmissionReviewTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override {
    std::vector<std::string> seeds;
    for (const char* name :
         {"job_kueue", "job_bounds", "job_deadline", "pytorchjob_elastic", "pytorchjob_gpus",
          "mpijob_launcher", "trainjob_set", "jobset_driver"}) {
      std::ifstream text(std::string(STEPCAST_REVIEWS "/") + name + ".json");
      const json file = json::parse(text, nullptr, false);
      seeds.push_back(file["review"].dump());
    }
    return seeds;
  }

  bool Run(std::string_view input) override {
    const absl::StatusOr<Review> review = admission::ReadReview(input);
    if (!review.ok()) return false;
    Demand(!review->uid.empty(), "a review has a uid");
    if (!AsksForAdvice(*review)) {
      DemandSoundAnswer(*review, {});
      return true;
    }
    const absl::StatusOr<JobQuestion> question = QuestionOf(*review, {});
    if (!question.ok()) {
      const JobAnswer refused = admission::AnswerOf(question.status());
      Demand(refused.answer.patch.empty(), "what cannot be asked about stays as it is");
      DemandSoundAnswer(*review, refused);
      return true;
    }
    Demand(CheckAdviceQuestion(question->question).ok(), "a question is sound");
    for (const absl::Status& fault : {absl::UnavailableError("x"), absl::DeadlineExceededError("x"),
                                      absl::NotFoundError("\n")}) {
      const JobAnswer without = AnswerOf(*review, *question, fault);
      Demand(without.answer.patch.empty(), "without advice nothing is changed");
      DemandSoundAnswer(*review, without);
    }
    const JobAnswer decided = AnswerOf(*review, *question, AdviceFor(question->question));
    DemandSoundAnswer(*review, decided);
    const Review after = Patched(*review, decided);
    const absl::StatusOr<JobQuestion> again = QuestionOf(after, {});
    Demand(again.ok(), "what was answered can be asked again:", again.status().ToString());
    const JobAnswer repeated = AnswerOf(after, *again, AdviceFor(again->question));
    Demand(repeated.answer.patch.empty(), "asked again, nothing more is changed:",
           decided.answer.patch.dump(-1, ' ', false, json::error_handler_t::replace) + " " +
               repeated.answer.patch.dump(-1, ' ', false, json::error_handler_t::replace));
    return true;
  }

  // Mostly of the object, or few would be reviews of a job still.
  std::string Mutate(std::string input, const Mutation& mutation) const override {
    json review = json::parse(input, nullptr, false);
    const bool has_object = review.is_object() && review.contains("request") &&
                            review["request"].is_object() && review["request"].contains("object");
    if (!has_object || mutation.random.Below(8) == 0) return MutateJson(std::move(input), mutation);
    const auto text = [](const json& value) {
      return value.dump(-1, ' ', false, json::error_handler_t::replace);
    };
    json object =
        json::parse(MutateJson(text(review["request"]["object"]), mutation), nullptr, false);
    if (object.is_discarded()) return MutateJson(std::move(input), mutation);
    review["request"]["object"] = std::move(object);
    return text(review);
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<AdmissionReviewTarget>(); }

}  // namespace stepcast::fuzz
