#include "client/cli/job_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/order_table.h"
#include "client/cli/prediction_table.h"

#include "stepcast/json.h"

namespace stepcast::client::job_table_test {
namespace {

using testing::HasSubstr;
using testing::Not;

Job Running() {
  const Job::Time created =
      std::chrono::sys_days(std::chrono::year(2026) / 11 / 22) + std::chrono::hours(2);
  return {.name = "operations/o-1",
          .method = "OptimizeOrder",
          .state = JobState::kRunning,
          .create_time = created,
          .start_time = created + std::chrono::milliseconds(2500),
          .attempts = 2,
          .simulated_operations = 81920,
          .replica = "a-1"};
}

TEST(JobTableTest, HasARowAJob) {
  EXPECT_EQ(JobTable({Running(), {.name = "operations/o-2"}}),
            "name            method         state              attempts  created               "
            "started               ended\n"
            "operations/o-1  OptimizeOrder  running                   2  2026-11-22 02:00:00Z  "
            "2026-11-22 02:00:02Z  -\n"
            "operations/o-2  -              state_unspecified         0  -                     -   "
            "                  -\n");
}

TEST(JobTextTest, HasALineAProperty) {
  EXPECT_EQ(JobText(Running()),
            "job        operations/o-1\n"
            "method     OptimizeOrder\n"
            "state      running\n"
            "attempts   2\n"
            "created    2026-11-22 02:00:00Z\n"
            "started    2026-11-22 02:00:02Z\n"
            "ended      -\n"
            "simulated  about 81920 operations\n"
            "server     a-1\n");
}

TEST(JobTextTest, SaysThatItIsToEndOnlyWhileItHasNot) {
  Job job = Running();
  job.cancel_requested = true;
  EXPECT_THAT(JobText(job), HasSubstr("running, to be cancelled"));
  job.done = true;
  EXPECT_THAT(JobText(job), Not(HasSubstr("to be cancelled")));
}

TEST(JobTextTest, NothingInItDrivesATerminal) {
  Job job = Running();
  job.replica = "\x1b[2J\n";
  EXPECT_THAT(JobText(job), HasSubstr("server      [2J"));
  EXPECT_THAT(JobText(job), Not(HasSubstr("\x1b")));
}

TEST(JobReplyTest, IsWhatTheCommandPrintsThatAsksInACall) {
  const PredictThroughputResponse prediction{.predictions = {{.examples_per_second = 2.5}}};
  EXPECT_EQ(ReplyText(prediction), PredictionTable(prediction.predictions));
  EXPECT_EQ(ReplyJson(prediction), ToJson(prediction));
  OptimizeOrderResponse order{.orders = {{.method = OrderMethod::kTac}},
                              .chosen = OrderMethod::kTac};
  order.orders[0].transfers.resize(30);
  EXPECT_EQ(ReplyText(order), OrderText(order, kDefaultTransfers));
  EXPECT_EQ(ReplyText(std::monostate()), "");
}

}  // namespace
}  // namespace stepcast::client::job_table_test
