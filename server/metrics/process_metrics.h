// Metrics of the process, read from /proc when they are asked for.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <vector>

namespace stepcast::server {

class ProcessMetrics final : public prometheus::Collectable {
 public:
  // Leaves out what cannot be read. Threads: safe.
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace stepcast::server
