#include "server/rpc/operations_rpc.h"

#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "server/base/clock.h"
#include "server/handlers/prediction_handler.h"
#include "server/store/memory_stores.h"
#include "stepcast/v1/job_service.pb.h"
#include "tests/server/handlers/swift_clock.h"
#include "tests/server/store/shard_board.h"

namespace stepcast::server::operations_rpc_test {
namespace {

class JobComputationTest : public ::testing::Test {
 protected:
  // The reply without what tells one computation from another.
  std::string Compute(const v1::StartJobRequest& job, const OperationShare& share) const {
    absl::StatusOr<OperationWork> work = CheckJob(
        job.SerializeAsString(), {.handler = handler_, .clock = clock_, .max_seconds = 1e9});
    EXPECT_TRUE(work.ok()) << work.status();
    AttemptProgress progress;
    const absl::StatusOr<std::string> reply = (*std::move(work))(NeverStop, progress, share);
    EXPECT_TRUE(reply.ok()) << reply.status();
    EXPECT_GE(progress.expected, progress.done);
    return WithoutSeconds(job, *reply);
  }

  static std::string WithoutSeconds(const v1::StartJobRequest& job, const std::string& reply) {
    std::string bytes;
    const auto strip = [&](auto message) {
      EXPECT_TRUE(message.ParseFromString(reply));
      message.mutable_simulation()->clear_engine_seconds();
      bytes = message.DebugString();
    };
    if (job.has_predict_throughput()) strip(v1::PredictThroughputResponse());
    if (job.has_recommend_workers()) strip(v1::RecommendWorkersResponse());
    if (job.has_optimize_order()) strip(v1::OptimizeOrderResponse());
    if (job.has_allocate_workers()) strip(v1::AllocateWorkersResponse());
    if (job.has_compare_models()) strip(v1::CompareModelsResponse());
    if (job.has_optimize_communication()) strip(v1::OptimizeCommunicationResponse());
    if (job.has_diagnose_job()) strip(v1::DiagnoseJobResponse());
    if (job.has_optimize_job()) strip(v1::OptimizeJobResponse());
    if (job.has_recommend_layout()) strip(v1::RecommendLayoutResponse());
    return bytes;
  }

  const SwiftClock clock_{};
  MemoryProfileStore profiles_{{}, clock_};
  const InOrder executor_{};
  const PredictionHandler handler_{{.store = profiles_, .clock = clock_, .executor = executor_},
                                   ProfileLimits()};
};

// Six layers of which each has a forward and a backward computation and an all-reduce of its
// gradient, in four steps that vary.
std::string Layers() {
  std::vector<std::string> operations;
  std::vector<std::string> starts(4);
  std::vector<std::string> ends(4);
  const auto add = [&](const std::string& rest, int64_t begin, int64_t end) {
    operations.push_back("{" + rest + "}");
    for (int64_t step = 0; step < 4; ++step) {
      absl::StrAppend(&starts[step], starts[step].empty() ? "" : ",", begin * (100 + step));
      absl::StrAppend(&ends[step], ends[step].empty() ? "" : ",", end * (100 + step));
    }
    return operations.size() - 1;
  };
  std::string before;
  int64_t now = 0;
  const auto waits = [&] { return absl::StrCat(R"("waiting_for":[)", before, "]"); };
  for (int layer = 0; layer < 6; ++layer) {
    before = absl::StrCat(add(absl::StrCat(R"("name":"forward/)", layer,
                                           R"(","resource":"WORKER","pass":"FORWARD",)", waits()),
                              now, now + 20'000));
    now += 20'000;
  }
  for (int layer = 5; layer >= 0; --layer) {
    before = absl::StrCat(add(absl::StrCat(R"("name":"backward/)", layer,
                                           R"(","resource":"WORKER","pass":"BACKWARD",)", waits()),
                              now, now + 40'000));
    now += 40'000;
    add(absl::StrCat(R"("name":"gradient/)", layer,
                     R"(","resource":"COLLECTIVE","collective":"ALL_REDUCE","size_bytes":4000000,)",
                     waits()),
        now, now);
  }
  std::vector<std::string> steps;
  for (int step = 0; step < 4; ++step)
    steps.push_back(
        absl::StrCat(R"({"start_ns":[)", starts[step], R"(],"end_ns":[)", ends[step], "]}"));
  return absl::StrCat(R"({"batch_size":32,"platform":{"bandwidth_bytes_per_second":1e9},)",
                      R"("operations":[)", absl::StrJoin(operations, ","), R"(],"steps":[)",
                      absl::StrJoin(steps, ","), "]}");
}

std::string OfServers() {
  std::ifstream file(STEPCAST_SOURCE_DIR "/tests/data/testbed/alexnet_64.profile.json");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Every kind of computation, alone and by four replicas at once.
TEST_F(JobComputationTest, EveryComputationHasTheSameReplyHoweverManyReplicasTakePart) {
  const std::string servers = OfServers();
  const std::string layers = Layers();
  const std::string options = R"("options":{"steps_per_worker":60,"replications":3})";
  const auto asked = [&](const std::string& computation, const std::string& profile,
                         const std::string& rest) {
    return absl::StrCat("{\"", computation, R"(":{"inline_profile":)", profile,
                        rest.empty() ? "" : ",", rest, "}}");
  };
  const std::string pipeline =
      R"("scenario":{"workers":2,"pipeline":{"stages":2,"micro_batches":6}})";
  std::vector<std::string> jobs = {
      asked("predict_throughput", servers, R"("worker_counts":[1,2,3,4],)" + options),
      asked("predict_throughput", layers, R"("worker_counts":[1,2,3,4])"),
      asked("predict_throughput", layers, pipeline),
      asked("recommend_workers", servers, R"("constraints":{"max_workers":6},)" + options),
      asked("recommend_workers", layers, R"("constraints":{"max_workers":6})"),
      asked("optimize_order", servers, options),
      asked("compare_models", servers, options),
      asked("optimize_communication", layers, R"("worker_counts":[2,4])"),
      asked("diagnose_job", servers, options),
      asked("diagnose_job", layers, R"("scenario":{"workers":4})"),
      asked("diagnose_job", layers, pipeline),
      asked("optimize_job", layers, R"("scenario":{"workers":4})"),
      asked("recommend_layout", layers, R"("devices":4,"micro_batches":8)"),
      absl::StrCat(R"({"allocate_workers":{"capacity":{"workers":9},"jobs":[)",
                   R"({"id":"a","max_workers":4,"inline_profile":)", layers,
                   R"(},{"id":"b","max_workers":4,"inline_profile":)", servers, "}]}}"),
  };
  std::vector<std::string> many;
  for (int i = 0; i < 12; ++i)
    many.push_back(
        absl::StrCat(R"({"id":"j)", i, R"(","max_workers":3,"inline_profile":)", layers, "}"));
  jobs.push_back(absl::StrCat(R"({"allocate_workers":{"capacity":{"workers":30},"jobs":[)",
                              absl::StrJoin(many, ","), "]}}"));
  for (const std::string& text : jobs) {
    SCOPED_TRACE(text.substr(0, 30));
    v1::StartJobRequest job;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(text, &job).ok()) << text;
    const std::string alone = Compute(job, {});
    ShardBoard board;
    std::vector<std::string> replies(4);
    std::vector<std::thread> replicas;
    for (size_t i = 0; i < replies.size(); ++i) {
      replicas.emplace_back([&, i] {
        replies[i] = Compute(job, {.operation = "o", .shards = &board, .helps = i > 0});
      });
    }
    for (std::thread& replica : replicas) replica.join();
    for (const std::string& reply : replies) EXPECT_EQ(reply, alone);
    EXPECT_GT(board.loops(), 0u);
  }
}

}  // namespace
}  // namespace stepcast::server::operations_rpc_test
