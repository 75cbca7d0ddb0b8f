#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "client/cli/texts/answer_texts.h"
#include "client/cli/texts/prediction_table.h"
#include "google/longrunning/operations.pb.h"

#include "stepcast/json.h"
#include "stepcast/v1/job_service.pb.h"
#include "tests/client/support/text_proto.h"

namespace stepcast::client::jobs_test {
namespace {

using testing::HasSubstr;
using testing::Not;

using google::longrunning::ListOperationsResponse;
using google::longrunning::Operation;

Operation With(const std::string& metadata) {
  auto job = Proto<Operation>(R"pb(name: "operations/o-1")pb");
  job.mutable_metadata()->PackFrom(Proto<v1::JobMetadata>(metadata));
  return job;
}

// Created on 2026-11-22, at two.
constexpr char kRunning[] = R"pb(
  method: "OptimizeOrder"
  state: RUNNING
  create_time { seconds: 1795312800 }
  start_time { seconds: 1795312802 nanos: 500000000 }
  attempts: 2
  simulated_operations: 81920
  replica: "a-1")pb";

TEST(JobTableTest, HasARowAJob) {
  ListOperationsResponse list;
  *list.add_operations() = With(kRunning);
  list.add_operations()->set_name("operations/o-2");
  EXPECT_EQ(JobTable(list),
            "name            method         state              attempts  created               "
            "started               ended\n"
            "operations/o-1  OptimizeOrder  running                   2  2026-11-22 02:00:00Z  "
            "2026-11-22 02:00:02Z  -\n"
            "operations/o-2  -              state_unspecified         0  -                     -   "
            "                  -\n");
}

TEST(JobTextTest, HasALineAProperty) {
  EXPECT_EQ(JobText(With(kRunning)),
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
  Operation job = With(std::string(kRunning) + " cancel_requested: true");
  EXPECT_THAT(JobText(job), HasSubstr("running, to be cancelled"));
  job.set_done(true);
  EXPECT_THAT(JobText(job), Not(HasSubstr("to be cancelled")));
}

TEST(JobTextTest, AStateHasItsOwnName) {
  EXPECT_THAT(JobText(With("state: JOB_CANCELLED")), HasSubstr("state      cancelled\n"));
}

TEST(JobTextTest, NothingInItDrivesATerminal) {
  const Operation job = With(R"pb(replica: "\033[2J\n")pb");
  EXPECT_THAT(JobText(job), HasSubstr("server     \\x1b[2J\\x0a"));
  EXPECT_THAT(JobText(job), Not(HasSubstr("\x1b")));
}

TEST(JobReplyTest, IsWhatTheCommandPrintsThatAsksInACall) {
  Operation job;
  EXPECT_EQ(ReplyText(job), "");
  const auto prediction =
      Proto<v1::PredictThroughputResponse>("predictions { examples_per_second: 2.5 }");
  job.mutable_response()->PackFrom(prediction);
  EXPECT_EQ(ReplyText(job), PredictionTable(prediction.predictions()));
  EXPECT_EQ(ReplyJson(job), ToJson(prediction));
  auto order = Proto<v1::OptimizeOrderResponse>("orders { method: TAC } chosen: TAC");
  for (int i = 0; i < 30; ++i) order.mutable_orders(0)->add_transfers();
  job.mutable_response()->PackFrom(order);
  EXPECT_EQ(ReplyText(job), OrderText(order, kDefaultTransfers));
  job.mutable_response()->set_type_url("type.googleapis.com/stepcast.v9.Oracle");
  EXPECT_EQ(ReplyText(job), "");
}

}  // namespace
}  // namespace stepcast::client::jobs_test
