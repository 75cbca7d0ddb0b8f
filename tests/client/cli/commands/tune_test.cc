#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "client/cli/texts/answer_texts.h"

#include "tests/client/support/text_proto.h"

namespace stepcast::client::tune_test {
namespace {

using ::testing::HasSubstr;

v1::OptimizeCommunicationResponse TwoMethods() {
  return Proto<v1::OptimizeCommunicationResponse>(R"pb(
    strategies {
      method: AS_RECORDED
      groups { operations: "a" operations: "b" size_bytes: 4096 }
      step_seconds: 0.5
      examples_per_second: 32
      exposed_communication_seconds: 0.25
      no_difference: true
      lower_bound_seconds: 0.3125
      gap: 0.6
    }
    strategies {
      method: DDP_BUCKETS
      groups { operations: "a" size_bytes: 2048 }
      groups { operations: "b" size_bytes: 2048 }
      step_seconds: 0.4
      examples_per_second: 40
      exposed_communication_seconds: 0.15
      gain: 0.25
      gain_interval { lower: 0.24 upper: 0.26 }
      setting: "bucket_cap_mb=5"
      lower_bound_seconds: 0.3125
      gap: 0.28
    }
    chosen: DDP_BUCKETS
    reason: "bucket_cap_mb=5 gains +25.0 %"
    warnings { message: "DDP_BUCKETS: short" })pb");
}

constexpr char kTable[] =
    "    method       groups      step  examples/s    gain          interval   exposed    gap  "
    "setting\n"
    "    AS_RECORDED       1  500.0 ms       32.00                            250.0 ms  60.0%\n"
    "->  DDP_BUCKETS       2  400.0 ms       40.00  +25.0%  +24.0% .. +26.0%  150.0 ms  28.0%  "
    "bucket_cap_mb=5\n"
    "bucket_cap_mb=5 gains +25.0 %\n"
    "groups, first to last: 2.000 KiB x2\n"
    "no grouping's step is shorter than 312.5 ms; gap: how far above that a step is\n";

TEST(TuningTextTest, ShowsEveryMethodAndTheGroupsOfTheChosenOne) {
  EXPECT_EQ(TuningText(TwoMethods()), std::string(kTable) + "warning: DDP_BUCKETS: short\n");
}

TEST(TuningTextTest, ShowsTheAdviceOfEachNumberOfWorkers) {
  v1::OptimizeCommunicationResponse reply = TwoMethods();
  for (const int workers : {2, 4}) {
    v1::CommunicationAdvice& advice = *reply.add_advice();
    advice.set_workers(workers);
    *advice.mutable_strategies() = reply.strategies();
    advice.set_chosen(reply.chosen());
    advice.set_reason(reply.reason());
  }
  EXPECT_EQ(TuningText(reply),
            "2 workers:\n" + std::string(kTable) + "\n4 workers:\n" + kTable +
                "\nThe first advice is as good for the other numbers of workers.\n"
                "warning: DDP_BUCKETS: short\n");
  reply.set_advice_changes(true);
  EXPECT_THAT(TuningText(reply), HasSubstr("The advice changes with the number of workers.\n"));
}

TEST(TuningTextTest, ManyGroupsAreCutShort) {
  v1::OptimizeCommunicationResponse reply = TwoMethods();
  for (int i = 1; i <= 12; ++i) reply.mutable_strategies(1)->add_groups()->set_size_bytes(100 * i);
  EXPECT_THAT(TuningText(reply), HasSubstr("600 B, 700 B, ... (--output json)\n"));
}

TEST(TuningTextTest, ALongSettingHasALineAndWhatWasNotTriedIsNamed) {
  v1::OptimizeCommunicationResponse reply = TwoMethods();
  const std::string setting = "bucket_cap_mb_list=[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]";
  reply.mutable_strategies(1)->set_setting(setting);
  const auto leave_out = [&](v1::OptimizeCommunicationRequest::Method method, const char* why) {
    v1::LeftOutMethod& left_out = *reply.add_left_out();
    left_out.set_method(method);
    left_out.set_reason(why);
  };
  leave_out(v1::OptimizeCommunicationRequest::LIBRA_M, "LIBRA_M needs contention");
  leave_out(v1::OptimizeCommunicationRequest::LIBRA, "LIBRA needs contention");
  leave_out(v1::OptimizeCommunicationRequest::HOROVOD, "the groups are fixed");
  EXPECT_THAT(TuningText(reply),
              HasSubstr("  bucket_cap_mb_list=[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,1...\n"));
  EXPECT_THAT(TuningText(reply), HasSubstr("\nset: " + setting + "\n"));
  EXPECT_THAT(TuningText(reply), HasSubstr("\nnot tried: LIBRA_M, LIBRA: needs contention\n"
                                           "not tried: HOROVOD: the groups are fixed\nwarning: "));
}

TEST(TuningTextTest, AnEmptyReplyIsShownToo) { EXPECT_THAT(TuningText({}), HasSubstr("method")); }

}  // namespace
}  // namespace stepcast::client::tune_test
