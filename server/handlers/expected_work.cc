#include "server/handlers/expected_work.h"

#include <algorithm>

namespace stepcast::server {

namespace {

// Of one worker in all its runs.
double OfOneWorker(const Profile& profile, const SimulationOptions& options) {
  return static_cast<double>(profile.operations().size()) * options.steps_per_worker *
         std::max(options.replications, 1);
}

}  // namespace

double OperationsOf(const Profile& profile, const ThroughputQuery& query) {
  double workers = 1;  // the one that the speed-up is over
  for (const Scenario& scenario : query.scenarios) workers += scenario.workers;
  return workers * OfOneWorker(profile, query.options);
}

double OperationsOf(const Profile& profile, const RecommendationQuery& query) {
  const double mean_workers = 0.5 * (query.min_workers + query.max_workers);
  return mean_workers * static_cast<double>(query.choices()) * OfOneWorker(profile, query.options);
}

double OperationsOf(const Profile& profile, const OrderQuery& query) {
  return static_cast<double>(query.methods.size()) * query.scenario.workers *
         OfOneWorker(profile, query.options);
}

double OperationsOf(const Profile& profile, const ComparisonQuery& query) {
  return OperationsOf(profile, query.throughput);
}

double OperationsOf(const Profile& profile, const TraceQuery& query) {
  return query.scenario.workers * OfOneWorker(profile, query.options);
}

double OperationsOf(const AllocationQuery& query) {
  double operations = 0;
  for (const absl::StatusOr<AllocationJob>& job : query.jobs) {
    if (!job.ok()) continue;
    double workers = 0;
    for (const int32_t count : job->worker_counts) workers += count;
    operations += workers * static_cast<double>(job->server_choices.size()) *
                  OfOneWorker(job->profile, query.options);
  }
  return operations;
}

}  // namespace stepcast::server
