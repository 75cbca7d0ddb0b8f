#include "core/predict/training_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/message_text.h"

namespace stepcast {

namespace {

constexpr double kSecondsPerHour = 3600;
constexpr size_t kMaxCurrencyCode = 16;

// Amounts beyond these would be no costs that can be compared.
constexpr double kLeastAmount = 1e-9;
constexpr double kMostAmount = 1e15;

// Infinite beyond the longest time that is told, and where it is no number.
double UpToNever(double seconds) {
  return seconds <= kLongestTrainingSeconds ? seconds : std::numeric_limits<double>::infinity();
}

// The least time that is allowed.
enum class Least { kZero, kAboveZero };

void CheckTime(const std::string& field, double seconds, Least least, RequestFaults& faults) {
  if (seconds <= kLongestTrainingSeconds &&
      (seconds > 0 || (seconds == 0 && least == Least::kZero)))
    return;
  faults.Add(field, absl::StrCat(seconds, " seconds are not ",
                                 least == Least::kZero ? "from 0" : "above 0 and", " up to ",
                                 kLongestTrainingSeconds));
}

}  // namespace

double MoneyPerSecond(const MachinePrices& prices, const Scenario& scenario, int32_t workers,
                      int32_t servers, int64_t devices) {
  return (workers * (prices.worker_hour + static_cast<double>(devices) * prices.device_hour) +
          static_cast<double>(scenario.NodesOf(workers)) * prices.node_hour +
          servers * prices.parameter_server_hour) /
         kSecondsPerHour;
}

double Failures::IntervalOf(int32_t workers) const {
  if (interval_seconds.has_value()) return *interval_seconds;
  const double between = worker_seconds_between / workers;
  if (checkpoint_seconds >= 2 * between) return between;
  const double ratio = checkpoint_seconds / (2 * between);
  return std::sqrt(2 * checkpoint_seconds * between) * (1 + std::sqrt(ratio) / 3 + ratio / 9) -
         checkpoint_seconds;
}

double Failures::ExpectedSeconds(double work_seconds, int32_t workers) const {
  const double between = worker_seconds_between / workers;
  const double interval = IntervalOf(workers);
  // The time until so much has gone without a failure.
  const auto attempted = [&](double seconds) {
    return between * std::exp(restart_seconds / between) * std::expm1(seconds / between);
  };
  const double checkpoints = std::max(0.0, std::ceil(work_seconds / interval) - 1);
  double seconds = attempted(work_seconds - checkpoints * interval);
  if (checkpoints > 0) seconds += checkpoints * attempted(interval + checkpoint_seconds);
  return UpToNever(seconds);
}

bool IsAmount(double amount) {
  return amount == 0 || (amount >= kLeastAmount && amount <= kMostAmount);
}

std::string NoAmount(bool may_be_none) {
  return absl::StrCat(may_be_none ? " is neither 0 nor an amount from " : " is not an amount from ",
                      kLeastAmount, " to ", kMostAmount);
}

void CheckPrices(const std::string& path, const MachinePrices& prices,
                 const std::vector<Scenario>& scenarios, RequestFaults& faults) {
  const auto is_served = [](const Scenario& scenario) { return scenario.server_count() > 0; };
  const bool none_has = std::none_of(scenarios.begin(), scenarios.end(), is_served);
  const bool all_have = std::all_of(scenarios.begin(), scenarios.end(), is_served);
  bool has_price = false;
  const auto check = [&](const char* field, double amount, bool is_free, const char* why) {
    has_price = has_price || amount != 0;
    const std::string at = absl::StrCat(path, ".", field);
    faults.AddIf(!IsAmount(amount), at, amount, NoAmount());
    faults.AddIf(amount != 0 && is_free, at, amount, " given, and ", why);
  };
  check("worker_hour", prices.worker_hour, false, "");
  check("parameter_server_hour", prices.parameter_server_hour, none_has && !all_have,
        "the job has no parameter servers");
  check("node_hour", prices.node_hour, all_have && !none_has,
        "nodes are of jobs whose workers meet in collectives: give worker_hour");
  check("device_hour", prices.device_hour, false, "");
  const std::string currency = path + ".currency_code";
  const bool is_code = prices.currency_code.size() <= kMaxCurrencyCode;
  faults.AddIf(!is_code, currency, "has ", prices.currency_code.size(), " characters, more than ",
               kMaxCurrencyCode);
  faults.AddIf(is_code && !prices.currency_code.empty() && !has_price, currency,
               Quoted(prices.currency_code), " given, and no price");
}

void CheckFailures(const std::string& path, const Failures& failures, RequestFaults& faults) {
  CheckTime(path + ".worker_mean_time_between", failures.worker_seconds_between, Least::kAboveZero,
            faults);
  CheckTime(path + ".checkpoint_time", failures.checkpoint_seconds, Least::kAboveZero, faults);
  CheckTime(path + ".restart_time", failures.restart_seconds, Least::kZero, faults);
  if (failures.interval_seconds.has_value())
    CheckTime(path + ".checkpoint_interval", *failures.interval_seconds, Least::kAboveZero, faults);
}

void CheckPlan(const std::string& path, const TrainingPlan& plan,
               const std::vector<Scenario>& scenarios, RequestFaults& faults) {
  faults.AddIf(plan.examples < 1, path + ".examples", plan.examples,
               " is below 1: time and money are those of so many examples");
  if (plan.prices.has_value()) CheckPrices(path, *plan.prices, scenarios, faults);
  if (plan.failures.has_value()) CheckFailures(path + ".failures", *plan.failures, faults);
}

TrainingForecast ForecastOf(const TrainingPlan& plan, const Scenario& scenario,
                            double examples_per_second, double slowest, double fastest,
                            int64_t devices_per_worker) {
  const auto examples = static_cast<double>(plan.examples);
  TrainingForecast forecast{
      .currency_code = plan.prices.has_value() ? plan.prices->currency_code : "",
      .seconds = UpToNever(examples / examples_per_second),
      .shortest_seconds = UpToNever(examples / fastest),
      .longest_seconds =
          slowest > 0 ? UpToNever(examples / slowest) : std::numeric_limits<double>::infinity()};
  const auto cost_of = [&](double seconds) -> std::optional<double> {
    if (!plan.prices.has_value() || !std::isfinite(seconds)) return std::nullopt;
    return seconds * MoneyPerSecond(*plan.prices, scenario, scenario.workers,
                                    scenario.server_count(), devices_per_worker);
  };
  forecast.cost = cost_of(forecast.seconds);
  if (!plan.failures.has_value()) return forecast;
  forecast.interval_seconds = plan.failures->IntervalOf(scenario.workers);
  forecast.expected_seconds = plan.failures->ExpectedSeconds(forecast.seconds, scenario.workers);
  forecast.expected_failures =
      *forecast.expected_seconds * scenario.workers / plan.failures->worker_seconds_between;
  forecast.expected_cost = cost_of(*forecast.expected_seconds);
  return forecast;
}

}  // namespace stepcast
