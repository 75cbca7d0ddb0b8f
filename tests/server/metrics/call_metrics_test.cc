#include "server/metrics/call_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stepcast::server::call_metrics_test {
namespace {

using ::testing::HasSubstr;
using testing::Not;

TEST(CodeNameTest, NamesAreGosAtTheCanonicalNumbers) {
  EXPECT_EQ(CodeName(0), "OK");
  EXPECT_EQ(CodeName(1), "Canceled");
  EXPECT_EQ(CodeName(3), "InvalidArgument");
  EXPECT_EQ(CodeName(4), "DeadlineExceeded");
  EXPECT_EQ(CodeName(8), "ResourceExhausted");
  EXPECT_EQ(CodeName(14), "Unavailable");
  EXPECT_EQ(CodeName(16), "Unauthenticated");
}

TEST(CodeNameTest, AnyOtherNumberIsUnknown) {
  EXPECT_EQ(CodeName(-1), "Unknown");
  EXPECT_EQ(CodeName(17), "Unknown");
}

class CallMetricsTest : public ::testing::Test {
 protected:
  std::string Text() { return prometheus::TextSerializer().Serialize(registry_.Collect()); }

  prometheus::Registry registry_;
  CallMetrics metrics_{registry_, {{.service = "s", .method = "m", .type = "unary"}}};
};

TEST_F(CallMetricsTest, EverySeriesOfAMethodIsThereFromTheStart) {
  const std::string text = Text();
  for (const std::string_view code : kCodeNames) {
    EXPECT_THAT(text,
                HasSubstr("grpc_server_handled_total{grpc_code=\"" + std::string(code) +
                          "\",grpc_method=\"m\",grpc_service=\"s\",grpc_type=\"unary\"} 0\n"));
  }
  for (const std::string name :
       {"started_total", "msg_received_total", "msg_sent_total", "handling_seconds_count"}) {
    EXPECT_THAT(text, HasSubstr("grpc_server_" + name +
                                "{grpc_method=\"m\",grpc_service=\"s\",grpc_type=\"unary\"} 0\n"));
  }
}

TEST_F(CallMetricsTest, AMethodIsFoundByItsPath) {
  metrics_.Of("/s/m").started->Increment();
  EXPECT_THAT(Text(), HasSubstr("grpc_server_started_total{grpc_method=\"m\",grpc_service=\"s\","
                                "grpc_type=\"unary\"} 1\n"));
}

TEST_F(CallMetricsTest, WhatAClientInventsIsOneSeries) {
  const size_t before = Text().size();
  for (int i = 0; i < 100; ++i) metrics_.Of("/s/invented" + std::to_string(i)).started->Increment();
  EXPECT_THAT(Text(), HasSubstr("grpc_server_started_total{grpc_method=\"other\",grpc_service="
                                "\"other\",grpc_type=\"unary\"} 100\n"));
  EXPECT_LT(Text().size(), before + 10);
}

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
}  // namespace stepcast::server::call_metrics_test
