// Time and money of a training: of so many examples at a throughput, with and without failures.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/scenario.h"
#include "core/predict/request_faults.h"

namespace stepcast {

// 3,000 years: of trainings that would take longer it is only said that they do.
inline constexpr double kLongestTrainingSeconds = 1e11;

// The prices of machines.
struct MachinePrices {
  double worker_hour = 0;
  double parameter_server_hour = 0;
  double node_hour = 0;  // of all_reduce.workers_per_node workers; begun ones are paid for
  double device_hour = 0;
  std::string currency_code;
};

// Money per second of so many workers, each of `devices`, and servers, by the scenario's workers of
// a node.
double MoneyPerSecond(const MachinePrices& prices, const Scenario& scenario, int32_t workers,
                      int32_t servers, int64_t devices = 1);

// Failures of workers, exponentially distributed and independent, after which the job goes on from
// its last checkpoint.
struct Failures {
  double worker_seconds_between = 0;       // mean, of one worker; above 0
  double checkpoint_seconds = 0;           // to write one, above 0; nothing is computed then
  double restart_seconds = 0;              // from a failure to the next step
  std::optional<double> interval_seconds;  // of work between checkpoints; none: the best

  // Work between checkpoints of a job with so many workers, by what was asked or by Daly's optimum.
  double IntervalOf(int32_t workers) const;
  // The expected time of so much work, checkpoints, restarts and work that is lost included;
  // infinite where it makes no progress to speak of. A checkpoint follows every interval but the
  // last, whole or not, with which the training ends.
  // Source: Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps"
  // (FGCS 2006), equations 20 and 37, for each interval; exact for the model above.
  double ExpectedSeconds(double work_seconds, int32_t workers) const;
};

// True of 0 and of what can be compared with other amounts; `NoAmount`: what a fault says of
// others, 0 among them unless there may be none.
bool IsAmount(double amount);
std::string NoAmount(bool may_be_none = true);

// A fault below `path` for each price that is not an amount, or is of machines that no scenario has
// (without scenarios that is not known), for a currency of nothing, and each time out of bounds.
void CheckPrices(const std::string& path, const MachinePrices& prices,
                 const std::vector<Scenario>& scenarios, RequestFaults& faults);
void CheckFailures(const std::string& path, const Failures& failures, RequestFaults& faults);

// The training that a prediction is asked about.
struct TrainingPlan {
  int64_t examples = 0;  // at least 1
  std::optional<MachinePrices> prices;
  std::optional<Failures> failures;
};

void CheckPlan(const std::string& path, const TrainingPlan& plan,
               const std::vector<Scenario>& scenarios, RequestFaults& faults);

struct TrainingForecast {
  std::string currency_code;
  // Times are infinite where the training would go on for thousands of years; then no cost is told.
  double seconds = 0;  // without failures, at examples_per_second
  // By the ends of run_interval.
  double shortest_seconds = 0;
  double longest_seconds = 0;
  std::optional<double> cost;
  // With failures.
  std::optional<double> interval_seconds;
  std::optional<double> expected_failures;
  std::optional<double> expected_seconds;
  std::optional<double> expected_cost;
};

// At so many examples per second; slowest and fastest: the ends of run_interval.
TrainingForecast ForecastOf(const TrainingPlan& plan, const Scenario& scenario,
                            double examples_per_second, double slowest, double fastest,
                            int64_t devices_per_worker = 1);

}  // namespace stepcast
