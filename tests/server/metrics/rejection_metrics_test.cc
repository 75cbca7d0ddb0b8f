#include "server/metrics/rejection_metrics.h"

#include <prometheus/text_serializer.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stepcast::server::rejection_metrics_test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Text(const prometheus::Registry& registry) {
  return prometheus::TextSerializer().Serialize(registry.Collect());
}

TEST(RejectionMetricsTest, EveryReasonIsThereAtZero) {
  prometheus::Registry registry;
  const RejectionMetrics metrics(registry);
  for (const std::string_view reason : kRejectionReasons) {
    EXPECT_THAT(Text(registry),
                HasSubstr("stepcast_rejections_total{reason=\"" + std::string(reason) + "\"} 0"));
  }
}

TEST(RejectionMetricsTest, CountsByReasonAndPassesOverFaultsOfTheRequest) {
  prometheus::Registry registry;
  RejectionMetrics metrics(registry);
  metrics.OnFailure("QUEUE_FULL");
  metrics.OnFailure("QUEUE_FULL");
  metrics.OnFailure("REQUEST_INVALID");
  metrics.OnFailure("");
  EXPECT_THAT(Text(registry), HasSubstr("stepcast_rejections_total{reason=\"QUEUE_FULL\"} 2"));
  EXPECT_THAT(Text(registry), Not(HasSubstr("REQUEST_INVALID")));
}

}  // namespace
}  // namespace stepcast::server::rejection_metrics_test
