#include "server/metrics/process_metrics.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <map>

namespace stepcast::server::process_metrics_test {
namespace {

std::map<std::string, double> Values() {
  std::map<std::string, double> values;
  for (const prometheus::MetricFamily& family : ProcessMetrics().Collect()) {
    const prometheus::ClientMetric& sample = family.metric.at(0);
    values[family.name] =
        family.type == prometheus::MetricType::Counter ? sample.counter.value : sample.gauge.value;
  }
  return values;
}

TEST(ProcessMetricsTest, TheProcessIsDescribedAsItIs) {
  const std::map<std::string, double> values = Values();
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_GT(values.at("process_resident_memory_bytes"), 1e5);
  EXPECT_GT(values.at("process_virtual_memory_bytes"), values.at("process_resident_memory_bytes"));
  EXPECT_GE(values.at("process_cpu_seconds_total"), 0);
  EXPECT_LT(values.at("process_cpu_seconds_total"), 1e4);
  EXPECT_LT(values.at("process_start_time_seconds"), now + 5);
  EXPECT_GT(values.at("process_start_time_seconds"), now - 1e5);
  EXPECT_GE(values.at("process_max_fds"), values.at("process_open_fds"));
}

TEST(ProcessMetricsTest, AnOpenDescriptorIsCounted) {
  const double before = Values().at("process_open_fds");
  const int fd = dup(0);
  EXPECT_EQ(Values().at("process_open_fds"), before + 1);
  close(fd);
}

}  // namespace
}  // namespace stepcast::server::process_metrics_test
