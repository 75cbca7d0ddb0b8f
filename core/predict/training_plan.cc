#include "core/predict/training_plan.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stepcast {

namespace {

constexpr double kSecondsPerHour = 3600;
constexpr double kMaxSeconds = 1e11;  // 3,000 years
constexpr size_t kMaxCurrencyCode = 16;

bool IsAmount(double amount) { return std::isfinite(amount) && amount >= 0; }

// The least time that is allowed.
enum class Least { kZero, kAboveZero };

void CheckTime(const std::string& field, double seconds, Least least, RequestFaults& faults) {
  if (seconds <= kMaxSeconds && (seconds > 0 || (seconds == 0 && least == Least::kZero))) return;
  faults.Add(field, absl::StrCat(seconds, " seconds are not ",
                                 least == Least::kZero ? "from 0" : "above 0 and", " up to ",
                                 kMaxSeconds));
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
  const double seconds = between * std::exp(restart_seconds / between) *
                         std::expm1((interval + checkpoint_seconds) / between) * work_seconds /
                         interval;
  return seconds <= kMaxSeconds ? seconds : std::numeric_limits<double>::infinity();
}

void CheckPrices(const std::string& path, const MachinePrices& prices, RequestFaults& faults) {
  for (const auto& [field, amount] :
       {std::pair("worker_hour", prices.worker_hour),
        std::pair("parameter_server_hour", prices.parameter_server_hour),
        std::pair("node_hour", prices.node_hour), std::pair("device_hour", prices.device_hour)}) {
    faults.AddIf(!IsAmount(amount), absl::StrCat(path, ".", field), amount,
                 " is not an amount of at least 0");
  }
  faults.AddIf(prices.currency_code.size() > kMaxCurrencyCode, path + ".currency_code", "has ",
               prices.currency_code.size(), " characters, more than ", kMaxCurrencyCode);
}

void CheckFailures(const std::string& path, const Failures& failures, RequestFaults& faults) {
  CheckTime(path + ".worker_mean_time_between", failures.worker_seconds_between, Least::kAboveZero,
            faults);
  CheckTime(path + ".checkpoint_time", failures.checkpoint_seconds, Least::kAboveZero, faults);
  CheckTime(path + ".restart_time", failures.restart_seconds, Least::kZero, faults);
  if (failures.interval_seconds.has_value())
    CheckTime(path + ".checkpoint_interval", *failures.interval_seconds, Least::kAboveZero, faults);
}

void CheckPlan(const std::string& path, const TrainingPlan& plan, RequestFaults& faults) {
  faults.AddIf(plan.examples < 1, path + ".examples", plan.examples,
               " is below 1: time and money are those of so many examples");
  if (plan.prices.has_value()) CheckPrices(path, *plan.prices, faults);
  if (plan.failures.has_value()) CheckFailures(path + ".failures", *plan.failures, faults);
}

TrainingForecast ForecastOf(const TrainingPlan& plan, const Scenario& scenario,
                            double examples_per_second, double slowest, double fastest,
                            int64_t devices_per_worker) {
  const auto examples = static_cast<double>(plan.examples);
  TrainingForecast forecast{
      .currency_code = plan.prices.has_value() ? plan.prices->currency_code : "",
      .seconds = examples / examples_per_second,
      .shortest_seconds = examples / fastest,
      .longest_seconds =
          slowest > 0 ? examples / slowest : std::numeric_limits<double>::infinity()};
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
