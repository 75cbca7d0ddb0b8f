// `profile fit-collectives`: a link from a benchmark of collectives.
#include <CLI/App.hpp>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/flags/quantity.h"
#include "client/cli/texts/answer_texts.h"
#include "client/cli/texts/progress.h"
#include "client/cli/texts/table.h"

#include "core/importing/benchmarks/collective_benchmark.h"
#include "server/convert/scenario_convert.h"
#include "stepcast/json.h"

namespace stepcast::client {

namespace {

const Choices<v1::AllReduce::Algorithm> kFittedAlgorithms{{"ring", v1::AllReduce::RING},
                                                          {"gloo", v1::AllReduce::GLOO}};

class FitCollectivesCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand(
        "fit-collectives",
        "Fit a link's bandwidth and latency, and what adding costs, to a benchmark of collectives; "
        "not to a training run, which hides most of them, and of two workers shows no latency");
    app->add_option(
           "FILE", paths_,
           "What nccl-tests, rccl-tests or the MPI benchmarks of OSU or Intel print, one or "
           "more, or the JSON of nccl-tests or rccl-tests; or a table or JSON of kind, "
           "workers, size_bytes, seconds; -: standard input")
        ->required()
        ->type_name("");
    AddChoiceOption(*app, "--algorithm", kFittedAlgorithms, "What ran (default: ring)",
                    [this](v1::AllReduce::Algorithm value) { request_.set_algorithm(value); });
    AddChoiceOption(
        *app, "--kind",
        Choices<Collective>{{"all-reduce", Collective::kAllReduce},
                            {"reduce-scatter", Collective::kReduceScatter},
                            {"all-gather", Collective::kAllGather},
                            {"broadcast", Collective::kBroadcast}},
        "What was measured, where FILE does not say it; of a FILE with several tests the "
        "one to read (default: all, which must be of these kinds)",
        [this](Collective value) { reading_.kind = value; });
    AddValueOption<int32_t>(*app, "--workers", "N", "How many took part, likewise",
                            [this](int32_t count) { reading_.workers = count; });
    AddValueOption<int32_t>(
        *app, "--workers-per-node", "N",
        "Workers that share a node: measurements of one node tell the link inside it, those of "
        "several the link between them (default 1)",
        [this](int32_t count) { request_.set_workers_per_node(count); });
    AddParsedOption(
        *app, "--smallest", "BYTES",
        "Leave smaller collectives out: all sizes count alike, and a job has few small ones: "
        "256KiB",
        [](const std::string& text) { return ParseBytes(text); },
        [this](int64_t bytes) { smallest_ = bytes; });
    AddValueOption<double>(*app, "--level", "P", "Probability of the intervals (default 0.95)",
                           [this](double level) { request_.set_confidence_level(level); });
    return app;
  }

  bool NeedsNoServer() const override { return true; }

  ExitCode Run(const Session& session) const override {
    v1::FitCollectivesRequest request = request_;
    for (const std::string& path : paths_) {
      if (!IsFile(path)) return session.Misused(WhyNoFile(path));
      if (absl::Status status = Add(path, session.console.err, request); !status.ok())
        return session.Refused(status);
    }
    const absl::StatusOr<v1::FitCollectivesResponse> response = [&] {
      const Progress progress(session.console, "fitting");
      return session.client.FitCollectives(request);
    }();
    if (!response.ok()) return session.Refused(response.status());
    return session.Answer(ToJson(*response), [&] { return CollectiveFitText(request, *response); });
  }

 private:
  absl::Status Add(const std::string& path, std::ostream& notes_to,
                   v1::FitCollectivesRequest& request) const {
    const absl::StatusOr<std::string> text = ReadTextInput(path, "what nccl-tests print");
    if (!text.ok()) return text.status();
    std::vector<std::string> notes;
    const auto points = ReadCollectiveBenchmark(*text, reading_, {}, &notes);
    if (!points.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(InputAt(path).Name(), ": ", std::string(points.status().message())));
    }
    for (const std::string& note : notes) notes_to << "note: " << note << "\n";
    for (const MeasuredCollective& point : *points) {
      if (point.size_bytes >= smallest_) *request.add_measurements() = server::ToWire(point);
    }
    return absl::OkStatus();
  }

  std::vector<std::string> paths_;
  CollectiveBenchmarkOptions reading_;
  int64_t smallest_ = 0;
  v1::FitCollectivesRequest request_;
};

std::string RateText(double bytes_per_second) {
  return absl::StrCat(NumberText(bytes_per_second / 1e6), " MB/s");
}
std::string NanosText(double seconds) { return absl::StrCat(NumberText(1e9 * seconds), " ns"); }

// Row of a coefficient; both cells are empty of numbers where nothing is told.
template <typename Text>
void AddCoefficient(Table& table, const char* name, double value, bool is_told,
                    const v1::ConfidenceInterval& interval, Text text) {
  if (!is_told) return table.AddRow({name, "not told", ""});
  table.AddRow({name, value > 0 ? text(value) : "0",
                absl::StrCat(text(interval.lower()), " .. ", text(interval.upper()))});
}

// +1.2%, without a sign where it is nothing.
std::string SignedPercentText(double fraction) {
  constexpr double kRoundedAway = 0.0005;
  return std::abs(fraction) < kRoundedAway ? "0.0%" : absl::StrFormat("%+.1f%%", 100 * fraction);
}

// The flags of `predict` and the others that say the same.
std::string FlagsOf(const v1::Scenario& scenario) {
  const v1::AllReduce& job = scenario.all_reduce();
  std::string flags = "--algorithm ";
  for (const auto& [word, value] : kFittedAlgorithms) {
    if (value == job.algorithm()) flags += word;
  }
  const auto add = [&flags](const char* flag, const std::string& value) {
    absl::StrAppend(&flags, " ", flag, " ", value);
  };
  const auto nanoseconds = [](double seconds) { return absl::StrFormat("%.0fns", 1e9 * seconds); };
  const auto rate = [](double value) { return absl::StrFormat("%.0fB/s", value); };
  if (job.has_workers_per_node()) add("--workers-per-node", absl::StrCat(job.workers_per_node()));
  if (scenario.has_bandwidth_bytes_per_second())
    add("--bandwidth", rate(scenario.bandwidth_bytes_per_second()));
  if (job.has_intra_node_bandwidth_bytes_per_second())
    add("--intra-bandwidth", rate(job.intra_node_bandwidth_bytes_per_second()));
  // Without it, a latency that is typical is assumed, not 0.
  if (job.has_latency_seconds()) add("--latency", nanoseconds(job.latency_seconds()));
  if (job.has_intra_node_latency_seconds())
    add("--intra-latency", nanoseconds(job.intra_node_latency_seconds()));
  if (job.reduction_seconds_per_byte() > 0) {
    add("--reduction-seconds-per-byte", absl::StrFormat("%.4g", job.reduction_seconds_per_byte()));
  }
  return flags;
}

}  // namespace

std::string CollectiveFitText(const v1::FitCollectivesRequest& request,
                              const v1::FitCollectivesResponse& response) {
  Table fitted({{"", Table::Align::kLeft},
                {"fitted"},
                {absl::StrFormat("%g%% interval", 100 * response.bandwidth_interval().level())}});
  AddCoefficient(fitted, "bandwidth", response.bandwidth_bytes_per_second(),
                 response.bandwidth_bytes_per_second() > 0, response.bandwidth_interval(),
                 RateText);
  AddCoefficient(fitted, "latency of a message", response.latency_seconds(),
                 response.has_latency_interval(), response.latency_interval(), SecondsText);
  AddCoefficient(fitted, "adding a byte", response.reduction_seconds_per_byte(),
                 response.has_reduction_interval(), response.reduction_interval(), NanosText);
  Table by_workers({{"workers"}, {"measurements"}, {"outliers"}, {"half within"}, {"median"}});
  const auto add = [&](const std::string& workers, int measurements, int outliers, double within,
                       const std::string& median) {
    by_workers.AddRow(
        {workers, absl::StrCat(measurements), absl::StrCat(outliers), PercentText(within), median});
  };
  for (const auto& row : response.by_workers()) {
    add(absl::StrCat(row.workers()), row.measurements(), row.outliers(), row.relative_residual(),
        SignedPercentText(row.bias()));
  }
  if (response.by_workers_size() > 1)
    add("all", request.measurements_size(), response.outliers(), response.relative_residual(), "");
  std::string text = absl::StrCat(fitted.Text(), "\n", by_workers.Text());
  for (const auto& warning : response.warnings())
    absl::StrAppend(&text, "warning: ", warning.message(), "\n");
  const bool is_measured = response.scenario().all_reduce().algorithm() == v1::AllReduce::MEASURED;
  absl::StrAppend(&text, "use it with ",
                  is_measured ? std::string("--measured FILE, the benchmark's own times")
                              : FlagsOf(response.scenario()),
                  "\n");
  return text;
}

std::unique_ptr<Command> MakeFitCollectivesCommand() {
  return std::make_unique<FitCollectivesCommand>();
}

}  // namespace stepcast::client
