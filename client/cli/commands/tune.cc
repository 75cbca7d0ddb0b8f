// `tune`: how the gradients of an all-reduce job should be grouped into collectives.
#include <CLI/App.hpp>
#include <CLI/Error.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/flags/quantity.h"
#include "client/cli/flags/scenario_flags.h"
#include "client/cli/flags/simulation_flags.h"
#include "client/cli/texts/answer_texts.h"
#include "client/cli/texts/prediction_table.h"
#include "client/cli/texts/table.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

using TuningMethod = v1::OptimizeCommunicationRequest::Method;

const Choices<TuningMethod> kTuningMethods{
    {"as-recorded", v1::OptimizeCommunicationRequest::AS_RECORDED},
    {"ddp-buckets", v1::OptimizeCommunicationRequest::DDP_BUCKETS},
    {"horovod", v1::OptimizeCommunicationRequest::HOROVOD},
    {"mg-wfbp", v1::OptimizeCommunicationRequest::MG_WFBP},
    {"bytescheduler", v1::OptimizeCommunicationRequest::BYTESCHEDULER},
    {"libra-m", v1::OptimizeCommunicationRequest::LIBRA_M},
    {"libra", v1::OptimizeCommunicationRequest::LIBRA},
    {"search", v1::OptimizeCommunicationRequest::SEARCH},
    {"sequential", v1::OptimizeCommunicationRequest::SEQUENTIAL},
    {"mg-cf", v1::OptimizeCommunicationRequest::MG_CF}};

// A bar a cap, as long as the step; the shortest step is marked.
std::string CurveText(const google::protobuf::RepeatedPtrField<v1::BucketCapPoint>& curve) {
  constexpr double kWidest = 50;
  double longest = 0;
  double shortest = 0;
  for (const v1::BucketCapPoint& point : curve) {
    longest = std::max(longest, point.step_seconds());
    shortest = shortest == 0 ? point.step_seconds() : std::min(shortest, point.step_seconds());
  }
  if (longest <= 0) return "";
  Table table({{"bucket cap"}, {"step"}, {"", Table::Align::kLeft}});
  for (const v1::BucketCapPoint& point : curve) {
    const auto length = static_cast<size_t>(std::llround(kWidest * point.step_seconds() / longest));
    table.AddRow({BytesText(point.cap_bytes()), SecondsText(point.step_seconds()),
                  absl::StrCat(std::string(length, '#'),
                               point.step_seconds() == shortest ? " shortest" : "")});
  }
  return absl::StrCat("\n", table.Text());
}

class TuneQuestion : public Question {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand(
        "tune", "How an all-reduce job's gradients should be grouped: buckets, fusion");
    app->add_option("PROFILE", profile_, kProfileArgumentHelp)->required()->type_name("");
    AddParsedOption(
        *app, "--workers", "LIST",
        "Numbers of workers to tune for: 8 or 2,4,8 (default 8, or what --worker-group counts)",
        [](const std::string& text) { return ParseWorkerList(text); },
        [this](std::vector<int32_t> counts) { counts_ = std::move(counts); });
    app->add_option_function<std::vector<std::string>>(
           "--method", [this](const auto& names) { AddMethods(names); },
           "What to try; may be repeated (default all)")
        ->type_name(ChoiceWords(kTuningMethods, "|"))
        ->allow_extra_args(false);
    app->add_option_function<std::vector<std::string>>(
           "--cap", [this](const auto& texts) { AddCaps(texts); },
           "A cap of PyTorch's buckets to try; may be repeated (default 27 from 0.25 to 200 MiB)")
        ->type_name("BYTES")
        ->allow_extra_args(false);
    AddParsedOption(
        *app, "--first-cap", "BYTES",
        "The limit of the first bucket, where the cap is not smaller (default 1MiB, PyTorch's; "
        "since 2024 an explicit bucket_cap_mb holds for the first bucket, too: 1GiB)",
        [](const std::string& text) { return ParseBytes(text); },
        [this](int64_t bytes) { first_bucket_bytes_ = bytes; });
    AddParsedOption(
        *app, "--threads", "LIST",
        "With --contention: numbers of threads that LIBRA chooses from: 128,512 (default 128 to "
        "4096, doubling)",
        [](const std::string& text) { return ParseWorkerList(text); },
        [this](std::vector<int32_t> threads) { threads_ = std::move(threads); });
    AddValueOption<int32_t>(
        *app, "--nccl-channels", "N",
        "With --contention: channels of NCCL, 544 threads each, which collectives of the other "
        "methods have, small ones fewer (default 2)",
        [this](int32_t channels) { nccl_channels_ = channels; });
    app->add_flag("--plot", plots_, "Draw step time over bucket cap below the table");
    scenario_.Declare(*app, ScenarioFlags::Order::kChosenByUser, ScenarioFlags::Offsets::kAllowed);
    simulation_.Declare(*app);
    return app;
  }

  bool NeedsNoServer() const override { return IsFile(profile_); }

  std::string Activity() const override { return "tuning"; }

  std::string_view AnswerFlag() const override { return plots_ ? "--plot" : ""; }

  absl::StatusOr<v1::StartJobRequest> Ask(const Session& session) const override {
    absl::StatusOr<ProfileSource> source = ProfileFromArgument(session, profile_);
    if (!source.ok()) return source.status();
    scenario_.Explain(session);
    v1::StartJobRequest asked;
    v1::OptimizeCommunicationRequest& request = *asked.mutable_optimize_communication();
    SetSource(*std::move(source), request);
    *request.mutable_scenario() = scenario_.scenario();
    if (counts_.size() == 1) {
      request.mutable_scenario()->set_workers(counts_.front());
    } else {
      request.mutable_worker_counts()->Assign(counts_.begin(), counts_.end());
    }
    *request.mutable_options() = simulation_.options();
    for (const TuningMethod method : methods_) request.add_methods(method);
    request.mutable_bucket_caps_bytes()->Assign(caps_bytes_.begin(), caps_bytes_.end());
    request.mutable_threads()->Assign(threads_.begin(), threads_.end());
    if (nccl_channels_.has_value()) request.set_nccl_channels(*nccl_channels_);
    if (first_bucket_bytes_ > 0) request.set_first_bucket_bytes(first_bucket_bytes_);
    return asked;
  }

  ExitCode Report(const Session& session, const absl::Status& status) const override {
    return ReportProfileFailure(session, profile_, status);
  }

  ExitCode Answer(const Session& session, const v1::StartJobRequest&,
                  const google::protobuf::Message& reply) const override {
    const auto& response = static_cast<const v1::OptimizeCommunicationResponse&>(reply);
    return session.Answer(ToJson(response), [&] {
      return absl::StrCat(TuningText(response), plots_ ? CurveText(response.curve()) : "");
    });
  }

 private:
  void AddMethods(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const absl::StatusOr<TuningMethod> method = ParseChoice(name, kTuningMethods);
      if (!method.ok())
        throw CLI::ValidationError("--method", std::string(method.status().message()));
      methods_.push_back(*method);
    }
  }

  void AddCaps(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      const absl::StatusOr<int64_t> bytes = ParseBytes(text);
      if (!bytes.ok()) throw CLI::ValidationError("--cap", std::string(bytes.status().message()));
      caps_bytes_.push_back(*bytes);
    }
  }

  std::string profile_;
  std::vector<int32_t> counts_;
  std::vector<TuningMethod> methods_;
  std::vector<int64_t> caps_bytes_;
  std::vector<int32_t> threads_;
  std::optional<int32_t> nccl_channels_;
  int64_t first_bucket_bytes_ = 0;  // 0: not said
  bool plots_ = false;
  ScenarioFlags scenario_;
  SimulationFlags simulation_;
};

std::string SignedPercent(double fraction) {
  return absl::StrCat(fraction < 0 ? "" : "+", PercentText(fraction));
}

// The part of a setting that fits a row; the line of the method to use has all of it.
std::string SettingText(const std::string& setting) {
  constexpr size_t kWidest = 60;
  return setting.size() <= kWidest ? setting : absl::StrCat(setting.substr(0, kWidest), "...");
}

// The groups' sizes in the order in which they begin: `7.8, 30.0, 25.0 MiB`, those that are alike
// counted.
std::string GroupsText(const v1::CommunicationStrategy& strategy) {
  constexpr int kShown = 8;
  std::string text;
  int shown = 0;
  for (int i = 0; i < strategy.groups_size();) {
    int alike = 1;
    while (i + alike < strategy.groups_size() &&
           strategy.groups(i + alike).size_bytes() == strategy.groups(i).size_bytes() &&
           strategy.groups(i + alike).threads() == strategy.groups(i).threads())
      ++alike;
    if (shown++ == kShown) return absl::StrCat(text, ", ... (--output json)");
    const int32_t threads = strategy.groups(i).threads();
    absl::StrAppend(&text, text.empty() ? "" : ", ", BytesText(strategy.groups(i).size_bytes()),
                    threads > 0 ? absl::StrCat(" by ", threads, " threads") : "",
                    alike > 1 ? absl::StrCat(" x", alike) : "");
    i += alike;
  }
  return text;
}

// Advice for one number of workers, from either of the messages that hold it.
template <typename Advice>
std::string AdviceText(const Advice& advice) {
  Table table({{"", Table::Align::kLeft},
               {"method", Table::Align::kLeft},
               {"groups"},
               {"step"},
               {"examples/s"},
               {"gain"},
               {"interval"},
               {"exposed"},
               {"gap"},
               {"setting", Table::Align::kLeft}});
  for (const v1::CommunicationStrategy& strategy : advice.strategies()) {
    const bool is_base = strategy.method() == v1::OptimizeCommunicationRequest::AS_RECORDED;
    const v1::ConfidenceInterval& interval = strategy.gain_interval();
    table.AddRow({strategy.method() == advice.chosen() ? "->" : "",
                  v1::OptimizeCommunicationRequest::Method_Name(strategy.method()),
                  absl::StrCat(strategy.groups_size()), SecondsText(strategy.step_seconds()),
                  NumberText(strategy.examples_per_second()),
                  is_base ? "" : SignedPercent(strategy.gain()),
                  is_base || interval.upper() <= interval.lower()
                      ? ""
                      : absl::StrCat(SignedPercent(interval.lower()), " .. ",
                                     SignedPercent(interval.upper())),
                  SecondsText(strategy.exposed_communication_seconds()),
                  PercentText(strategy.gap()), SettingText(strategy.setting())});
  }
  std::string text = absl::StrCat(table.Text(), advice.reason(), "\n",
                                  CloseCallText(advice.probability_best(), advice.expected_loss()));
  for (const v1::CommunicationStrategy& strategy : advice.strategies()) {
    if (strategy.method() != advice.chosen()) continue;
    if (SettingText(strategy.setting()) != strategy.setting())
      absl::StrAppend(&text, "set: ", strategy.setting(), "\n");
    absl::StrAppend(&text, "groups, first to last: ", GroupsText(strategy),
                    "\nno grouping's step is shorter than ",
                    SecondsText(strategy.lower_bound_seconds()),
                    "; gap: how far above that a step is\n");
    if (strategy.has_guarantee()) {
      absl::StrAppend(&text, "its backward time of ", SecondsText(strategy.backward_seconds()),
                      " is at most ", NumberText(strategy.guarantee()),
                      " times the least of any groups and threads\n");
    } else if (!strategy.guarantee_void_because().empty()) {
      absl::StrAppend(&text, "no guarantee: ", strategy.guarantee_void_because(), "\n");
    }
    break;
  }
  if (std::any_of(advice.strategies().begin(), advice.strategies().end(), [](const auto& strategy) {
        return strategy.method() == v1::OptimizeCommunicationRequest::MG_CF;
      }))
    text +=
        "MG_CF: MG_WFBP's groups, if collectives and computation did not slow each other: nothing "
        "sets that, and it is never chosen\n";
  return text;
}

}  // namespace

std::string TuningText(const v1::OptimizeCommunicationResponse& response) {
  std::string text;
  for (const v1::CommunicationAdvice& advice : response.advice()) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", advice.workers(),
                    advice.workers() == 1 ? " worker:\n" : " workers:\n", AdviceText(advice));
  }
  if (text.empty()) text = AdviceText(response);
  if (response.advice_size() > 1) {
    absl::StrAppend(&text, "\n",
                    response.advice_changes()
                        ? "The advice changes with the number of workers.\n"
                        : "The first advice is as good for the other numbers of workers.\n");
  }
  std::map<std::string, std::string> left_out;  // methods, by reason
  for (const v1::LeftOutMethod& method : response.left_out()) {
    const std::string& name = v1::OptimizeCommunicationRequest::Method_Name(method.method());
    const bool names_itself = absl::StartsWith(method.reason(), name + " ");
    std::string& names = left_out[method.reason().substr(names_itself ? name.size() + 1 : 0)];
    absl::StrAppend(&names, names.empty() ? "" : ", ", name);
  }
  for (const auto& [reason, names] : left_out)
    absl::StrAppend(&text, "not tried: ", names, ": ", reason, "\n");
  text += AssumptionsText(response.assumptions());
  text += WarningsText(response.warnings());
  return text;
}

std::unique_ptr<Question> MakeTuneQuestion() { return std::make_unique<TuneQuestion>(); }

}  // namespace stepcast::client
