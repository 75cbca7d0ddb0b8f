#include "server/metrics/job_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

namespace stepcast::server::job_metrics_test {
namespace {

using ::testing::HasSubstr;

TEST(JobMetricsTest, GaugesFollowAJobThroughThePool) {
  prometheus::Registry registry(prometheus::Registry::InsertBehavior::Merge);
  JobMetrics metrics(registry, "simulation");
  JobMetrics other(registry, "store");
  const auto text = [&] { return prometheus::TextSerializer().Serialize(registry.Collect()); };
  metrics.OnQueued(1);
  metrics.OnQueued(2);
  EXPECT_THAT(text(), HasSubstr("stepcast_queue_length{pool=\"simulation\"} 2\n"));
  metrics.OnStarted(1, 0.25);
  EXPECT_THAT(text(), HasSubstr("stepcast_queue_length{pool=\"simulation\"} 1\n"));
  EXPECT_THAT(text(), HasSubstr("stepcast_jobs_running{pool=\"simulation\"} 1\n"));
  EXPECT_THAT(text(), HasSubstr("stepcast_queue_wait_seconds_sum{pool=\"simulation\"} 0.25\n"));
  metrics.OnDone(1.5);
  EXPECT_THAT(text(), HasSubstr("stepcast_jobs_running{pool=\"simulation\"} 0\n"));
  EXPECT_THAT(text(), HasSubstr("stepcast_job_seconds_sum{pool=\"simulation\"} 1.5\n"));
  metrics.OnRefused();
  EXPECT_THAT(text(), HasSubstr("stepcast_jobs_refused_total{pool=\"simulation\"} 1\n"));
  EXPECT_THAT(text(), HasSubstr("stepcast_jobs_refused_total{pool=\"store\"} 0\n"));
}

}  // namespace
}  // namespace stepcast::server::job_metrics_test
