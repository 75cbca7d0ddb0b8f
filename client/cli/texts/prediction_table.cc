#include "client/cli/texts/prediction_table.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/texts/flag_names.h"
#include "client/cli/texts/table.h"

namespace stepcast::client {

namespace {

// The words for a field that is assumed, and the flags that say it.
struct AssumedFlag {
  std::string_view field;
  const char* noun;
  const char* flags;
  const char* line = "";  // the begin of a line of its own, which has the whole sentence
};
constexpr AssumedFlag kAssumedFlags[] = {
    {"scenario.parameter_servers.servers", "", "--servers", "kind of job: "},
    {"scenario.all_reduce", "", "--all-reduce", "kind of job: "},
    {"scenario.change.fixed_fraction", "", "--batch-fixed, --batch-recording", "batch: "},
    {"scenario.change.second_profile", "", "--batch-recording", "batch: "},
    {"scenario.change.compute_speed_factor", "", "--compute-speed", "device: "},
    {"scenario.parameter_servers.transfer_order", "", "--order"},
    {"scenario.parameter_servers.whole_stream", "", "--multiplexing"},
    {"scenario.parameter_servers.turns.bytes", "", "--turns, --equal-shares"},
    {"scenario.parameter_servers.equal", "", "--turns, --first-come"},
    {"scenario.parameter_servers.synchronization", "", "--sync, --summed"},
    {"scenario.all_reduce.algorithm", "algorithm ", "--algorithm"},
    {"scenario.all_reduce.latency_seconds", "latency ", "--latency"},
    {"scenario.all_reduce.intra_node_latency_seconds", "latency inside a node ", "--intra-latency"},
    {"scenario.all_reduce.buckets", "buckets of ", "--bucket-cap"},
    {"scenario.all_reduce.unfused", "", "--bucket-cap, --horovod-cycle"},
    {"scenario.all_reduce.measured", "", "--measured"},
    {"scenario.cluster", "", "--worker-group"},
    {"scenario.pipeline.schedule", "schedule ", "--pipeline schedule="},
    {"scenario.pipeline.cuts", "stages begin at ", "--pipeline cuts="},
    {"scenario.pipeline.receives", "receives ", "--pipeline receives="},
    {"scenario.pipeline.reduction", "gradients reduced ", "--pipeline reduction="},
    {"scenario.pipeline.bandwidth_bytes_per_second", "links between stages of ",
     "--pipeline bandwidth=, latency="}};

const AssumedFlag& FlagOf(const v1::Assumption& assumption) {
  static constexpr AssumedFlag kNone{"", "", ""};
  const auto* const flag =
      std::find_if(std::begin(kAssumedFlags), std::end(kAssumedFlags),
                   [&](const AssumedFlag& known) { return known.field == assumption.field(); });
  return flag != std::end(kAssumedFlags) ? *flag : kNone;
}

// A list of names, of a long one the first: `a, b, c ... (12 in all)`.
std::string NamesText(const std::vector<std::string>& names) {
  constexpr size_t kMost = 4;
  if (names.size() <= kMost) return absl::StrJoin(names, ", ");
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + kMost - 1, ", "), " ... (",
                      names.size(), " in all)");
}

// 1, 2, 3, 5 as `1-3, 5`.
std::string CountsText(const std::vector<int32_t>& counts) {
  std::string text;
  for (size_t i = 0; i < counts.size();) {
    size_t last = i;
    while (last + 1 < counts.size() && counts[last + 1] == counts[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ", ", counts[i]);
    if (last > i) absl::StrAppend(&text, "-", counts[last]);
    i = last + 1;
  }
  return text;
}

// The same for warnings that differ only in their numbers.
std::string Shape(const std::string& warning) {
  std::string shape;
  for (const char c : warning) {
    if (absl::ascii_isdigit(static_cast<unsigned char>(c)) == 0 && c != '.') shape.push_back(c);
  }
  return shape;
}

// Warnings of several predictions that differ in their numbers only.
struct AlikeWarnings {
  v1::Warning first;
  std::string shape;
  bool alike = true;  // all have its message
  std::vector<int32_t> counts;
};

std::vector<AlikeWarnings> Collect(const Predictions& predictions) {
  std::vector<AlikeWarnings> found;  // in the order of their first row
  for (const v1::Prediction& prediction : predictions) {
    for (const v1::Warning& warning : prediction.warnings()) {
      const std::string shape = Shape(warning.message());
      auto at = std::find_if(found.begin(), found.end(), [&](const AlikeWarnings& known) {
        return known.first.reason() == warning.reason() && known.shape == shape;
      });
      if (at == found.end())
        at = found.insert(found.end(), {.first = warning, .shape = shape, .counts = {}});
      at->alike = at->alike && at->first.message() == warning.message();
      at->counts.push_back(WorkersOf(prediction));
    }
  }
  return found;
}

const char* OrderNameOf(v1::ParameterServers::TransferOrder order) {
  switch (order) {
    case v1::ParameterServers::GRAPH:
      return "graph order";
    case v1::ParameterServers::RECORDED:
      return "recorded order";
    case v1::ParameterServers::RANDOM:
      return "random order";
    case v1::ParameterServers::REVERSE:
      return "reverse order";
    case v1::ParameterServers::TIC:
      return "TIC order";
    case v1::ParameterServers::TAC:
      return "TAC order";
    case v1::ParameterServers::EXPLICIT:
      return "explicit order";
    default:
      return "";
  }
}

const char* AlgorithmNameOf(v1::AllReduce::Algorithm algorithm) {
  switch (algorithm) {
    case v1::AllReduce::RING:
      return "ring";
    case v1::AllReduce::HIERARCHICAL:
      return "hierarchical";
    case v1::AllReduce::HALVING_DOUBLING:
      return "halving and doubling";
    case v1::AllReduce::TREE:
      return "tree";
    case v1::AllReduce::MEASURED:
      return "measured";
    case v1::AllReduce::GLOO:
      return "gloo's ring";
    case v1::AllReduce::NCCL:
      return "NCCL's choice";
    default:
      return "";
  }
}

std::string CollectivesText(const v1::Scenario& scenario) {
  const v1::AllReduce& how = scenario.all_reduce();
  std::string text = absl::StrCat("all-reduce by ", AlgorithmNameOf(how.algorithm()));
  if (scenario.has_bandwidth_bytes_per_second())
    absl::StrAppend(&text, ", ", NumberText(scenario.bandwidth_bytes_per_second() / 1e6),
                    " MB/s links");
  if (how.workers_per_node() > 1)
    absl::StrAppend(&text, ", ", how.workers_per_node(), " workers a node");
  if (how.has_buckets())
    absl::StrAppend(&text, ", buckets of ",
                    NumberText(static_cast<double>(how.buckets().cap_bytes()) / 1e6), " MB");
  return text;
}

// A gain below this has a digit more.
constexpr double kSmallPercent = 9.5;

// The resource that the bottleneck is.
std::string ResourceText(const v1::Prediction& prediction) {
  const int32_t server = prediction.bottleneck_index();
  switch (prediction.bottleneck()) {
    case v1::Operation::DOWNLINK:
      return absl::StrCat("downlink of server ", server);
    case v1::Operation::UPLINK:
      return absl::StrCat("uplink of server ", server);
    case v1::Operation::PARAMETER_SERVER:
      return absl::StrCat("computation of server ", server);
    case v1::Operation::WORKER:
      switch (prediction.bottleneck_change()) {
        case v1::Prediction::NO_STRAGGLERS:
          return "the slowest worker";
        case v1::Prediction::NO_HOST_WAIT:
          return "hosts of the workers";
        default:
          return "computation of the workers";
      }
    case v1::Operation::COLLECTIVE:
      if (prediction.bottleneck_change() == v1::Prediction::NO_LATENCY)
        return "latency of the links";
      return prediction.collectives().bottleneck() == v1::CollectiveReport::LINK_INSIDE_NODE
                 ? "links inside the node"
                 : "links between nodes";
    default:
      return "unknown";
  }
}

// The part of a pipeline's step that would shorten it most, and what helps.
std::string PipelineBottleneckText(const v1::PipelineReport& report) {
  const auto gain = [&](const std::string& part, const char* change) {
    return absl::StrFormat("%s (%+.0f%% %s)", part, 100 * report.bottleneck_gain(), change);
  };
  switch (report.bottleneck()) {
    case v1::PipelineReport::COMPUTATION:
      return gain("computation of the devices", "if twice as fast");
    case v1::PipelineReport::BUBBLE:
      return gain("bubble", "without it: more micro-batches or chunks");
    case v1::PipelineReport::IMBALANCE:
      return gain(report.slowest_device() + 1 == report.devices_size()
                      ? "the last stage"
                      : absl::StrCat("imbalance, slowest device ", report.slowest_device()),
                  "if all were alike");
    case v1::PipelineReport::TRANSFERS:
      return gain("transfers between stages", "without them");
    case v1::PipelineReport::REDUCTIONS:
      return gain("reductions of gradients", "without them");
    case v1::PipelineReport::REST:
      return gain("end of the step", "without it");
    default:
      return "unknown";
  }
}

// Shares of the step by number of replicas, and the devices of the last prediction.
std::string PipelineText(const Predictions& predictions) {
  if (predictions.empty() || !predictions.rbegin()->has_pipeline()) return "";
  Table shares({{"workers"},
                {"devices"},
                {"computation"},
                {"bubble"},
                {"imbalance"},
                {"transfers"},
                {"reductions"},
                {"rest"}});
  for (const v1::Prediction& prediction : predictions) {
    const v1::PipelineReport& report = prediction.pipeline();
    shares.AddRow({absl::StrCat(WorkersOf(prediction)), absl::StrCat(prediction.devices()),
                   PercentText(1 - report.idle_fraction()), PercentText(report.bubble_fraction()),
                   PercentText(report.imbalance_fraction()),
                   PercentText(report.transfer_fraction()),
                   PercentText(report.reduction_fraction()), PercentText(report.rest_fraction())});
  }
  const v1::Prediction& last = *predictions.rbegin();
  Table devices({{"device"},
                 {"busy"},
                 {"micro-batch"},
                 {"in flight"},
                 {"memory"},
                 {"begins at", Table::Align::kLeft}});
  for (int32_t i = 0; i < last.pipeline().devices_size(); ++i) {
    const v1::PipelineDevice& device = last.pipeline().devices(i);
    devices.AddRow(
        {absl::StrCat(i), PercentText(device.utilization()),
         SecondsText(device.micro_batch_seconds()), absl::StrCat(device.chunks_in_flight()),
         device.memory_bytes() > 0 ? BytesText(device.memory_bytes()) : "not known",
         NamesText({device.first_operations().begin(), device.first_operations().end()})});
  }
  const int64_t of_replica = last.devices() / std::max(1, WorkersOf(last));
  const auto counted = [](int64_t count, const char* noun) {
    return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
  };
  return absl::StrCat("\nshares of a step:\n", shares.Text(), "\n",
                      counted(WorkersOf(last), "replica"), " of ", counted(of_replica, "GPU"), ": ",
                      counted(last.devices(), "GPU"), "\n", devices.Text());
}

// The change that brings the gain.
const char* IfText(const v1::Prediction& prediction) {
  switch (prediction.bottleneck_change()) {
    case v1::Prediction::NO_STRAGGLERS:
      return "as fast as the best";
    case v1::Prediction::NO_HOST_WAIT:
      return "never waited for";
    case v1::Prediction::NO_LATENCY:
      return "none";
    case v1::Prediction::LINKS_TWICE_AS_FAST:
      return prediction.has_collectives() ? "twice as fast" : "links twice as fast";
    default:
      return "twice as fast";
  }
}

}  // namespace

int32_t WorkersOf(const v1::Prediction& prediction) { return prediction.scenario().workers(); }

int32_t ServersOf(const v1::Prediction& prediction) {
  return prediction.scenario().parameter_servers().servers();
}

std::string ScenarioText(const v1::Prediction& prediction) {
  const v1::Scenario& scenario = prediction.scenario();
  if (scenario.has_all_reduce()) return CollectivesText(scenario);
  const v1::ParameterServers& how = scenario.parameter_servers();
  const int32_t servers = how.has_servers() ? how.servers() : 1;
  std::string text = absl::StrCat(servers, servers == 1 ? " server" : " servers");
  if (scenario.has_bandwidth_bytes_per_second())
    absl::StrAppend(&text, ", ", NumberText(scenario.bandwidth_bytes_per_second() / 1e6),
                    " MB/s links");
  if (how.synchronization() == v1::ParameterServers::ASYNCHRONOUS)
    absl::StrAppend(&text, ", asynchronous");
  if (how.synchronization() == v1::ParameterServers::SYNCHRONOUS)
    absl::StrAppend(&text, ", synchronous");
  if (how.synchronization() == v1::ParameterServers::SUMMED) absl::StrAppend(&text, ", summed");
  if (how.has_partition_bytes())
    absl::StrAppend(&text, ", parts of ",
                    NumberText(static_cast<double>(how.partition_bytes()) / 1e6), " MB");
  if (const std::string order = OrderNameOf(how.transfer_order()); !order.empty())
    absl::StrAppend(&text, ", ", order);
  return text;
}

std::string BottleneckText(const v1::Prediction& prediction) {
  if (prediction.has_pipeline()) return PipelineBottleneckText(prediction.pipeline());
  std::string resource = ResourceText(prediction);
  if (!prediction.has_bottleneck_gain()) return resource;
  const double percent = 100 * prediction.bottleneck_gain();
  return absl::StrFormat("%s (%+.*f%% if %s)", resource, std::abs(percent) < kSmallPercent ? 1 : 0,
                         percent, IfText(prediction));
}

std::string IntervalText(const v1::ConfidenceInterval& interval) {
  if (interval.lower() == interval.upper()) return "-";
  return absl::StrCat(NumberText(interval.lower()), " .. ", NumberText(interval.upper()));
}

std::string WarningsText(const Predictions& predictions) {
  std::string text;
  for (const AlikeWarnings& warning : Collect(predictions)) {
    // With several numbers of servers a number of workers comes several times.
    std::vector<int32_t> counts = warning.counts;
    std::sort(counts.begin(), counts.end());
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    absl::StrAppend(&text, "warning (", CountsText(counts),
                    counts.back() == 1 ? " worker" : " workers");
    if (!warning.alike) absl::StrAppend(&text, "; the numbers are those for ", warning.counts[0]);
    absl::StrAppend(&text, "): ", WithFlags(warning.first.message()), "\n");
  }
  return text;
}

std::string WarningsText(const google::protobuf::RepeatedPtrField<v1::Warning>& warnings) {
  std::string text;
  for (const v1::Warning& warning : warnings)
    absl::StrAppend(&text, "warning: ", WithFlags(warning.message()), "\n");
  return text;
}

std::string AssumptionsText(const google::protobuf::RepeatedPtrField<v1::Assumption>& assumptions) {
  std::string lines;
  std::string others;
  for (const v1::Assumption& assumption : assumptions) {
    const AssumedFlag& flag = FlagOf(assumption);
    const std::string how = *flag.flags != '\0' ? absl::StrCat(" (", flag.flags, ")") : "";
    if (*flag.line != '\0') {
      absl::StrAppend(&lines, flag.line, assumption.message(), how, "\n");
    } else {
      absl::StrAppend(&others, others.empty() ? "assumed: " : ", ", flag.noun,
                      NamesText(absl::StrSplit(assumption.value(), ", ")), how);
    }
  }
  return lines + others + (others.empty() ? "" : "\n");
}

std::string CloseCallText(double probability_best, double expected_loss) {
  constexpr double kSure = 0.95;
  constexpr double kLeastLoss = 0.0005;
  if (probability_best >= kSure || expected_loss < kLeastLoss) return "";
  // A tie that something simpler or smaller won.
  if (probability_best < 0.5)
    return absl::StrCat("the best of these is expected to do ", PercentText(expected_loss),
                        " better than the chosen one\n");
  return absl::StrCat("close call: the best of these with probability ",
                      PercentText(probability_best), "; choosing it is expected to lose ",
                      PercentText(expected_loss), "\n");
}

std::string AssumptionsText(const Predictions& predictions) {
  google::protobuf::RepeatedPtrField<v1::Assumption> told;
  for (const v1::Prediction& prediction : predictions) {
    for (const v1::Assumption& assumption : prediction.assumptions()) {
      const bool known = std::any_of(told.begin(), told.end(), [&](const v1::Assumption& earlier) {
        return earlier.field() == assumption.field() &&
               (earlier.value() == assumption.value() || *FlagOf(assumption).line != '\0');
      });
      if (!known) *told.Add() = assumption;
    }
  }
  return AssumptionsText(told);
}

std::string IntervalTitle(const Predictions& predictions) {
  const double level = predictions.empty() ? 0 : predictions[0].confidence_interval().level();
  return level > 0 ? absl::StrCat(level * 100, "% interval") : "interval";
}

std::string RunsTitle(const Predictions& predictions) {
  const double level = predictions.empty() ? 0 : predictions[0].run_interval().level();
  return level > 0 ? absl::StrCat(level * 100, "% of runs") : "";
}

std::string RegimesText(const v1::Prediction& prediction) {
  const auto runs_of = [](const v1::Regime& regime) {
    return regime.replications() + regime.other_start_replications();
  };
  int32_t runs = 0;
  for (const v1::Regime& regime : prediction.regimes()) runs += runs_of(regime);
  std::string text;
  for (const v1::Regime& regime : prediction.regimes()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", NumberText(regime.examples_per_second()),
                    " in ", runs_of(regime), " of ", runs);
  }
  return text;
}

std::string MoneyText(double amount, const std::string& currency) {
  return absl::StrCat(NumberText(amount), currency.empty() ? "" : " ", currency);
}

std::string ForecastText(const Predictions& predictions) {
  const auto any = [&](auto has) {
    return std::any_of(predictions.begin(), predictions.end(), [&](const v1::Prediction& one) {
      return one.has_forecast() && has(one.forecast());
    });
  };
  if (!any([](const v1::TrainingForecast&) { return true; })) return "";
  const bool costs = any([](const v1::TrainingForecast& one) { return one.has_cost(); });
  const bool fails = any([](const auto& one) { return one.has_checkpoint_interval(); });
  std::vector<Table::Column> columns{{"workers"}, {"training takes"}, {RunsTitle(predictions)}};
  if (costs) columns.push_back({"costs"});
  if (fails)
    columns.insert(columns.end(), {{"takes with failures"}, {"failures"}, {"checkpoint every"}});
  if (fails && costs) columns.push_back({"costs then"});
  Table table(columns);
  for (const v1::Prediction& prediction : predictions) {
    const v1::TrainingForecast& forecast = prediction.forecast();
    const std::string& currency = forecast.currency_code();
    const auto time = [](bool told, const auto& of) {
      return told ? LongDurationText(of) : "never";
    };
    std::vector<std::string> row{absl::StrCat(WorkersOf(prediction)),
                                 time(forecast.has_duration(), forecast.duration()),
                                 time(forecast.has_shortest(), forecast.shortest()) + " .. " +
                                     time(forecast.has_longest(), forecast.longest())};
    if (costs) row.push_back(forecast.has_cost() ? MoneyText(forecast.cost(), currency) : "");
    if (fails) {
      const bool ends = forecast.has_expected_duration();
      row.push_back(time(ends, forecast.expected_duration()));
      row.push_back(ends ? NumberText(forecast.expected_failures()) : "");
      row.push_back(LongDurationText(forecast.checkpoint_interval()));
      if (costs) row.push_back(ends ? MoneyText(forecast.expected_cost(), currency) : "");
    }
    table.AddRow(std::move(row));
  }
  return table.Text();
}

std::string PredictionTable(const Predictions& predictions) {
  const bool regimes =
      std::any_of(predictions.begin(), predictions.end(),
                  [](const v1::Prediction& prediction) { return !prediction.regimes().empty(); });
  const std::string runs = RunsTitle(predictions);
  std::vector<Table::Column> columns{{"workers"}, {"examples/s"}, {IntervalTitle(predictions)}};
  if (!runs.empty()) columns.push_back({runs});
  for (const char* title : {"speed-up", "efficiency", "step p50"}) columns.push_back({title});
  const bool meets =
      std::any_of(predictions.begin(), predictions.end(),
                  [](const v1::Prediction& prediction) { return prediction.has_collectives(); });
  if (meets) columns.push_back({"exposed"});
  columns.push_back({"bottleneck", Table::Align::kLeft});
  if (regimes) columns.push_back({"two regimes, by runs", Table::Align::kLeft});
  Table table(columns);
  for (const v1::Prediction& prediction : predictions) {
    std::vector<std::string> row{absl::StrCat(WorkersOf(prediction)),
                                 NumberText(prediction.examples_per_second()),
                                 IntervalText(prediction.confidence_interval())};
    if (!runs.empty()) row.push_back(IntervalText(prediction.run_interval()));
    row.insert(row.end(),
               {NumberText(prediction.speedup()), PercentText(prediction.scaling_efficiency()),
                DurationText(prediction.step_time().p50())});
    if (meets) row.push_back(PercentText(prediction.exposed_communication_fraction()));
    row.push_back(BottleneckText(prediction));
    if (regimes) row.push_back(RegimesText(prediction));
    table.AddRow(std::move(row));
  }
  return table.Text() + PipelineText(predictions) + ForecastText(predictions) +
         MemoryText(predictions) + CertaintyText(predictions) + AssumptionsText(predictions) +
         WarningsText(predictions);
}

}  // namespace stepcast::client
