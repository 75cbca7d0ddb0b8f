#include "client/cli/bench_report.h"

#include <array>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/json_object.h"
#include "client/cli/measure_text.h"
#include "client/cli/table.h"

namespace stepcast::client {

namespace {

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

JsonObject LatencyObject(const LatencyHistogram& latency) {
  JsonObject object;
  object.Add("count", latency.count());
  object.Add("mean", Milliseconds(latency.Mean()));
  for (const auto& [name, part] : kPercentiles)
    object.Add(name, Milliseconds(latency.Percentile(part)));
  object.Add("max", Milliseconds(latency.max()));
  return object;
}

JsonObject CodesObject(const CodeCounts& codes) {
  JsonObject object;
  for (size_t code = 0; code < codes.size(); ++code) {
    if (codes[code] > 0) object.Add(CodeName(code), codes[code]);
  }
  return object;
}

JsonObject StepObject(const BenchStep& step) {
  JsonObject object;
  if (const auto* closed = std::get_if<ClosedLoop>(&step.loop)) {
    object.Add("concurrency", static_cast<int32_t>(closed->concurrency));
  } else {
    object.Add("rate", std::get<OpenLoop>(step.loop).rate);
    object.Add("unsent", step.result.unsent);
    object.Add("latenessMs", LatencyObject(step.result.lateness));
  }
  object.Add("calls", Sum(step.result.codes));
  object.Add("goodput", step.result.Goodput());
  object.Add("latencyMs", LatencyObject(step.result.latency));
  object.Add("refusalMs", LatencyObject(step.result.refusal));
  object.Add("codes", CodesObject(step.result.codes));
  object.Add("allCodes", CodesObject(step.result.all_codes));
  object.Add("serverGone", step.result.server_gone);
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
  JsonObject object;
  object.Add("server", report.server);
  object.Add("method", report.method);
  object.Add("vary", static_cast<int64_t>(report.vary));
  object.Add("connections", static_cast<int32_t>(report.connections));
  object.Add("deadlineSeconds", Seconds(report.deadline));
  object.Add("warmupSeconds", Seconds(report.warmup));
  object.Add("durationSeconds", Seconds(report.duration));
  object.Add("checkCalls", report.check_calls);
  std::vector<JsonObject> steps;
  for (const BenchStep& step : report.steps) steps.push_back(StepObject(step));
  object.Add("steps", steps);
  std::vector<JsonObject> reasons;
  for (const std::string& why : missed) {
    JsonObject reason;
    reason.Add("why", why);
    reasons.push_back(std::move(reason));
  }
  object.Add("missed", reasons);
  return object.Text() + "\n";
}

}  // namespace stepcast::client
