#include "server/metrics/job_metrics.h"

#include "server/metrics/metric_names.h"

namespace stepcast::server {

namespace {

prometheus::Histogram::BucketBoundaries JobBuckets() {
  return {0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600};
}

}  // namespace

JobMetrics::JobMetrics(prometheus::Registry& registry, const std::string& pool)
    : queue_length_(prometheus::BuildGauge()
                        .Name(metric::kQueueLength)
                        .Help("Jobs that wait.")
                        .Register(registry)
                        .Add({{"pool", pool}})),
      running_(prometheus::BuildGauge()
                   .Name(metric::kJobsRunning)
                   .Help("Jobs that run.")
                   .Register(registry)
                   .Add({{"pool", pool}})),
      refused_(prometheus::BuildCounter()
                   .Name(metric::kJobsRefused)
                   .Help("Jobs refused at once: the queue was full, the deadline out of reach, or "
                         "the server stopping.")
                   .Register(registry)
                   .Add({{"pool", pool}})),
      dropped_(prometheus::BuildCounter()
                   .Name(metric::kJobsDropped)
                   .Help("Jobs taken out of the queue: abandoned by their callers, or displaced by "
                         "a client with fewer.")
                   .Register(registry)
                   .Add({{"pool", pool}})),
      wait_seconds_(prometheus::BuildHistogram()
                        .Name(metric::kQueueWaitSeconds)
                        .Help("Time a job waited before it ran.")
                        .Register(registry)
                        .Add({{"pool", pool}}, JobBuckets())),
      run_seconds_(prometheus::BuildHistogram()
                       .Name(metric::kJobSeconds)
                       .Help("Time a job ran.")
                       .Register(registry)
                       .Add({{"pool", pool}}, JobBuckets())) {}

void JobMetrics::OnQueued(size_t /*queue_length*/) { queue_length_.Increment(); }

void JobMetrics::OnRefused() { refused_.Increment(); }

void JobMetrics::OnDropped() {
  queue_length_.Decrement();
  dropped_.Increment();
}

void JobMetrics::OnStarted(size_t /*queue_length*/, double wait_seconds) {
  queue_length_.Decrement();
  running_.Increment();
  wait_seconds_.Observe(wait_seconds);
}

void JobMetrics::OnDone(double run_seconds) {
  running_.Decrement();
  run_seconds_.Observe(run_seconds);
}

}  // namespace stepcast::server
