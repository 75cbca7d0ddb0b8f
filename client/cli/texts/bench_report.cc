#include "client/cli/texts/bench_report.h"

#include <array>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/texts/json_text.h"
#include "client/cli/texts/table.h"

namespace stepcast::client {

namespace {

using nlohmann::ordered_json;

constexpr std::array<std::pair<const char*, double>, 5> kPercentiles{
    {{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999}}};

double Milliseconds(std::chrono::nanoseconds length) {
  return std::chrono::duration<double, std::milli>(length).count();
}
double Seconds(std::chrono::nanoseconds length) {
  return std::chrono::duration<double>(length).count();
}

std::string LoadText(const BenchStep& step) {
  if (const auto* closed = std::get_if<ClosedLoop>(&step.loop))
    return absl::StrCat(closed->concurrency, " at once");
  return absl::StrCat(NumberText(std::get<OpenLoop>(step.loop).rate), "/s");
}

std::string CodeName(size_t code) {
  return absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
}

// `RESOURCE_EXHAUSTED 12, UNAVAILABLE 3`; empty where all is well.
std::string FailuresText(const LoadResult& result) {
  std::vector<std::string> parts;
  for (size_t code = 1; code < result.codes.size(); ++code) {
    if (result.codes[code] > 0)
      parts.push_back(absl::StrCat(CodeName(code), " ", result.codes[code]));
  }
  if (result.unsent > 0) parts.push_back(absl::StrCat("not sent ", result.unsent));
  return absl::StrJoin(parts, ", ");
}

std::vector<std::string> Cells(const BenchStep& step) {
  const LoadResult& result = step.result;
  const double calls = static_cast<double>(Sum(result.codes)) / Seconds(result.window);
  std::vector<std::string> cells{LoadText(step), NumberText(calls), NumberText(result.Goodput())};
  for (const auto& percentile : kPercentiles) {
    cells.push_back(result.latency.count() == 0
                        ? "-"
                        : DurationText(result.latency.Percentile(percentile.second)));
  }
  cells.push_back(result.latency.count() == 0 ? "-" : DurationText(result.latency.max()));
  const std::string failures = FailuresText(result);
  cells.push_back(failures.empty() ? "-" : failures);
  return cells;
}

ordered_json LatencyObject(const LatencyHistogram& latency) {
  ordered_json object{{"count", CountJson(latency.count())},
                      {"mean", NumberJson(Milliseconds(latency.Mean()))}};
  for (const auto& [name, part] : kPercentiles)
    object[name] = NumberJson(Milliseconds(latency.Percentile(part)));
  object["max"] = NumberJson(Milliseconds(latency.max()));
  return object;
}

ordered_json CodesObject(const CodeCounts& codes) {
  ordered_json object = ordered_json::object();
  for (size_t code = 0; code < codes.size(); ++code) {
    if (codes[code] > 0) object[CodeName(code)] = CountJson(codes[code]);
  }
  return object;
}

ordered_json StepObject(const BenchStep& step) {
  ordered_json object;
  if (const auto* closed = std::get_if<ClosedLoop>(&step.loop)) {
    object["concurrency"] = closed->concurrency;
  } else {
    object["rate"] = NumberJson(std::get<OpenLoop>(step.loop).rate);
    object["unsent"] = CountJson(step.result.unsent);
    object["latenessMs"] = LatencyObject(step.result.lateness);
  }
  object["calls"] = CountJson(Sum(step.result.codes));
  object["goodput"] = NumberJson(step.result.Goodput());
  object["latencyMs"] = LatencyObject(step.result.latency);
  object["refusalMs"] = LatencyObject(step.result.refusal);
  object["codes"] = CodesObject(step.result.codes);
  object["allCodes"] = CodesObject(step.result.all_codes);
  object["serverGone"] = step.result.server_gone;
  return object;
}

std::string MissedBy(const BenchStep& step, const BenchTargets& targets) {
  const LoadResult& result = step.result;
  if (result.server_gone)
    return absl::StrCat("the server is gone: ", kUnavailableMax,
                        " calls in a row were UNAVAILABLE");
  if (result.latency.count() == 0) return "no call that counts was answered";
  if (const double p99 = Milliseconds(result.latency.Percentile(0.99));
      targets.max_p99_ms && p99 > *targets.max_p99_ms) {
    return absl::StrCat("p99 is ", NumberText(p99), " ms, above ", NumberText(*targets.max_p99_ms));
  }
  if (targets.min_goodput && result.Goodput() < *targets.min_goodput) {
    return absl::StrCat("goodput is ", NumberText(result.Goodput()), "/s, below ",
                        NumberText(*targets.min_goodput));
  }
  return "";
}

}  // namespace

std::vector<std::string> MissedBy(const BenchReport& report, const BenchTargets& targets) {
  std::vector<std::string> missed;
  for (const BenchStep& step : report.steps) {
    if (const std::string why = MissedBy(step, targets); !why.empty())
      missed.push_back(absl::StrCat(LoadText(step), ": ", why));
  }
  return missed;
}

std::string BenchText(const BenchReport& report) {
  std::vector<Table::Column> columns{{.title = "load"}, {.title = "calls/s"}, {.title = "good/s"}};
  for (const auto& percentile : kPercentiles) columns.push_back({.title = percentile.first});
  columns.push_back({.title = "max"});
  columns.push_back({.title = "failures", .align = Table::Align::kLeft});
  Table table(std::move(columns));
  for (const BenchStep& step : report.steps) table.AddRow(Cells(step));
  return table.Text();
}

std::string BenchJson(const BenchReport& report, const std::vector<std::string>& missed) {
  ordered_json object{{"server", report.server},
                      {"method", report.method},
                      {"vary", CountJson(static_cast<int64_t>(report.vary))},
                      {"connections", report.connections},
                      {"deadlineSeconds", NumberJson(Seconds(report.deadline))},
                      {"warmupSeconds", NumberJson(Seconds(report.warmup))},
                      {"durationSeconds", NumberJson(Seconds(report.duration))},
                      {"checkCalls", CountJson(report.check_calls)},
                      {"steps", ordered_json::array()},
                      {"missed", ordered_json::array()}};
  for (const BenchStep& step : report.steps) object["steps"].push_back(StepObject(step));
  for (const std::string& why : missed) object["missed"].push_back({{"why", why}});
  return JsonText(object);
}

}  // namespace stepcast::client
