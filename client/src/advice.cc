#include "stepcast/advice.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/src/advice_request.h"
#include "client/src/error_status.h"

#include "stepcast/error_details.h"

namespace stepcast::client {

namespace {

using google::protobuf::util::TimeUtil;
using RecommendRequest = v1::RecommendWorkersRequest;
using RecommendReply = v1::RecommendWorkersResponse;

constexpr size_t kMaxText = 1024;
constexpr size_t kMaxShown = 40;
constexpr size_t kMaxProfileId = 63;
constexpr size_t kMaxSummary = 120;
constexpr size_t kMaxReason = 500;
constexpr size_t kMaxWarnings = 20;
constexpr int32_t kMaxWorkers = 4096;  // of the service
constexpr int32_t kMaxSpread = 256;    // looked at while a job waits for advice
constexpr int32_t kAllSimulated = 8;   // of the service: so many choices are all simulated
constexpr int64_t kMaxExamples = int64_t{1} << 53;
constexpr double kMaxPrice = 1e12;
constexpr double kMaxRate = 1e15;         // bytes per second
constexpr double kWidestInterval = 0.05;  // its half, as a share of the value
constexpr double kWorthStarting = 0.5;    // of the chosen count's throughput
constexpr std::string_view kProfiles = "profiles/";

std::string Shown(std::string_view text) {
  const std::string_view head = text.substr(0, kMaxShown);
  return absl::StrCat("\"", absl::CHexEscape(absl::string_view(head.data(), head.size())),
                      head.size() < text.size() ? "..." : "", "\"");
}

absl::Status Refuse(std::string_view field, std::string_view why) {
  return MakeLocalError(absl::StatusCode::kInvalidArgument, "ADVICE_INVALID",
                        std::string(field).append(": ").append(why),
                        {{"field", std::string(field)}});
}

absl::Status RefuseValue(std::string_view field, std::string_view value, std::string_view right) {
  return Refuse(field, Shown(value).append(" is not ").append(right));
}

// Number of the whole text, or none.
template <typename Number>
std::optional<Number> NumberOf(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

absl::Status SetCount(std::string_view key, std::string_view value, int32_t& count) {
  const std::optional<int32_t> number = NumberOf<int32_t>(value);
  if (!number || *number < 1 || *number > kMaxWorkers)
    return RefuseValue(key, value, absl::StrCat("a number of workers from 1 to ", kMaxWorkers));
  count = *number;
  return absl::OkStatus();
}

std::optional<double> PriceOf(std::string_view value) {
  const std::optional<double> price = NumberOf<double>(value);
  return price && *price > 0 && *price <= kMaxPrice ? price : std::nullopt;
}

// Bytes per second; of 300GB/s, 600Gbit/s, or a bare number of bytes.
std::optional<double> RateOf(std::string_view text) {
  const size_t last = text.find_last_of("0123456789.");
  if (last == std::string_view::npos) return std::nullopt;
  std::string_view unit = text.substr(last + 1);
  const std::optional<double> number = NumberOf<double>(text.substr(0, last + 1));
  if (!number || unit.empty()) return number;
  double factor = 1;
  constexpr std::array<std::pair<char, double>, 4> kPrefixes{
      {{'k', 1e3}, {'M', 1e6}, {'G', 1e9}, {'T', 1e12}}};
  for (const auto& [prefix, size] : kPrefixes) {
    if (unit.front() == prefix) factor = size;
  }
  if (factor > 1) unit.remove_prefix(1);
  if (unit == "B/s") return *number * factor;
  return unit == "bit/s" ? std::optional(*number * factor / 8) : std::nullopt;
}

void SpreadNodeHour(int32_t workers, v1::Prices& prices) {
  prices.set_worker_hour(prices.worker_hour() + prices.node_hour() / workers);
  prices.clear_node_hour();
}

bool HasPrice(const v1::Prices& prices) {
  return prices.worker_hour() > 0 || prices.node_hour() > 0 || prices.parameter_server_hour() > 0;
}

bool IsProfileId(std::string_view id) {
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_inner = [&](char c) { return is_lower(c) || (c >= '0' && c <= '9') || c == '-'; };
  return !id.empty() && id.size() <= kMaxProfileId && is_lower(id.front()) && id.back() != '-' &&
         std::all_of(id.begin(), id.end(), is_inner);
}

std::string_view IdOf(std::string_view profile) {
  if (profile.substr(0, kProfiles.size()) == kProfiles) profile.remove_prefix(kProfiles.size());
  return profile;
}

// Above 0 and at most ten years, from 90m, 1h30m, 2.5h or 3d.
std::optional<std::chrono::nanoseconds> LengthOf(std::string_view text) {
  if (text.find_first_not_of("0123456789.dhms") != std::string_view::npos) return std::nullopt;
  absl::Duration length;
  if (!text.empty() && text.back() == 'd') {
    const std::optional<double> days = NumberOf<double>(text.substr(0, text.size() - 1));
    if (!days) return std::nullopt;
    length = *days * absl::Hours(24);
  } else if (!absl::ParseDuration(absl::string_view(text.data(), text.size()), &length)) {
    return std::nullopt;
  }
  if (length <= absl::ZeroDuration() || length > absl::Hours(24 * 3653)) return std::nullopt;
  return absl::ToChronoNanoseconds(length);
}

absl::Status SetObjective(std::string_view value, AdviceQuestion& question) {
  constexpr std::string_view kRight =
      "knee, throughput, efficiency=0.8, deadline=6h or cost, with a share above 0 and at most 1, "
      "a time above 0 and at most ten years";
  const size_t equals = value.find('=');
  const std::string_view name = value.substr(0, equals);
  const bool has_amount = equals != std::string_view::npos;
  const std::string_view amount = has_amount ? value.substr(equals + 1) : std::string_view();
  constexpr std::array<std::pair<std::string_view, AdviceObjective>, 3> kBare{
      {{"knee", AdviceObjective::kKnee},
       {"throughput", AdviceObjective::kThroughput},
       {"cost", AdviceObjective::kCost}}};
  for (const auto& [bare, objective] : kBare) {
    if (value != bare) continue;
    question.objective = objective;
    return absl::OkStatus();
  }
  if (name == "efficiency" && has_amount) {
    const std::optional<double> share = NumberOf<double>(amount);
    if (share && *share > 0 && *share <= 1) {
      question.objective = AdviceObjective::kEfficiency;
      question.min_efficiency = *share;
      return absl::OkStatus();
    }
  }
  if (name == "deadline" && has_amount) {
    if (const auto length = LengthOf(amount); length) {
      question.objective = AdviceObjective::kDeadline;
      question.deadline = length;
      return absl::OkStatus();
    }
  }
  return RefuseValue("objective", value, kRight);
}

std::string NumberText(double value) {
  if (value >= 1e7) return absl::StrFormat("%.3g", value);
  return value >= 100 ? absl::StrFormat("%.0f", value) : absl::StrFormat("%.3g", value);
}

std::string CountText(int32_t workers, const AdviceQuestion& question) {
  const bool nodes = question.unit == AdviceUnit::kNodes;
  const int32_t per = nodes ? std::max(question.workers_per_node, 1) : 1;
  const int32_t count = (workers + per - 1) / per;
  return absl::StrCat(count, nodes ? " node" : " worker", count == 1 ? "" : "s");
}

AdvicePoint PointOf(const v1::Prediction& prediction) {
  return {.workers = prediction.scenario().workers(),
          .examples_per_second = prediction.examples_per_second(),
          .lower = prediction.confidence_interval().lower(),
          .upper = prediction.confidence_interval().upper(),
          .efficiency = prediction.scaling_efficiency()};
}

bool IsSound(const AdvicePoint& point, const AdviceQuestion& question) {
  return point.workers >= question.min_workers && point.workers <= question.max_workers &&
         std::isfinite(point.examples_per_second) && point.examples_per_second > 0 &&
         std::isfinite(point.lower) && std::isfinite(point.upper) &&
         std::isfinite(point.efficiency) && point.efficiency >= 0;
}

// True where a throughput is not to be relied on, beside others of the same recording: what that
// leaves open moves all alike. Earlier servers tell one interval.
bool IsDoubtful(const v1::Prediction& prediction) {
  const v1::ConfidenceInterval& interval = prediction.has_simulation_interval()
                                               ? prediction.simulation_interval()
                                               : prediction.confidence_interval();
  const double width = (interval.upper() - interval.lower()) / 2;
  return !prediction.steady_state() || !prediction.regimes().empty() ||
         !(width <= kWidestInterval * prediction.examples_per_second());
}

bool KeepsConstraints(const AdvicePoint& point, const AdviceQuestion& question) {
  if (question.objective == AdviceObjective::kEfficiency)
    return point.efficiency >= question.min_efficiency;
  if (question.objective != AdviceObjective::kDeadline) return true;
  const double seconds = static_cast<double>(*question.examples) / point.examples_per_second;
  return seconds <= std::chrono::duration<double>(*question.deadline).count();
}

// The points of a reply that the curve has not yet; false where one is not of the question.
bool AddPoints(const RecommendReply& reply, const AdviceQuestion& question,
               std::vector<AdvicePoint>& curve) {
  for (const v1::Prediction& prediction : reply.frontier()) {
    AdvicePoint point = PointOf(prediction);
    if (!IsSound(point, question)) return false;
    point.keeps_constraints = KeepsConstraints(point, question);
    const bool is_new = std::none_of(curve.begin(), curve.end(), [&](const AdvicePoint& other) {
      return other.workers == point.workers;
    });
    if (is_new) curve.push_back(point);
  }
  return true;
}

int32_t KneeOf(const std::vector<AdvicePoint>& curve) {
  double most = 0;
  int32_t knee = 0;
  for (const AdvicePoint& point : curve) {
    const double value = point.examples_per_second * point.examples_per_second / point.workers;
    if (value <= most) continue;
    most = value;
    knee = point.workers;
  }
  return knee;
}

// The throughput of a count within the curve. Between two that were simulated, on the straight line
// through them: each worker more adds no more than the one before, so it is no less.
AdvicePoint PointAt(int32_t workers, const std::vector<AdvicePoint>& curve) {
  const auto above = std::find_if(curve.begin(), curve.end(), [&](const AdvicePoint& point) {
    return point.workers >= workers;
  });
  if (above->workers == workers || above == curve.begin()) return *above;
  const AdvicePoint& below = *std::prev(above);
  const double share =
      static_cast<double>(workers - below.workers) / (above->workers - below.workers);
  const auto between = [&](double from, double to) { return from + share * (to - from); };
  AdvicePoint point{.workers = workers};
  point.examples_per_second = between(below.examples_per_second, above->examples_per_second);
  // Throughput over efficiency and workers is one worker's, the same for all.
  point.efficiency =
      between(below.efficiency * below.workers, above->efficiency * above->workers) / workers;
  return point;
}

int32_t LeastOf(const Advice& advice, const AdviceQuestion& question) {
  const double enough = kWorthStarting * advice.chosen.examples_per_second;
  int32_t workers = question.min_workers;
  for (; workers < advice.chosen.workers; workers += question.workers_per_node) {
    if (workers < advice.curve.front().workers) continue;
    const AdvicePoint point = PointAt(workers, advice.curve);
    if (point.examples_per_second >= enough && KeepsConstraints(point, question)) break;
  }
  return std::min(workers, advice.chosen.workers);
}

// The largest count that is not the chosen one; else the smallest; else null.
const AdvicePoint* ComparedWith(const Advice& advice) {
  if (advice.curve.back().workers != advice.chosen.workers) return &advice.curve.back();
  return advice.curve.front().workers != advice.chosen.workers ? &advice.curve.front() : nullptr;
}

std::string SummaryOf(const Advice& advice, const AdviceQuestion& question) {
  std::string text = absl::StrCat(AdvicePointText(advice.chosen, question), " eff");
  if (const AdvicePoint* other = ComparedWith(advice); other != nullptr)
    absl::StrAppend(&text, "; ", AdvicePointText(*other, question));
  return PrintableText(text, kMaxSummary);
}

absl::Status Unusable(std::string_view why) {
  return MakeLocalError(absl::StatusCode::kInternal, "ADVICE_UNUSABLE",
                        std::string("the server's answer is not usable: ").append(why));
}

}  // namespace

absl::Status SetAdviceField(std::string_view key, std::string_view value,
                            AdviceQuestion& question) {
  if (value.size() > kMaxText)
    return Refuse(key.substr(0, kMaxShown),
                  absl::StrCat(value.size(), " bytes, more than ", kMaxText));
  if (key == "profile") {
    if (!IsProfileId(IdOf(value))) {
      return RefuseValue(key, value,
                         "the name of a profile, 1 to 63 characters of a-z, 0-9 and -, beginning "
                         "with a letter and not ending with -");
    }
    question.profile = std::string(value);
    return absl::OkStatus();
  }
  if (key == "objective") return SetObjective(value, question);
  if (key == "min") return SetCount(key, value, question.min_workers);
  if (key == "max") return SetCount(key, value, question.max_workers);
  if (key == "workers-per-node") return SetCount(key, value, question.workers_per_node);
  if (key == "intra-bandwidth") {
    const std::optional<double> rate = RateOf(value);
    if (!rate || !(*rate >= 1 && *rate <= kMaxRate)) {
      return RefuseValue(key, value,
                         "a rate from 1 to 1e15 bytes per second: 300GB/s, 600Gbit/s, 300e9");
    }
    question.intra_node_bandwidth_bytes_per_second = *rate;
    return absl::OkStatus();
  }
  if (key == "examples") {
    const std::optional<int64_t> examples = NumberOf<int64_t>(value);
    if (!examples || *examples < 1 || *examples > kMaxExamples)
      return RefuseValue(key, value, absl::StrCat("a whole number from 1 to ", kMaxExamples));
    question.examples = examples;
    return absl::OkStatus();
  }
  if (key == "worker-hour" || key == "node-hour") {
    const std::optional<double> price = PriceOf(value);
    if (!price) return RefuseValue(key, value, "an amount above 0 and at most 1e12");
    if (key == "worker-hour") question.prices.set_worker_hour(*price);
    if (key == "node-hour") question.prices.set_node_hour(*price);
    return absl::OkStatus();
  }
  return Refuse(Shown(key),
                "no such field; there are profile, objective, examples, min, max, "
                "workers-per-node, intra-bandwidth, worker-hour and node-hour");
}

absl::StatusOr<AdviceQuestion> ParseAdviceText(std::string_view text) {
  if (text.size() > kMaxText)
    return Refuse("text", absl::StrCat(text.size(), " bytes, more than ", kMaxText));
  AdviceQuestion question;
  std::set<std::string_view> seen;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(';', at), text.size());
    const std::string_view field = text.substr(at, end - at);
    at = end + 1;
    const size_t equals = field.find('=');
    if (equals == std::string_view::npos) return RefuseValue("text", field, "a field KEY=VALUE");
    const std::string_view key = field.substr(0, equals);
    if (!seen.insert(key).second) return Refuse(Shown(key), "given twice");
    const absl::Status set = SetAdviceField(key, field.substr(equals + 1), question);
    if (!set.ok()) return set;
  }
  if (question.profile.empty()) return Refuse("profile", "required");
  return question;
}

absl::Status CheckAdviceQuestion(const AdviceQuestion& question) {
  if (!IsProfileId(IdOf(question.profile)))
    return RefuseValue("profile", question.profile, "the name of a profile");
  if (question.workers_per_node < 1 || question.workers_per_node > kMaxWorkers) {
    return Refuse("workers_per_node",
                  absl::StrCat(question.workers_per_node, " is not from 1 to ", kMaxWorkers));
  }
  if (question.min_workers < 1 || question.min_workers > kMaxWorkers)
    return Refuse("min", absl::StrCat(question.min_workers, " is not from 1 to ", kMaxWorkers));
  if (question.max_workers < question.min_workers || question.max_workers > kMaxWorkers) {
    return Refuse("max", absl::StrCat(question.max_workers, " is not from min, ",
                                      question.min_workers, ", to ", kMaxWorkers));
  }
  if (question.max_workers - question.min_workers > kMaxSpread) {
    return Refuse("max", absl::StrCat(question.max_workers, " is more than ", kMaxSpread,
                                      " above min, ", question.min_workers));
  }
  if (question.min_workers % question.workers_per_node != 0 ||
      question.max_workers % question.workers_per_node != 0) {
    return Refuse("workers_per_node",
                  absl::StrCat(question.workers_per_node, " does not divide both min, ",
                               question.min_workers, ", and max, ", question.max_workers));
  }
  if (question.objective == AdviceObjective::kEfficiency &&
      !(question.min_efficiency > 0 && question.min_efficiency <= 1)) {
    return Refuse("objective", absl::StrCat("an efficiency of ", question.min_efficiency,
                                            " is not above 0 and at most 1"));
  }
  if (question.examples && *question.examples < 1)
    return Refuse("examples", absl::StrCat(*question.examples, " is less than 1"));
  if (question.objective == AdviceObjective::kDeadline) {
    if (!question.deadline || question.deadline->count() <= 0)
      return Refuse("objective", "a deadline above 0 is required");
    if (!question.examples) return Refuse("examples", "required by a deadline");
  }
  if (question.objective == AdviceObjective::kCost && !HasPrice(question.prices))
    return Refuse("objective", "cost needs a price above 0: worker-hour or node-hour");
  return absl::OkStatus();
}

bool LacksIntraBandwidth(const absl::Status& refusal) {
  const std::vector<FieldViolation> violations = GetErrorDetails(refusal).violations;
  return std::any_of(violations.begin(), violations.end(), [](const FieldViolation& violation) {
    return violation.field == "scenario.all_reduce.intra_node_bandwidth_bytes_per_second";
  });
}

std::string AdvicePointText(const AdvicePoint& point, const AdviceQuestion& question) {
  return absl::StrCat(CountText(point.workers, question), " ",
                      NumberText(point.examples_per_second), "/s ",
                      absl::StrFormat("%.0f%%", 100 * std::min(point.efficiency, 99.0)));
}

std::string PrintableText(std::string_view text, size_t max_bytes) {
  std::string line(text.substr(0, max_bytes));
  if (text.size() > max_bytes && max_bytes >= 3) line.replace(max_bytes - 3, 3, "...");
  for (char& c : line) {
    if (c < ' ' || c > '~') c = '?';
  }
  return line;
}

v1::RecommendWorkersRequest RequestOf(const AdviceQuestion& question) {
  RecommendRequest request;
  request.set_profile(std::string(kProfiles).append(IdOf(question.profile)));
  *request.mutable_scenario() = question.scenario;
  request.mutable_options();
  v1::Constraints& constraints = *request.mutable_constraints();
  constraints.set_min_workers(question.min_workers);
  constraints.set_max_workers(question.max_workers);
  if (question.examples) constraints.set_examples(*question.examples);
  const bool priced = HasPrice(question.prices);
  if (priced) *request.mutable_prices() = question.prices;
  if (priced && question.workers_per_node <= 1) SpreadNodeHour(1, *request.mutable_prices());
  switch (question.objective) {
    case AdviceObjective::kKnee:
      request.set_objective(RecommendRequest::KNEE);
      break;
    case AdviceObjective::kThroughput:
      request.set_objective(RecommendRequest::MAX_THROUGHPUT);
      break;
    case AdviceObjective::kEfficiency:
      request.set_objective(RecommendRequest::MAX_THROUGHPUT);
      constraints.set_min_scaling_efficiency(question.min_efficiency);
      break;
    case AdviceObjective::kDeadline:
      request.set_objective(RecommendRequest::MIN_COST);
      *constraints.mutable_deadline() = TimeUtil::NanosecondsToDuration(
          question.deadline.value_or(std::chrono::hours(1)).count());
      // An hour of a worker is the unit then.
      if (!priced) request.mutable_prices()->set_worker_hour(1);
      break;
    case AdviceObjective::kCost:
      request.set_objective(RecommendRequest::MIN_COST);
      break;
  }
  return request;
}

bool NeedsKneeRequest(const AdviceQuestion& question) {
  const int32_t choices =
      (question.max_workers - question.min_workers) / std::max(question.workers_per_node, 1) + 1;
  return question.objective != AdviceObjective::kKnee && choices > kAllSimulated;
}

v1::RecommendWorkersRequest KneeRequestOf(const v1::RecommendWorkersRequest& request) {
  RecommendRequest knee = request;
  knee.set_objective(RecommendRequest::KNEE);
  knee.clear_prices();
  v1::Constraints& constraints = *knee.mutable_constraints();
  constraints.clear_deadline();
  constraints.clear_examples();
  constraints.clear_min_scaling_efficiency();
  return knee;
}

bool NeedsCommunication(const AdviceQuestion& question) {
  return question.workers_per_node > 1 && !question.scenario.has_all_reduce();
}

v1::PredictThroughputRequest CommunicationRequestOf(const AdviceQuestion& question) {
  v1::PredictThroughputRequest request;
  request.set_profile(std::string(kProfiles).append(IdOf(question.profile)));
  *request.mutable_scenario() = question.scenario;
  request.add_worker_counts(1);
  return request;
}

void SetNode(const AdviceQuestion& question, v1::RecommendWorkersRequest& request) {
  v1::AllReduce& job = *request.mutable_scenario()->mutable_all_reduce();
  job.set_workers_per_node(question.workers_per_node);
  if (question.intra_node_bandwidth_bytes_per_second > 0)
    job.set_intra_node_bandwidth_bytes_per_second(question.intra_node_bandwidth_bytes_per_second);
}

namespace {

// Servers know no nodes: full ones are listed, and what one costs is of its workers.
void ListFullNodes(const AdviceQuestion& question, v1::RecommendWorkersRequest& request) {
  v1::Constraints& constraints = *request.mutable_constraints();
  constraints.clear_min_workers();
  constraints.clear_max_workers();
  const int32_t per_node = question.workers_per_node;
  for (int32_t count = question.min_workers; count <= question.max_workers; count += per_node)
    constraints.add_worker_counts(count);
  if (request.has_prices()) SpreadNodeHour(per_node, *request.mutable_prices());
}

}  // namespace

absl::Status SetWorkersPerNode(const AdviceQuestion& question,
                               const v1::PredictThroughputResponse& reply,
                               v1::RecommendWorkersRequest& request) {
  if (reply.predictions_size() != 1) return Unusable("it does not have one prediction");
  if (reply.predictions(0).scenario().has_all_reduce())
    SetNode(question, request);
  else
    ListFullNodes(question, request);
  return absl::OkStatus();
}

absl::StatusOr<Advice> AdviceOf(const AdviceQuestion& question, const RecommendReply& reply,
                                const RecommendReply* knee) {
  if (reply.workers() == 0) {
    return MakeLocalError(absl::StatusCode::kFailedPrecondition, "INFEASIBLE",
                          std::string("no number of workers will do: ")
                              .append(PrintableText(reply.infeasible_reason(), kMaxReason)));
  }
  Advice advice;
  advice.chosen = PointOf(reply.prediction());
  const bool sound = advice.chosen.workers == reply.workers() && IsSound(advice.chosen, question);
  advice.curve.push_back(advice.chosen);
  if (!sound || !AddPoints(reply, question, advice.curve) ||
      (knee != nullptr && !AddPoints(*knee, question, advice.curve)))
    return Unusable("a prediction is not of the range that was asked for");
  std::sort(advice.curve.begin(), advice.curve.end(),
            [](const AdvicePoint& a, const AdvicePoint& b) { return a.workers < b.workers; });
  const bool is_known = knee != nullptr || question.objective == AdviceObjective::kKnee;
  advice.knee = is_known ? (knee == nullptr ? reply : *knee).workers() : KneeOf(advice.curve);
  advice.least_workers = LeastOf(advice, question);
  if (reply.has_cost() && HasPrice(question.prices)) advice.cost = reply.cost();
  if (reply.has_duration()) {
    advice.duration = std::chrono::nanoseconds(TimeUtil::DurationToNanoseconds(reply.duration()));
  }
  advice.low_confidence = IsDoubtful(reply.prediction());
  for (const v1::Warning& warning : reply.warnings()) {
    if (advice.warnings.size() == kMaxWarnings) break;
    advice.warnings.push_back(PrintableText(warning.message(), kMaxReason));
  }
  advice.summary = SummaryOf(advice, question);
  advice.reason = PrintableText(reply.reason(), kMaxReason);
  return advice;
}

std::string KeyOf(const AdviceQuestion& question) {
  std::string key =
      absl::StrCat(question.workers_per_node, "/", question.intra_node_bandwidth_bytes_per_second,
                   "/", static_cast<int>(question.unit), "/", static_cast<int>(question.objective),
                   "/", question.min_efficiency, "/");
  google::protobuf::io::StringOutputStream stream(&key);
  google::protobuf::io::CodedOutputStream coded(&stream);
  // Maps have no order of their own.
  coded.SetSerializationDeterministic(true);
  RequestOf(question).SerializeToCodedStream(&coded);
  return key;
}

}  // namespace stepcast::client
