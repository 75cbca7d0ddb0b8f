// The advice on a training job that is created: what is asked about it, and what the answer
// changes.
//
// The user's part on the job, all but the label as annotations:
//
// | stepcast.dev/ | meaning |
// |---|---|
// | profile | label: the stored profile that the job was recorded as; without it nothing is done |
// | min, max | pods, both included; else 1 and, in mode advise, 16 or what the job asks for |
// | objective | knee, throughput, efficiency=0.8, deadline=6h, cost |
// | examples | left to train on, for a deadline or cost |
// | mode | advise: say it; set: change the counts, too |
// | workers-per-pod, replicated-job | see training_job.h |
// | intra-bandwidth | of the links inside a pod of several workers |
//
// Written back are recommended and requested (pods), throughput, curve, reason. In mode set the
// counts are changed to what is recommended; and a Job in a queue of Kueue's is told how few
// pods are worth starting, where it does not say so itself. An answer is a pure function of the job
// and the advice. Asked again about the job as it was answered, the same comes out: `requested`
// says what it had asked for. Threads: pure functions.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "deploy/kubernetes/admission/review.h"
#include "deploy/kubernetes/admission/training_job.h"
#include "stepcast/advice.h"

namespace stepcast::admission {

// The longest warning that kubectl prints whole, by Kubernetes' own recommendation.
inline constexpr size_t kMaxWarningBytes = 120;
// Points of `curve` at most; of more, those that say least about its shape are left out.
inline constexpr size_t kMaxCurvePoints = 32;

// Values for a job that does not say them.
struct JobDefaults {
  v1::Prices prices;
  double intra_bandwidth_bytes_per_second = 0;  // inside a pod of several workers; 0: not known
};

struct JobQuestion {
  TrainingJob job;
  client::AdviceQuestion question;    // of workers, in full pods
  std::optional<int64_t> asked_pods;  // before an earlier answer changed them
  int64_t min_pods = 1;
  int64_t max_pods = 1;
  bool set = false;                // mode set
  std::string unknown_annotation;  // one of ours that there is not; empty: none
};

// The ends that a review can come to, for metrics and logs.
enum class Outcome {
  kSkipped,      // nothing was asked: no label, no creation, another kind of resource
  kAgreed,       // the job has the recommended count
  kAdvised,      // another was suggested
  kSet,          // the count was changed
  kUncertain,    // the prediction is too uncertain to be told
  kWrong,        // the job, its annotations or its profile cannot be asked about
  kLate,         // no answer in time
  kUnavailable,  // the predictor is away, or refuses this webhook
};

// "agreed": as metrics and audit events say it.
const char* NameOf(Outcome outcome);

struct JobAnswer {
  Outcome outcome = Outcome::kSkipped;
  ReviewAnswer answer;
};

// True if a review is about the creation of an object with the label.
bool AsksForAdvice(const Review& review);

// The question that the object asks. Errors: INVALID_ARGUMENT, FAILED_PRECONDITION with a sentence
// for its user. REQUIRES: AsksForAdvice(review).
absl::StatusOr<JobQuestion> QuestionOf(const Review& review, const JobDefaults& defaults);

// The answer to a question that `advice` was the answer to.
JobAnswer AnswerOf(const Review& review, const JobQuestion& question,
                   const absl::StatusOr<client::Advice>& advice);

// The answer where QuestionOf failed.
JobAnswer AnswerOf(const absl::Status& fault);

}  // namespace stepcast::admission
