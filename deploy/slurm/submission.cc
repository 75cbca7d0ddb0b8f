#include "deploy/slurm/submission.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace stepcast::slurm {

namespace {

using client::Advice;
using client::AdviceQuestion;

constexpr std::string_view kPrefix = "stepcast:";
constexpr size_t kMaxComment = 4096;  // what is behind is not looked at
constexpr size_t kMaxTres = 1024;
constexpr size_t kMaxAdminComment = 700;
constexpr size_t kMaxUserLine = 300;
constexpr uint32_t kMaxWorkers = 4096;  // of the service
constexpr uint32_t kMaxSpread = 256;    // so wide a range is looked at while a job waits

std::string RangeText(uint32_t least, uint32_t most) {
  return least == most ? absl::StrCat(least) : absl::StrCat(least, "-", most);
}

// The number behind the last `:` or `=` of one resource; 1 where there is none.
std::optional<int32_t> CountOf(std::string_view resource) {
  const size_t colon = resource.find_last_of(":=");
  if (colon == std::string_view::npos) return 1;
  const std::string_view digits = resource.substr(colon + 1);
  int32_t count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  // "gpu:a100" is one of a kind.
  if (!is_number) return digits.find_first_of("0123456789") == 0 ? std::nullopt : std::optional(1);
  return count >= 0 && count <= static_cast<int32_t>(kMaxWorkers) ? std::optional(count)
                                                                  : std::nullopt;
}

// Workers of a node; none where they are not known.
std::optional<int32_t> WorkersOf(const Submission& job, const Settings& settings) {
  const std::optional<int32_t> gpus = GpusOf(job.tres_per_node);
  const uint32_t given = job.tasks_per_node.value_or(1);
  const std::optional<int32_t> tasks = given >= 1 && given <= kMaxWorkers
                                           ? std::optional(static_cast<int32_t>(given))
                                           : std::nullopt;
  switch (settings.node_rule) {
    case NodeRule::kFixed:
      return settings.workers_per_node;
    case NodeRule::kTasks:
      return tasks;
    case NodeRule::kGpus:
      return gpus == 0 ? std::nullopt : gpus;
    case NodeRule::kAuto:
      return gpus == 0 ? tasks : gpus;
  }
  return std::nullopt;
}

bool Has(std::string_view text, std::string_view key) {
  return absl::StrCat(";", std::string(text)).find(absl::StrCat(";", std::string(key), "=")) !=
         std::string::npos;
}

// The question of the text alone.
absl::StatusOr<AdviceQuestion> TextQuestion(std::string_view text, const Settings& settings) {
  absl::StatusOr<AdviceQuestion> question = client::ParseAdviceText(text);
  if (!question.ok()) return question;
  for (const char* key : {"min", "max"}) {
    if (Has(text, key)) {
      return absl::InvalidArgumentError(
          absl::StrCat(key, ": given, but the range is that of --nodes"));
    }
  }
  if (!Has(text, "objective")) {
    const absl::Status set = client::SetAdviceField("objective", settings.objective, *question);
    if (!set.ok()) return set;
  }
  if (!Has(text, "intra-bandwidth")) {
    question->intra_node_bandwidth_bytes_per_second =
        settings.intra_node_bandwidth_bytes_per_second;
  }
  v1::Prices prices = settings.prices;
  prices.MergeFrom(question->prices);
  question->prices = prices;
  return question;
}

// True of what its author can mend.
bool IsAboutJob(absl::StatusCode code) {
  return code == absl::StatusCode::kInvalidArgument || code == absl::StatusCode::kNotFound ||
         code == absl::StatusCode::kFailedPrecondition;
}

Decision NoAdvice(const absl::Status& why) {
  Decision decision;
  const std::string line = absl::StrCat(
      "stepcast: no advice: ",
      client::LacksIntraBandwidth(why)
          ? "a node has several workers, and nobody says how fast the links inside it are: add "
            ";intra-bandwidth=300GB/s (NVLink's) to the comment"
          : std::string(why.message()));
  if (IsAboutJob(why.code()))
    decision.user_line = client::PrintableText(line, kMaxUserLine);
  else
    decision.log_line = client::PrintableText(
        absl::StrCat("no advice: ", absl::StatusCodeToString(why.code()), ": ", why.message()),
        kMaxUserLine);
  return decision;
}

// Users are told what is sure.
Decision Doubt(const AdviceQuestion& question, const Advice& advice) {
  Decision decision;
  decision.log_line = client::PrintableText(
      absl::StrCat("no advice: ", question.profile, " is not sure enough: ", advice.summary,
                   advice.warnings.empty() ? "" : "; ",
                   advice.warnings.empty() ? "" : advice.warnings.front()),
      kMaxUserLine);
  return decision;
}

}  // namespace

std::optional<std::string_view> AdviceTextOf(std::string_view comment) {
  comment = comment.substr(0, kMaxComment);
  for (size_t at = 0; at < comment.size();) {
    const size_t end = std::min(comment.find(' ', at), comment.size());
    const std::string_view word = comment.substr(at, end - at);
    if (word.substr(0, kPrefix.size()) == kPrefix) return word.substr(kPrefix.size());
    at = end + 1;
  }
  return std::nullopt;
}

std::optional<int32_t> GpusOf(std::string_view tres_per_node) {
  int32_t gpus = 0;
  tres_per_node = tres_per_node.substr(0, kMaxTres);
  for (size_t at = 0; at < tres_per_node.size();) {
    const size_t end = std::min(tres_per_node.find_first_of(",;", at), tres_per_node.size());
    std::string_view resource = tres_per_node.substr(at, end - at);
    at = end + 1;
    for (const std::string_view prefix : {"gres:", "gres/"}) {
      if (resource.substr(0, prefix.size()) == prefix) resource.remove_prefix(prefix.size());
    }
    const bool is_gpu = resource.substr(0, 3) == "gpu" &&
                        (resource.size() == 3 || resource[3] == ':' || resource[3] == '=');
    if (!is_gpu) continue;
    const std::optional<int32_t> count = CountOf(resource);
    if (!count) return std::nullopt;
    gpus += *count;
    if (gpus > static_cast<int32_t>(kMaxWorkers)) return std::nullopt;
  }
  return gpus;
}

absl::StatusOr<std::optional<AdviceQuestion>> QuestionOf(const Submission& job,
                                                         const Settings& settings) {
  const std::optional<std::string_view> text = AdviceTextOf(job.comment);
  if (!text && job.profile.empty()) return std::nullopt;
  const std::string of_environment = absl::StrCat("profile=", std::string(job.profile));
  absl::StatusOr<AdviceQuestion> question = TextQuestion(text.value_or(of_environment), settings);
  if (!question.ok()) return question.status();
  const uint32_t least = job.min_nodes.value_or(0);
  const uint32_t most = job.max_nodes.value_or(0);
  if (job.has_fixed_size || least < 1 || most <= least) return std::nullopt;
  std::optional<int32_t> workers = question->workers_per_node;
  if (!text || !Has(*text, "workers-per-node")) workers = WorkersOf(job, settings);
  if (!workers) return std::nullopt;
  const auto per_node = static_cast<uint32_t>(*workers);
  if (least > kMaxWorkers / per_node) return std::nullopt;
  const uint32_t asked = std::min({most, kMaxWorkers / per_node, least + kMaxSpread / per_node});
  if (asked == least) return std::nullopt;
  question->unit = client::AdviceUnit::kNodes;
  question->workers_per_node = *workers;
  question->min_workers = static_cast<int32_t>(least * per_node);
  question->max_workers = static_cast<int32_t>(asked * per_node);
  if (absl::Status checked = CheckAdviceQuestion(*question); !checked.ok()) return checked;
  return *std::move(question);
}

Decision Decide(const Submission& job, const Settings& settings,
                absl::FunctionRef<absl::StatusOr<Advice>(const AdviceQuestion&)> ask) {
  const absl::StatusOr<std::optional<AdviceQuestion>> question = QuestionOf(job, settings);
  if (!question.ok()) return NoAdvice(question.status());
  if (!question->has_value()) return {};
  const absl::StatusOr<Advice> advice = ask(**question);
  if (!advice.ok()) return NoAdvice(advice.status());
  const auto per_node = static_cast<uint32_t>((*question)->workers_per_node);
  const uint32_t least = *job.min_nodes;
  const uint32_t most = *job.max_nodes;
  const uint32_t nodes =
      std::clamp(static_cast<uint32_t>(advice->chosen.workers) / per_node, least, most);
  const bool is_cut = static_cast<uint32_t>((*question)->max_workers) / per_node < most;
  if (advice->low_confidence) return Doubt(**question, *advice);
  // The best of a range that was not looked at to its end may be behind it.
  if (is_cut && advice->chosen.workers == (*question)->max_workers) return {};
  const uint32_t start =
      settings.raise_min
          ? std::clamp(static_cast<uint32_t>(advice->least_workers) / per_node, least, nodes)
          : least;
  const std::string was = absl::StrCat("--nodes=", RangeText(least, most));
  const std::string good = absl::StrCat("--nodes=", RangeText(start, nodes));
  Decision decision;
  std::string what;
  if (good == was) {
    what = absl::StrCat(was, " is kept");
  } else if (settings.mode == Mode::kSet) {
    what = absl::StrCat(was, " is set to ", good);
    decision.min_nodes = start;
    decision.max_nodes = nodes;
  } else {
    what = absl::StrCat(good, " is advised instead of ", was);
  }
  const std::string line = absl::StrCat("stepcast: ", what, ": ", advice->summary);
  decision.user_line = client::PrintableText(line, kMaxUserLine);
  decision.admin_comment = client::PrintableText(
      absl::StrCat(line, "; ", (*question)->profile, ": ", advice->reason), kMaxAdminComment);
  return decision;
}

}  // namespace stepcast::slurm
