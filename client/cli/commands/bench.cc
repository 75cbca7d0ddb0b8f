// `bench`: how many calls a server answers in a second, and how long they take.
#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <chrono>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/flags/quantity.h"
#include "client/cli/flags/scenario_flags.h"
#include "client/cli/flags/simulation_flags.h"
#include "client/cli/texts/bench_report.h"
#include "client/cli/texts/progress.h"
#include "client/src/load/grpc_load_transport.h"
#include "client/src/load/load_run.h"

namespace stepcast::client {

namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kMaxLength = std::chrono::hours(1);
constexpr uint64_t kMaxQuestions = 1'000'000'000'000;
constexpr uint64_t kMaxConnections = 64;
const Choices<std::string> kLoads{{"ping", "ping"},
                                  {"predict", "predict"},
                                  {"recommend", "recommend"},
                                  {"order", "order"},
                                  {"mixed", "mixed"}};
// Predictions in ten calls of `mixed`.
constexpr int kPredictionsInTen = 8;

constexpr char kAbout[] =
    "With --concurrency a closed loop: so many calls are under way, and as one ends the next "
    "begins. With --rate an\n"
    "open loop: calls leave by the clock, whether or not earlier ones have come back, and each "
    "latency counts from\n"
    "when the call was due, so that no pause hides the waiting it causes. Each number of the list "
    "is a measurement of\n"
    "its own. First one call of each method is made and its reply checked; later replies are not "
    "parsed. Latencies are\n"
    "of calls answered with OK; good/s are those within --deadline. Failed calls are counted and "
    "not made again.\n\n"
    "Exit status: 0 done, 1 a measurement missed a target, had no answer or lost the server, 2 "
    "wrong usage.";

absl::StatusOr<nanoseconds> ParseLength(const std::string& text) {
  absl::StatusOr<nanoseconds> length = ParseDuration(text);
  if (length.ok() && *length > kMaxLength)
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is more than an hour"));
  return length;
}

absl::StatusOr<nanoseconds> ParseLengthAboveZero(const std::string& text) {
  absl::StatusOr<nanoseconds> length = ParseLength(text);
  if (length.ok() && *length < std::chrono::milliseconds(1))
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is less than 1 ms"));
  return length;
}

// From 1 to `max`.
auto CountUpTo(uint64_t max) {
  return [max](const std::string& text) -> absl::StatusOr<uint64_t> {
    absl::StatusOr<uint64_t> count = ParseCount(text);
    if (count.ok() && (*count < 1 || *count > max))
      return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not from 1 to ", max));
    return count;
  };
}

class BenchCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand(
        "bench", "How many calls a server answers in a second, and how long they take");
    app->footer(kAbout);
    app->add_option("PROFILE", profile_,
                    "The job that is asked about: a file, sent with every call, or a stored "
                    "profile's name. None with --method ping")
        ->type_name("");
    AddChoiceOption(*app, "--method", kLoads,
                    "What is called (default predict). ping: the empty call; mixed: eight "
                    "predictions, a recommendation, an order, and again",
                    [this](std::string method) { method_ = std::move(method); });
    DeclareLoad(*app);
    DeclareTargets(*app);
    AddParsedOption(
        *app, "--workers", "LIST",
        "Numbers of workers each prediction is about: 1-16 or 1,2,4 (default 4)",
        [](const std::string& text) { return ParseWorkerList(text); },
        [this](std::vector<int32_t> counts) { counts_ = std::move(counts); });
    scenario_.Declare(*app, ScenarioFlags::Order::kChosenByUser,
                      ScenarioFlags::Offsets::kForbidden);
    simulation_.DeclareForLoad(*app);
    return app;
  }

  ExitCode Run(const Session& session) const override {
    if (session.local) return session.Misused("bench needs a server; --local has none");
    if (profile_.empty() != (method_ == "ping")) {
      return session.Misused(profile_.empty()
                                 ? absl::StrCat("--method ", method_, " needs a PROFILE")
                                 : "--method ping takes no PROFILE");
    }
    LoadQuestions questions{.vary = vary_, .first_seed = FirstSeed()};
    if (method_ == "ping") {
      questions.calls = {PreparePing()};
    } else {
      absl::StatusOr<ProfileSource> source = ProfileFromArgument(session, profile_);
      if (!source.ok()) return ReportProfileFailure(session, profile_, source.status());
      questions.calls = CallsAbout(*source);
    }
    return Measure(session, questions);
  }

 private:
  void DeclareLoad(CLI::App& app) {
    CLI::Option* concurrency = AddParsedOption(
        app, "--concurrency", "LIST", "Closed loops: so many calls under way (default 1,8,64)",
        [](const std::string& text) { return ParseConcurrencies(text); },
        [this](const std::vector<uint32_t>& counts) {
          loops_.clear();
          for (const uint32_t count : counts) loops_.emplace_back(ClosedLoop{.concurrency = count});
        });
    CLI::Option* rate = AddParsedOption(
        app, "--rate", "LIST", "Open loops: so many calls a second: 1000,2000",
        [](const std::string& text) { return ParseRates(text); },
        [this](const std::vector<double>& rates) {
          loops_.clear();
          for (const double value : rates) loops_.emplace_back(OpenLoop{.rate = value});
        });
    rate->excludes(concurrency);
    CLI::Option* duration = AddParsedOption(
        app, "--duration", "TIME", "How long each measurement counts calls (default 10s)",
        ParseLengthAboveZero, [this](nanoseconds length) { duration_ = length; });
    CLI::Option* warmup =
        AddParsedOption(app, "--warmup", "TIME", "For how long calls are made before (default 2s)",
                        ParseLength, [this](nanoseconds length) { warmup_ = length; });
    CLI::Option* deadline = AddParsedOption(
        app, "--deadline", "TIME", "Of each call (default 10s); --timeout does not apply",
        ParseLengthAboveZero, [this](nanoseconds length) { deadline_ = length; });
    CLI::Option* vary =
        AddParsedOption(app, "--vary", "N",
                        "Ask N different questions in turn, which differ by their seeds, from "
                        "--seed on (default 1: after the first "
                        "all are answered from the server's cache)",
                        CountUpTo(kMaxQuestions), [this](uint64_t count) { vary_ = count; });
    CLI::Option* connections = AddParsedOption(
        app, "--connections", "N", "Spread calls over so many connections (default 1)",
        CountUpTo(kMaxConnections),
        [this](uint64_t count) { connections_ = static_cast<int>(count); });
    for (CLI::Option* option : {concurrency, rate, duration, warmup, deadline, vary, connections})
      option->group("Load");
  }

  void DeclareTargets(CLI::App& app) {
    constexpr char kTargetsGroup[] = "Targets (exit status 1 where a measurement misses one)";
    app.add_option("--max-p99-ms", targets_.max_p99_ms,
                   "The 99th percentile of latency is at most so much")
        ->type_name("MS")
        ->check(CLI::NonNegativeNumber)
        ->group(kTargetsGroup);
    app.add_option("--min-goodput", targets_.min_goodput,
                   "At least so many calls a second are answered within --deadline")
        ->type_name("RATE")
        ->check(CLI::NonNegativeNumber)
        ->group(kTargetsGroup);
  }

  uint64_t FirstSeed() const {
    return simulation_.options().has_seed() ? simulation_.options().seed() : 1;
  }

  std::vector<PreparedCall> CallsAbout(const ProfileSource& source) const {
    v1::PredictThroughputRequest prediction;
    SetSource(source, prediction);
    prediction.mutable_worker_counts()->Assign(counts_.begin(), counts_.end());
    *prediction.mutable_scenario() = scenario_.scenario();
    *prediction.mutable_options() = simulation_.options();
    v1::RecommendWorkersRequest recommendation;
    SetSource(source, recommendation);
    *recommendation.mutable_scenario() = scenario_.scenario();
    *recommendation.mutable_options() = simulation_.options();
    v1::OptimizeOrderRequest order;
    SetSource(source, order);
    // The order is what it asks for.
    *order.mutable_scenario() = scenario_.WithoutOrder(counts_.front());
    *order.mutable_options() = simulation_.options();
    if (method_ == "predict") return {Prepare(prediction)};
    if (method_ == "recommend") return {Prepare(recommendation)};
    if (method_ == "order") return {Prepare(order)};
    std::vector<PreparedCall> calls(kPredictionsInTen, Prepare(prediction));
    calls.push_back(Prepare(recommendation));
    calls.push_back(Prepare(order));
    return calls;
  }

  ExitCode Measure(const Session& session, const LoadQuestions& questions) const {
    const auto transport = MakeGrpcLoadTransport(
        {.client = session.options, .connections = connections_, .deadline = deadline_}, questions);
    BenchReport report{.server = session.options.server,
                       .method = method_,
                       .vary = vary_,
                       .connections = connections_,
                       .deadline = deadline_,
                       .warmup = warmup_,
                       .duration = duration_};
    std::string checked;
    for (const PreparedCall& call : questions.calls) {
      if (std::exchange(checked, call.method) == call.method) continue;
      if (const absl::Status status = transport->Check(call); !status.ok())
        return ReportProfileFailure(session, profile_, status);
      ++report.check_calls;
    }
    {
      const Progress progress(session.console, "measuring");
      Measure(*transport, report);
    }
    const std::vector<std::string> missed = MissedBy(report, targets_);
    const ExitCode code =
        session.Answer(BenchJson(report, missed), [&] { return BenchText(report); });
    for (const std::string& why : missed) session.console.err << "missed: " << why << '\n';
    return code == ExitCode::kDone && !missed.empty() ? ExitCode::kRefused : code;
  }

  void Measure(LoadTransport& transport, BenchReport& report) const {
    SteadyLoadClock clock;
    uint64_t question = 0;
    for (const auto& loop : loops_) {
      const LoadPlan plan{.loop = loop,
                          .warmup = warmup_,
                          .duration = duration_,
                          .deadline = deadline_,
                          .first_question = question};
      report.steps.push_back({.loop = loop, .result = RunLoad(plan, clock, transport)});
      // Questions asked before are in the server's cache, so the next measurement goes on with
      // others.
      question = report.steps.back().result.next_question;
      if (report.steps.back().result.server_gone) return;
    }
  }

  std::string profile_;
  std::string method_ = "predict";
  std::vector<std::variant<ClosedLoop, OpenLoop>> loops_{ClosedLoop{1}, ClosedLoop{8},
                                                         ClosedLoop{64}};
  nanoseconds duration_ = std::chrono::seconds(10);
  nanoseconds warmup_ = std::chrono::seconds(2);
  nanoseconds deadline_ = std::chrono::seconds(10);
  uint64_t vary_ = 1;
  int connections_ = 1;
  std::vector<int32_t> counts_{4};
  BenchTargets targets_;
  ScenarioFlags scenario_;
  SimulationFlags simulation_;
};

}  // namespace

std::unique_ptr<Command> MakeBenchCommand() { return std::make_unique<BenchCommand>(); }

}  // namespace stepcast::client
