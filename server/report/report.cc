#include "server/report/report.h"

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"

#include "core/base/error.h"
#include "server/report/page.h"
#include "server/report/step_trace.h"

namespace stepcast::server {

namespace {

using nlohmann::ordered_json;

// A coarser look, where each count costs a simulation of its own.
constexpr size_t kFewCounts = 6;
constexpr int kShownTransfers = 20;
// Points of the throughput over time of each prediction, and of all (PredictThroughputRequest).
constexpr int32_t kSeriesPoints = 40;
constexpr int32_t kMostPoints = 20'000;
// Steps that a timeline is chosen from, as far as so many operations of all workers go.
constexpr int64_t kTracedSteps = 5;
constexpr int64_t kTracedOperations = 200'000;

// The message's proto JSON; what is at its default is left out.
ordered_json JsonOf(const google::protobuf::Message& message) {
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(message, &text).ok()) return nullptr;
  return ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
}

bool IsAllReduce(const v1::Prediction& prediction) {
  return prediction.scenario().has_all_reduce();
}

// Fields that a scenario has for each operation would be there once a prediction.
void TrimScenario(v1::Scenario& scenario) {
  if (scenario.has_parameter_servers())
    scenario.mutable_parameter_servers()->clear_transfer_priorities();
  if (scenario.has_all_reduce()) {
    scenario.mutable_all_reduce()->clear_measured();
    scenario.mutable_all_reduce()->clear_groups();
  }
  scenario.clear_start_offsets_ns();
}

void Trim(v1::Prediction& prediction) {
  TrimScenario(*prediction.mutable_scenario());
  if (prediction.has_collectives()) prediction.mutable_collectives()->clear_collectives();
}

template <typename Predictions>
void TrimAll(Predictions& predictions) {
  for (v1::Prediction& prediction : predictions) Trim(prediction);
}

// The counts, thinned to about the powers of two, with first and last and `kept` among them.
std::vector<int32_t> FewOf(std::vector<int32_t> counts, int32_t kept) {
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  if (counts.size() <= kFewCounts) return counts;
  std::vector<int32_t> few;
  for (const int32_t count : counts) {
    const bool is_wanted = count == kept || count == counts.back();
    if (few.empty() || count >= 2 * few.back() || is_wanted) few.push_back(count);
  }
  return few;
}

class Collector {
 public:
  Collector(ReportSource& source, const ReportSubject& subject, const std::vector<int32_t>& counts)
      : source_(source), subject_(subject), counts_(counts) {}

  absl::StatusOr<ordered_json> Collect() {
    if (absl::Status status = CollectProfile(); !status.ok()) return status;
    // The curve is of the servers that were chosen, where they are.
    const bool chooses_servers = subject_.question.constraints().has_max_parameter_servers();
    if (chooses_servers) CollectRecommendation();
    if (absl::Status status = CollectPrediction(); !status.ok()) return status;
    if (!chooses_servers) CollectRecommendation();
    if (workers_ == 0) {
      workers_ = counts_.back();
      step_seconds_ = MeanStepSeconds(*prediction_.predictions().rbegin());
    }
    // Layouts are all else there is of pipelines.
    if (!HasPipeline()) {
      if (IsAllReduce(prediction_.predictions(0))) {
        CollectTuning();
      } else {
        CollectOrders();
      }
      CollectTheOtherKind();
      CollectScaling();
    }
    CollectModels();
    CollectDiagnosis();
    CollectTimeline();
    data_["missing"] = std::move(missing_);
    return std::move(data_);
  }

  const std::string& label() const { return label_; }
  const std::string& summary() const { return summary_; }

 private:
  // Puts the source, the options and so on of the question into a request of another method.
  template <typename Request>
  Request Ask() const {
    Request request;
    if (subject_.question.has_inline_profile()) {
      *request.mutable_inline_profile() = subject_.question.inline_profile();
    } else {
      request.set_profile(subject_.question.profile());
    }
    *request.mutable_scenario() = subject_.question.scenario();
    if constexpr (requires { request.mutable_options(); })
      *request.mutable_options() = subject_.question.options();
    return request;
  }

  void Miss(const char* part, const absl::Status& status) {
    missing_[part] = std::string(status.message());
  }

  absl::Status CollectProfile() {
    v1::Profile profile;
    if (subject_.question.has_inline_profile()) {
      const v1::Profile& given = subject_.question.inline_profile();
      profile.set_display_name(given.display_name());
      profile.set_model(given.model());
      profile.set_framework(given.framework());
      profile.set_batch_size(given.batch_size());
      profile.set_operation_count(given.operations_size());
      profile.set_step_count(given.steps_size());
    } else {
      v1::GetProfileRequest request;
      request.set_name(subject_.question.profile());
      request.set_view(v1::BASIC);
      absl::StatusOr<v1::Profile> found = source_.GetProfile(request);
      if (!found.ok()) return found.status();
      profile = *std::move(found);
      profile.clear_labels();
      profile.clear_owner();
      profile.clear_etag();
    }
    operations_ = std::max<int64_t>(profile.operation_count(), 1);
    batch_size_ = profile.batch_size();
    label_ = subject_.label;
    for (const std::string* name : {&profile.display_name(), &profile.model(), &profile.name()}) {
      if (label_.empty()) label_ = *name;
    }
    if (label_.empty()) label_ = subject_.file.empty() ? "a job" : subject_.file;
    data_["label"] = label_;
    if (!subject_.file.empty()) data_["file"] = subject_.file;
    data_["profile"] = JsonOf(profile);
    return absl::OkStatus();
  }

  absl::Status CollectPrediction() {
    auto request = Ask<v1::PredictThroughputRequest>();
    SetServers(*request.mutable_scenario());
    request.mutable_worker_counts()->Assign(counts_.begin(), counts_.end());
    request.set_series_points(
        std::min<int32_t>(kSeriesPoints, kMostPoints / static_cast<int32_t>(counts_.size() + 1)));
    absl::StatusOr<v1::PredictThroughputResponse> reply = source_.PredictThroughput(request);
    if (!reply.ok()) return reply.status();
    prediction_ = *std::move(reply);
    if (prediction_.predictions().empty())
      return MakeError(absl::StatusCode::kInternal, "the service predicted nothing",
                       {.reason = "NO_PREDICTION"});
    v1::PredictThroughputResponse shown = prediction_;
    TrimAll(*shown.mutable_predictions());
    data_["prediction"] = JsonOf(shown);
    return absl::OkStatus();
  }

  void CollectRecommendation() {
    v1::RecommendWorkersRequest request = subject_.question;
    v1::Constraints& constraints = *request.mutable_constraints();
    const auto [least, most] = std::minmax_element(counts_.begin(), counts_.end());
    if (!constraints.has_min_workers()) constraints.set_min_workers(*least);
    if (!constraints.has_max_workers())
      constraints.set_max_workers(std::max(*most, constraints.min_workers()));
    data_["asked"] = {{"constraints", JsonOf(constraints)},
                      {"prices", request.has_prices() ? JsonOf(request.prices()) : nullptr},
                      {"objective", v1::RecommendWorkersRequest::Objective_Name(
                                        request.objective() == 0 ? v1::RecommendWorkersRequest::KNEE
                                                                 : request.objective())}};
    absl::StatusOr<v1::RecommendWorkersResponse> reply = source_.RecommendWorkers(request);
    if (!reply.ok()) return Miss("recommendation", reply.status());
    const bool is_feasible = reply->workers() > 0;
    summary_ = is_feasible ? reply->reason() : reply->infeasible_reason();
    const v1::Prediction& chosen =
        is_feasible ? reply->prediction() : reply->nearest().prediction();
    if (chosen.scenario().workers() > 0) {
      workers_ = chosen.scenario().workers();
      step_seconds_ = MeanStepSeconds(chosen);
      if (chosen.scenario().has_parameter_servers())
        servers_ = chosen.scenario().parameter_servers().servers();
    }
    Trim(*reply->mutable_prediction());
    if (reply->has_nearest()) Trim(*reply->mutable_nearest()->mutable_prediction());
    TrimAll(*reply->mutable_frontier());
    data_["recommendation"] = JsonOf(*reply);
  }

  // The recommended choice, for questions about one number of workers.
  void SetChosen(v1::Scenario& scenario) const {
    scenario.set_workers(workers_);
    SetServers(scenario);
  }
  void SetServers(v1::Scenario& scenario) const {
    if (servers_ && subject_.question.constraints().has_max_parameter_servers())
      scenario.mutable_parameter_servers()->set_servers(*servers_);
  }

  void CollectOrders() {
    auto request = Ask<v1::OptimizeOrderRequest>();
    SetChosen(*request.mutable_scenario());
    if (request.scenario().has_parameter_servers()) {
      v1::ParameterServers& servers = *request.mutable_scenario()->mutable_parameter_servers();
      servers.clear_transfer_order();
      servers.clear_transfer_priorities();
    }
    absl::StatusOr<v1::OptimizeOrderResponse> reply = source_.OptimizeOrder(request);
    if (!reply.ok()) return Miss("orders", reply.status());
    for (v1::TransferOrderResult& order : *reply->mutable_orders()) {
      const int kept = order.method() == reply->chosen() ? kShownTransfers : 0;
      if (order.transfers_size() > kept)
        order.mutable_transfers()->DeleteSubrange(kept, order.transfers_size() - kept);
    }
    data_["orders"] = JsonOf(*reply);
    data_["orders"]["workers"] = workers_;
  }

  void CollectTuning() {
    auto request = Ask<v1::OptimizeCommunicationRequest>();
    // One worker has nothing to communicate.
    const int32_t workers = std::max(workers_, 2);
    request.mutable_scenario()->set_workers(workers);
    absl::StatusOr<v1::OptimizeCommunicationResponse> reply =
        source_.OptimizeCommunication(request);
    if (!reply.ok()) return Miss("tuning", reply.status());
    std::vector<int> groups;
    for (v1::CommunicationStrategy& strategy : *reply->mutable_strategies()) {
      groups.push_back(strategy.groups_size());
      strategy.clear_groups();
    }
    data_["tuning"] = JsonOf(*reply);
    data_["tuning"]["workers"] = workers;
    for (size_t i = 0; i < groups.size(); ++i)
      data_["tuning"]["strategies"][i]["groupCount"] = groups[i];
  }

  // All-reduces instead of parameter servers, or the other way round, on the same links.
  void CollectTheOtherKind() {
    auto request = Ask<v1::PredictThroughputRequest>();
    const bool to_servers = IsAllReduce(prediction_.predictions(0));
    request.mutable_scenario()->set_recorded_kind_only(false);
    if (to_servers) {
      request.mutable_scenario()->mutable_parameter_servers()->Clear();
      request.mutable_scenario()->mutable_parameter_servers()->set_servers(1);
    } else {
      request.mutable_scenario()->mutable_all_reduce()->Clear();
    }
    const std::vector<int32_t> counts = FewOf(counts_, workers_);
    request.mutable_worker_counts()->Assign(counts.begin(), counts.end());
    absl::StatusOr<v1::PredictThroughputResponse> reply = source_.PredictThroughput(request);
    if (!reply.ok()) return Miss("otherKind", reply.status());
    TrimAll(*reply->mutable_predictions());
    data_["otherKind"] = JsonOf(*reply);
  }

  // Strong scaling, all workers sharing the batch of one, beside a question about weak scaling;
  // weak scaling beside one about strong scaling.
  void CollectScaling() {
    auto request = Ask<v1::PredictThroughputRequest>();
    SetServers(*request.mutable_scenario());
    v1::JobChange& change = *request.mutable_scenario()->mutable_change();
    std::vector<int32_t> counts = FewOf(counts_, workers_);
    const bool is_strong = change.has_global_batch_size();
    if (is_strong) {
      change.clear_global_batch_size();
      change.clear_fixed_fraction();
      change.clear_second();
    } else {
      const int32_t batch = change.has_batch_size() ? change.batch_size() : batch_size_;
      if (batch < 1) return;
      change.clear_batch_size();
      change.set_global_batch_size(int64_t{batch} * std::max(change.accumulate(), 1));
      std::erase_if(counts, [batch](int32_t count) { return count < 1 || batch % count != 0; });
      if (counts.empty()) {
        return Miss("scaling", absl::InvalidArgumentError(absl::StrCat(
                                   "no number of workers asked about divides a batch of ", batch)));
      }
    }
    request.mutable_worker_counts()->Assign(counts.begin(), counts.end());
    absl::StatusOr<v1::PredictThroughputResponse> reply = source_.PredictThroughput(request);
    if (!reply.ok()) return Miss("scaling", reply.status());
    TrimAll(*reply->mutable_predictions());
    data_["scaling"] = JsonOf(*reply);
    data_["scaling"]["other"] = is_strong ? "weak" : "strong";
    const v1::JobChange& shared = is_strong ? subject_.question.scenario().change() : change;
    data_["scaling"]["globalBatch"] = shared.global_batch_size();
  }

  void CollectModels() {
    auto request = Ask<v1::CompareModelsRequest>();
    const std::vector<int32_t> counts = FewOf(counts_, workers_);
    request.mutable_worker_counts()->Assign(counts.begin(), counts.end());
    absl::StatusOr<v1::CompareModelsResponse> reply = source_.CompareModels(request);
    if (!reply.ok()) return Miss("models", reply.status());
    for (v1::ModelComparison& comparison : *reply->mutable_comparisons())
      Trim(*comparison.mutable_prediction());
    data_["models"] = JsonOf(*reply);
  }

  void CollectDiagnosis() {
    auto request = Ask<v1::DiagnoseJobRequest>();
    SetChosen(*request.mutable_scenario());
    absl::StatusOr<v1::DiagnoseJobResponse> reply = source_.DiagnoseJob(request);
    if (!reply.ok()) return Miss("diagnosis", reply.status());
    // A recording's number of workers is asked about, as it is by itself. Only this reply says it.
    const int recorded = reply->recording().report().workers_size();
    if (recorded > 0 && recorded != workers_) {
      request.mutable_scenario()->set_workers(recorded);
      if (auto as_recorded = source_.DiagnoseJob(request); as_recorded.ok())
        reply = std::move(as_recorded);
    }
    Trim(*reply->mutable_prediction());
    for (v1::WhatIf& what_if : *reply->mutable_what_ifs()) {
      Trim(*what_if.mutable_prediction());
      for (v1::CommunicationGroup& group : *what_if.mutable_groups()) group.clear_operations();
    }
    data_["diagnosis"] = JsonOf(*reply);
  }

  bool HasPipeline() const { return prediction_.predictions(0).scenario().pipeline().stages() > 0; }

  // Operations that a trace shows of a step: each one of every worker, or each computation of a few
  // replicas, its transfer and the arrow.
  int64_t TracedOfStep() const {
    if (!HasPipeline()) return operations_ * workers_;
    constexpr int64_t kReplicas = 4;
    constexpr int64_t kOfMicroBatch = 15;
    const v1::Pipeline& pipeline = prediction_.predictions(0).scenario().pipeline();
    return kReplicas * kOfMicroBatch * pipeline.stages() * std::max(pipeline.chunks(), 1) *
           pipeline.micro_batches();
  }

  void CollectTimeline() {
    auto request = Ask<v1::GenerateTraceRequest>();
    SetChosen(*request.mutable_scenario());
    const int64_t steps = std::clamp<int64_t>(kTracedOperations / TracedOfStep(), 1, kTracedSteps);
    request.clear_options();
    request.mutable_options()->set_steps_per_worker(static_cast<int32_t>(steps));
    if (subject_.question.options().has_seed())
      request.mutable_options()->set_seed(subject_.question.options().seed());
    // Start of the steady state that is predicted.
    if (!IsAllReduce(prediction_.predictions(0)))
      request.mutable_options()->set_start(v1::SimulationOptions::STAGGERED);
    StepTrace trace;
    const absl::Status status = source_.GenerateTrace(
        request, [&trace](std::string_view piece) { return trace.Take(piece); });
    if (!status.ok()) return Miss("timeline", status);
    const absl::StatusOr<StepTimeline> step = trace.StepNearest(step_seconds_);
    if (!step.ok()) return Miss("timeline", step.status());
    ordered_json operations = ordered_json::array();
    for (const StepTimeline::Operation& operation : step->operations) {
      operations.push_back({operation.lane, operation.name, operation.kind, operation.start_ns,
                            operation.length_ns, operation.size_bytes});
    }
    data_["timeline"] = {{"workers", workers_},
                         {"step", step->step},
                         {"stepsFound", step->steps_found},
                         {"lengthNs", step->length_ns},
                         {"lanes", step->lanes},
                         {"names", step->names},
                         {"kinds", step->kinds},
                         {"operations", std::move(operations)},
                         {"leftOut", step->operations_left_out}};
  }

  static double MeanStepSeconds(const v1::Prediction& prediction) {
    constexpr double kNs = 1e-9;
    return kNs * static_cast<double>(google::protobuf::util::TimeUtil::DurationToNanoseconds(
                     prediction.step_time().mean()));
  }

  ReportSource& source_;
  const ReportSubject& subject_;
  const std::vector<int32_t>& counts_;

  std::string label_;
  std::string summary_;
  int64_t operations_ = 1;
  int32_t batch_size_ = 0;
  v1::PredictThroughputResponse prediction_;
  int32_t workers_ = 0;  // recommended, or nearest to that; 0: not known yet
  std::optional<int32_t> servers_;
  double step_seconds_ = 0;  // with so many
  ordered_json data_ = ordered_json::object();
  ordered_json missing_ = ordered_json::object();
};

}  // namespace

std::string ShellWord(std::string_view word) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:,=@%+-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(word);
  return absl::StrCat("'", absl::StrReplaceAll({word.data(), word.size()}, {{"'", "'\\''"}}), "'");
}

absl::StatusOr<Report> CollectReport(ReportSource& source, const ReportRequest& request) {
  Report report;
  ordered_json subjects = ordered_json::array();
  for (const ReportSubject& subject : request.subjects) {
    Collector collector(source, subject, request.worker_counts);
    absl::StatusOr<ordered_json> data = collector.Collect();
    if (!data.ok()) return data.status();
    subjects.push_back(*std::move(data));
    absl::StrAppend(&report.title, report.title.empty() ? "" : " and ", collector.label());
    const std::string name =
        request.subjects.size() > 1 ? absl::StrCat(collector.label(), ": ") : "";
    absl::StrAppend(&report.summary, report.summary.empty() ? "" : "\n", name, collector.summary());
  }
  report.title = absl::StrCat("Stepcast: ", report.title);
  ordered_json data{{"subjects", std::move(subjects)}, {"command", request.command}};
  if (request.made_at_seconds != 0) {
    data["made"] = absl::FormatTime(
        "%Y-%m-%d %H:%M UTC", absl::FromUnixSeconds(request.made_at_seconds), absl::UTCTimeZone());
  }
  // Bytes that are not UTF-8 may be in a file's name only.
  report.data = data.dump(-1, ' ', /*ensure_ascii=*/false, ordered_json::error_handler_t::replace);
  return report;
}

absl::StatusOr<ReportPage> MakeReportPage(ReportSource& source, const ReportRequest& request) {
  if (absl::Status status = CheckReportIsBuilt(); !status.ok()) return status;
  const absl::StatusOr<Report> report = CollectReport(source, request);
  if (!report.ok()) return report.status();
  return ReportPage{.html = RenderPage(report->title, report->summary, report->data),
                    .summary = report->summary};
}

}  // namespace stepcast::server
