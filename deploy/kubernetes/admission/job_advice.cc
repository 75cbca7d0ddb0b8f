#include "deploy/kubernetes/admission/job_advice.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/error.h"
#include "core/base/message_text.h"

namespace stepcast::admission {

namespace {

using client::Advice;
using client::AdvicePoint;
using nlohmann::json;

constexpr char kPrefix[] = "stepcast.dev/";
constexpr char kCompletionsFollow[] = "kueue.x-k8s.io/job-completions-equal-parallelism";
// Asked for by users, then written back.
constexpr std::array<std::string_view, 13> kKnown{"min",
                                                  "max",
                                                  "objective",
                                                  "examples",
                                                  "intra-bandwidth",
                                                  "mode",
                                                  "workers-per-pod",
                                                  "replicated-job",
                                                  "recommended",
                                                  "requested",
                                                  "throughput",
                                                  "curve",
                                                  "reason"};
// The largest count that is looked at in mode advise where nothing says how many there may be.
constexpr int64_t kUsualMaxPods = 16;
constexpr int64_t kMaxSpread = 256;  // in workers, looked at while a job waits

const std::string* Annotation(const Review& review, const std::string& name) {
  return FindText(review.object, "annotations", absl::StrCat(kPrefix, name));
}

absl::Status Wrong(const std::string& name, const std::string& why) {
  return MakeError(absl::StatusCode::kInvalidArgument, absl::StrCat(kPrefix, name, " ", why),
                   {.reason = "ANNOTATION_INVALID"});
}

absl::StatusOr<std::optional<int64_t>> Pods(const Review& review, const std::string& name) {
  const std::string* text = Annotation(review, name);
  if (text == nullptr) return std::nullopt;
  int64_t pods = 0;
  if (!absl::SimpleAtoi(*text, &pods) || pods < 1 || pods > kMaxWorkers) {
    return Wrong(name, absl::StrCat("is ", Quoted(*text), ", no number from 1 to ", kMaxWorkers));
  }
  return pods;
}

// The question as an earlier answer wrote it down: pods, and the range they were chosen from.
struct Requested {
  int64_t pods = 0;
  int64_t min = 0;
  int64_t max = 0;
};

std::string TextOf(const Requested& requested) {
  return absl::StrCat(requested.pods, ", of ", requested.min, " to ", requested.max);
}

// None where the object is not as that answer left it.
std::optional<Requested> EarlierRequest(const Review& review, const TrainingJob& job) {
  const std::string* recommended = Annotation(review, "recommended");
  const std::string* text = Annotation(review, "requested");
  int64_t pods = 0;
  if (recommended == nullptr || text == nullptr || !job.pods ||
      !absl::SimpleAtoi(*recommended, &pods) || pods != *job.pods)
    return std::nullopt;
  long long asked = 0;
  long long min = 0;
  long long max = 0;
  if (text->size() > 64 ||
      std::sscanf(text->c_str(), "%lld, of %lld to %lld", &asked, &min, &max) != 3)
    return std::nullopt;
  const Requested requested{.pods = asked, .min = min, .max = max};
  const bool is_sound = asked >= 1 && asked <= kMaxWorkers && min >= 1 && min <= max &&
                        max <= kMaxWorkers && TextOf(requested) == *text;
  return is_sound ? std::optional(requested) : std::nullopt;
}

// The range that the pods are chosen from.
absl::Status TakeRange(const Review& review, JobQuestion& asked) {
  const absl::StatusOr<std::optional<int64_t>> min = Pods(review, "min");
  if (!min.ok()) return min.status();
  const absl::StatusOr<std::optional<int64_t>> max = Pods(review, "max");
  if (!max.ok()) return max.status();
  const TrainingJob& job = asked.job;
  asked.asked_pods = job.pods;
  // The object's own bounds hold, whatever the annotations say.
  int64_t lower = job.min_pods.value_or(1);
  int64_t upper = job.max_pods.value_or(kMaxWorkers);
  // Nobody gets more than was asked for without having said that it may be more.
  const int64_t usual =
      asked.set && job.pods ? *job.pods : std::max(job.pods.value_or(1), kUsualMaxPods);
  if (!*max && !job.max_pods) upper = usual;
  if (const auto earlier = EarlierRequest(review, job); earlier) {
    asked.asked_pods = earlier->pods;
    lower = earlier->min;
    upper = earlier->max;
  }
  // One of the pods that are counted remains, unless there is none.
  const bool has_none = job.pods && *job.pods == job.pods_besides;
  asked.min_pods = std::max({min->value_or(1), lower, job.pods_besides + (has_none ? 0 : 1)});
  if (job.max_pods && asked.min_pods > *job.max_pods) {
    return Wrong("min", absl::StrCat("makes the least ", asked.min_pods,
                                     ", above the most that the job allows, ", *job.max_pods));
  }
  asked.max_pods = std::min(max->value_or(kMaxWorkers), std::max(upper, asked.min_pods));
  if (asked.max_pods < asked.min_pods)
    return Wrong("max", absl::StrCat("is ", asked.max_pods, ", below the least, ", asked.min_pods));
  const int64_t workers = job.workers_per_pod;
  asked.max_pods = std::min(asked.max_pods, kMaxWorkers / workers);
  if (asked.max_pods < asked.min_pods)
    return Wrong("min", absl::StrCat("makes ", asked.min_pods * workers, " workers, above the ",
                                     kMaxWorkers, " known"));
  // So wide a range is looked at; those that are asked for matter more than the smallest.
  asked.min_pods =
      std::max(asked.min_pods, asked.max_pods - std::max<int64_t>(kMaxSpread / workers, 0));
  asked.question.min_workers = static_cast<int32_t>(asked.min_pods * workers);
  asked.question.max_workers = static_cast<int32_t>(asked.max_pods * workers);
  return absl::OkStatus();
}

absl::Status TakeMode(const Review& review, JobQuestion& asked) {
  const std::string* mode = Annotation(review, "mode");
  if (mode == nullptr || *mode == "advise") return absl::OkStatus();
  asked.set = *mode == "set";
  return asked.set ? absl::OkStatus()
                   : Wrong("mode", absl::StrCat("is ", Quoted(*mode), ", not advise or set"));
}

std::string UnknownAnnotation(const Review& review) {
  const json* annotations = FindIn(review.object, {"metadata", "annotations"});
  if (annotations == nullptr || !annotations->is_object()) return "";
  for (const auto& [key, value] : annotations->items()) {
    if (!absl::StartsWith(key, kPrefix)) continue;
    if (std::find(kKnown.begin(), kKnown.end(), key.substr(sizeof(kPrefix) - 1)) == kKnown.end())
      return key;
  }
  return "";
}

// Answers.

std::string Warning(const std::string& text) {
  return client::PrintableText(absl::StrCat("stepcast: ", text), kMaxWarningBytes);
}

std::string Rate(double examples_per_second) {
  return examples_per_second >= 1000 ? absl::StrFormat("%.0f", examples_per_second)
                                     : absl::StrFormat("%.4g", examples_per_second);
}

std::string Percent(double share) { return absl::StrFormat("%.0f %%", 100 * share); }

const AdvicePoint* PointAt(const Advice& advice, int64_t workers) {
  const auto found =
      std::find_if(advice.curve.begin(), advice.curve.end(),
                   [&](const AdvicePoint& point) { return point.workers == workers; });
  return found == advice.curve.end() ? nullptr : &*found;
}

// "3120 examples/s (84 % efficient); 16 pods 3300 (45 %)": the recommended count, and what it
// replaces, where that was simulated.
std::string Comparison(const JobQuestion& asked, const Advice& advice) {
  std::string text = absl::StrCat(Rate(advice.chosen.examples_per_second), " examples/s (",
                                  Percent(advice.chosen.efficiency), " efficient)");
  if (!asked.asked_pods) return text;
  const AdvicePoint* other = PointAt(advice, *asked.asked_pods * asked.job.workers_per_pod);
  if (other == nullptr || other->workers == advice.chosen.workers) return text;
  return absl::StrCat(text, "; ", *asked.asked_pods, " pods ", Rate(other->examples_per_second),
                      " (", Percent(other->efficiency), ")");
}

// The curve as compact JSON. Of many points the first and last, the chosen one and every n-th stay.
std::string CurveText(const JobQuestion& asked, const Advice& advice) {
  const int64_t per_pod = asked.job.workers_per_pod;
  const size_t every = advice.curve.size() / kMaxCurvePoints + 1;
  nlohmann::ordered_json curve = nlohmann::ordered_json::array();
  for (size_t i = 0; i < advice.curve.size(); ++i) {
    const AdvicePoint& point = advice.curve[i];
    if (i % every != 0 && i + 1 != advice.curve.size() && point.workers != advice.chosen.workers)
      continue;
    nlohmann::ordered_json entry{{"workers", point.workers}};
    if (per_pod > 1) entry["pods"] = point.workers / per_pod;
    // Four digits tell more than a prediction knows.
    double rate = 0;
    double efficiency = 0;
    (void)absl::SimpleAtod(absl::StrFormat("%.4g", point.examples_per_second), &rate);
    (void)absl::SimpleAtod(absl::StrFormat("%.3g", point.efficiency), &efficiency);
    entry["examples_per_second"] = rate;
    entry["efficiency"] = efficiency;
    curve.push_back(std::move(entry));
  }
  return curve.dump();
}

// Collects the operations of a patch; what an object has already is left out.
class PatchWriter {
 public:
  explicit PatchWriter(const Review& review) : object_(review.object) {
    const json* annotations = FindIn(object_, {"metadata", "annotations"});
    has_annotations_ = annotations != nullptr && annotations->is_object();
  }

  void Set(const CountField& field, int64_t value) {
    const json::json_pointer pointer(field.pointer);
    if (object_.contains(pointer) && object_[pointer] == value) return;
    // `add` replaces what there is, and needs only the object that it is in.
    patch_.push_back({{"op", "add"}, {"path", field.pointer}, {"value", value}});
  }

  void Annotate(const std::string& key, const std::string& value) {
    const std::string* present = FindText(object_, "annotations", key);
    if (present == nullptr || *present != value) annotations_.emplace_back(key, value);
  }

  json Take() {
    if (!annotations_.empty() && !has_annotations_) {
      patch_.push_back(
          {{"op", "add"}, {"path", "/metadata/annotations"}, {"value", json::object()}});
    }
    for (const auto& [key, value] : annotations_) {
      json::json_pointer pointer("/metadata/annotations");
      pointer.push_back(key);
      patch_.push_back({{"op", "add"}, {"path", pointer.to_string()}, {"value", value}});
    }
    return std::move(patch_);
  }

 private:
  const json& object_;
  bool has_annotations_ = false;
  json patch_ = json::array();
  std::vector<std::pair<std::string, std::string>> annotations_;
};

void Annotate(const JobQuestion& asked, const Advice& advice, int64_t pods, PatchWriter& patch) {
  const auto write = [&](const char* name, const std::string& value) {
    patch.Annotate(absl::StrCat(kPrefix, name), value);
  };
  write("recommended", absl::StrCat(pods));
  if (asked.asked_pods) {
    write("requested",
          TextOf({.pods = *asked.asked_pods, .min = asked.min_pods, .max = asked.max_pods}));
  }
  write("throughput",
        absl::StrCat(Rate(advice.chosen.examples_per_second), " examples/s (",
                     Rate(advice.chosen.lower), " to ", Rate(advice.chosen.upper), ")"));
  write("curve", CurveText(asked, advice));
  write("reason", advice.low_confidence && !advice.warnings.empty()
                      ? absl::StrCat("Uncertain: ", client::PrintableText(advice.warnings[0], 400),
                                     ". ", advice.reason)
                      : advice.reason);
}

// Tells Kueue how few pods are worth starting. It refuses a least number that is not below the
// parallelism, and starts fewer indexes at a time, which training hangs in, where completions do
// not follow.
void TellKueue(const Review& review, const JobQuestion& asked, const Advice& advice, int64_t pods,
               PatchWriter& patch, std::vector<std::string>& warnings) {
  if (!asked.job.is_queued_by_kueue) return;
  const int64_t per_pod = asked.job.workers_per_pod;
  const int64_t least = std::max((advice.least_workers + per_pod - 1) / per_pod, asked.min_pods);
  const std::string* follow = FindText(review.object, "annotations", kCompletionsFollow);
  const bool has_completions = asked.job.fields.size() > 1;
  if (least >= pods || (has_completions && follow != nullptr && *follow != "true")) return;
  const std::string* present = FindText(review.object, "annotations", kMinParallelism);
  if (present != nullptr && *present != absl::StrCat(least)) return;
  patch.Annotate(kMinParallelism, absl::StrCat(least));
  if (has_completions) patch.Annotate(kCompletionsFollow, "true");
  if (present == nullptr)
    warnings.push_back(
        Warning(absl::StrCat("Kueue may start it with ", least, " of ", pods,
                             " pods, the fewest worth starting (", kMinParallelism, ")")));
}

// Changes the counts; says so.
JobAnswer SetCounts(const Review& review, const JobQuestion& asked, const Advice& advice,
                    int64_t pods) {
  const TrainingJob& job = asked.job;
  JobAnswer result{.outcome = pods == *job.pods ? Outcome::kAgreed : Outcome::kSet};
  PatchWriter patch(review);
  for (const CountField& field : job.fields) patch.Set(field, pods - job.pods_besides);
  if (result.outcome == Outcome::kSet) {
    result.answer.warnings.push_back(
        Warning(absl::StrCat(job.fields.front().path, " ", *job.pods - job.pods_besides, " -> ",
                             pods - job.pods_besides, ": ", Comparison(asked, advice))));
  }
  TellKueue(review, asked, advice, pods, patch, result.answer.warnings);
  Annotate(asked, advice, pods, patch);
  result.answer.patch = patch.Take();
  return result;
}

std::string Suggestion(const Review& review, const JobQuestion& asked, const Advice& advice,
                       int64_t pods) {
  const std::string count = asked.job.workers_per_pod == 1
                                ? absl::StrCat(pods)
                                : absl::StrCat(pods, " (", advice.chosen.workers, " workers)");
  std::string text =
      asked.asked_pods
          ? absl::StrCat("suggests ", count, " instead of ", *asked.asked_pods, " pods")
          : absl::StrCat("suggests ", count, " pods, where the job does not say");
  absl::StrAppend(&text, ": ", Comparison(asked, advice));
  const std::string hint = absl::StrCat(". kubectl stepcast explain ",
                                        absl::AsciiStrToLower(review.kind), "/", review.name);
  const bool fits = Warning(text).size() + hint.size() <= kMaxWarningBytes;
  return Warning(fits && !review.name.empty() ? text + hint : text);
}

// Says what would be better; changes nothing but annotations.
JobAnswer Suggest(const Review& review, const JobQuestion& asked, const Advice& advice,
                  int64_t pods) {
  JobAnswer result{.outcome = Outcome::kAdvised};
  const TrainingJob& job = asked.job;
  if (advice.low_confidence) {
    result.outcome = Outcome::kUncertain;
    if (asked.set)
      result.answer.warnings = {Warning(absl::StrCat(
          job.fields.front().path, " stays: the prediction is uncertain (", advice.summary, ")"))};
  } else if (asked.asked_pods == pods) {
    result.outcome = Outcome::kAgreed;
  } else {
    result.answer.warnings = {Suggestion(review, asked, advice, pods)};
    if (asked.set) {
      const std::string why = job.fixed_because.empty()
                                  ? absl::StrCat(job.fields.front().path, " is not set")
                                  : job.fixed_because;
      result.answer.warnings.push_back(Warning(absl::StrCat("nothing was changed: ", why)));
    }
  }
  PatchWriter patch(review);
  Annotate(asked, advice, pods, patch);
  result.answer.patch = patch.Take();
  return result;
}

std::string NeedsIntraBandwidth(const JobQuestion& asked) {
  return absl::StrCat("annotation ", kPrefix, "intra-bandwidth is needed, for ",
                      asked.job.workers_per_pod, " workers share a pod (NVLink: 300GB/s)");
}

// A fault that a user can mend is told; one that only an operator can is not, unless a change was
// asked for.
JobAnswer WithoutAdvice(const JobQuestion& asked, const absl::Status& fault) {
  const std::string message(fault.message());
  const auto say = [&](Outcome outcome, const std::string& text) {
    JobAnswer result{.outcome = outcome};
    result.answer.warnings = {Warning(text)};
    return result;
  };
  switch (fault.code()) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return say(Outcome::kWrong, absl::StrCat("no advice: ", client::LacksIntraBandwidth(fault)
                                                                  ? NeedsIntraBandwidth(asked)
                                                                  : message));
    case absl::StatusCode::kDeadlineExceeded:
      return say(Outcome::kLate,
                 asked.set ? absl::StrCat(asked.job.fields.front().path,
                                          " stays: the prediction takes longer; create the job "
                                          "again in a while")
                           : "the prediction takes longer; create the job again in a while to see "
                             "it");
    default:
      if (asked.set)
        return say(Outcome::kUnavailable, absl::StrCat(asked.job.fields.front().path,
                                                       " stays: no prediction is to be had now"));
      return {.outcome = Outcome::kUnavailable};
  }
}

}  // namespace

const char* NameOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kSkipped:
      return "skipped";
    case Outcome::kAgreed:
      return "agreed";
    case Outcome::kAdvised:
      return "advised";
    case Outcome::kSet:
      return "set";
    case Outcome::kUncertain:
      return "uncertain";
    case Outcome::kWrong:
      return "wrong";
    case Outcome::kLate:
      return "late";
    case Outcome::kUnavailable:
      return "unavailable";
  }
  return "";
}

bool AsksForAdvice(const Review& review) {
  return review.operation == "CREATE" && review.sub_resource.empty() &&
         FindText(review.object, "labels", absl::StrCat(kPrefix, "profile")) != nullptr;
}

absl::StatusOr<JobQuestion> QuestionOf(const Review& review, const JobDefaults& defaults) {
  absl::StatusOr<TrainingJob> job = ReadTrainingJob(review.group, review.kind, review.object);
  if (!job.ok()) return job.status();
  JobQuestion asked{.job = *std::move(job), .unknown_annotation = UnknownAnnotation(review)};
  asked.question.prices = defaults.prices;
  asked.question.intra_node_bandwidth_bytes_per_second = defaults.intra_bandwidth_bytes_per_second;
  asked.question.unit =
      asked.job.workers_per_pod > 1 ? client::AdviceUnit::kNodes : client::AdviceUnit::kWorkers;
  asked.question.workers_per_node = static_cast<int32_t>(asked.job.workers_per_pod);
  if (absl::Status mode = TakeMode(review, asked); !mode.ok()) return mode;
  const std::string* profile = FindText(review.object, "labels", absl::StrCat(kPrefix, "profile"));
  if (absl::Status set = client::SetAdviceField("profile", *profile, asked.question); !set.ok())
    return set;
  for (const char* field : {"objective", "examples", "intra-bandwidth"}) {
    const std::string* text = Annotation(review, field);
    if (text == nullptr) continue;
    if (absl::Status set = client::SetAdviceField(field, *text, asked.question); !set.ok())
      return set;
  }
  if (absl::Status range = TakeRange(review, asked); !range.ok()) return range;
  if (absl::Status sound = client::CheckAdviceQuestion(asked.question); !sound.ok()) return sound;
  return asked;
}

JobAnswer AnswerOf(const Review& review, const JobQuestion& asked,
                   const absl::StatusOr<Advice>& advice) {
  JobAnswer result;
  if (!advice.ok()) {
    result = WithoutAdvice(asked, advice.status());
  } else {
    const int64_t pods = advice->chosen.workers / asked.job.workers_per_pod;
    const bool may_set = asked.set && asked.job.pods && asked.job.fixed_because.empty() &&
                         !advice->low_confidence && pods > asked.job.pods_besides;
    result =
        may_set ? SetCounts(review, asked, *advice, pods) : Suggest(review, asked, *advice, pods);
    result.answer.audit.emplace_back("recommended", absl::StrCat(pods));
  }
  if (!asked.unknown_annotation.empty()) {
    result.answer.warnings.push_back(
        Warning(absl::StrCat("there is no annotation ", Quoted(asked.unknown_annotation))));
  }
  result.answer.audit.emplace_back("outcome", NameOf(result.outcome));
  return result;
}

JobAnswer AnswerOf(const absl::Status& fault) {
  JobAnswer result{.outcome = Outcome::kWrong};
  result.answer.warnings = {Warning(absl::StrCat("no advice: ", std::string(fault.message())))};
  result.answer.audit.emplace_back("outcome", NameOf(result.outcome));
  return result;
}

}  // namespace stepcast::admission
