// Metrics of answers that were computed for another call.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <string_view>

#include "server/handlers/sharing_observer.h"

namespace stepcast::server {

class SharingMetrics final : public SharingObserver {
 public:
  // The registry must outlive it.
  explicit SharingMetrics(prometheus::Registry& registry);

  void OnShared(std::string_view method, SharedFrom from) override;

 private:
  prometheus::Family<prometheus::Counter>& answers_;
};

}  // namespace stepcast::server
