#include "core/engine/lane_queues.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/engine/program.h"
#include "core/engine/simulation.h"
#include "tests/core/engine/job_builder.h"

namespace stepcast::lane_queues_test {
namespace {

constexpr int32_t kNone = Ranking::kUnranked;

// Streams A, B, ... on one connection, with a window of 3 bytes.
JobGraph Streams(const std::vector<int64_t>& sizes) {
  testing::JobBuilder job;
  for (const int64_t size : sizes) job.Download(size);
  const Profile profile = job.Build();
  return testing::JobFor(
      profile, testing::Resolved(profile, {.communication = ParameterServersDraft{
                                               .multiplexing = WindowDraft{.bytes = 3}}}));
}

// Serves until nothing waits; a stream's first service is its letter, its second the small one.
std::string Serve(const JobGraph& job, LaneQueues& queues, int32_t worker = 0) {
  std::string order;
  const LaneIndex lane = job.lanes().FirstOf(ServerLanes::kDownlinks);
  while (const Chunk chunk = queues.Pop(worker, lane)) {
    order += static_cast<char>((chunk.service > 0 ? 'a' : 'A') + chunk.op);
    if (chunk.service + 1 < job.program(0).work(chunk.op).services)
      queues.PushStopped(worker, lane, {.op = chunk.op, .service = chunk.service + 1});
  }
  return order;
}

void PushAll(const JobGraph& job, LaneQueues& queues, const std::vector<int32_t>& ranks) {
  for (OpIndex op = 0; op < job.program(0).size(); ++op)
    queues.Push(0, job.program(0).lane(op), op, ranks[static_cast<size_t>(op)]);
}

// ICPE 2020, Fig. 12: each may send up to the window, those with more to send go to the back and
// are then sent to the end.
TEST(LaneQueuesTest, SecondServicesFollowAllFirstOnesInTheOrderOfStopping) {
  const JobGraph job = Streams({5, 2, 7, 3, 4});
  LaneQueues queues(job, false);
  PushAll(job, queues, {0, 0, 0, 0, 0});
  EXPECT_EQ(Serve(job, queues), "ABCDEace");
}

TEST(LaneQueuesTest, AStoppedStreamGoesBehindWhatCameMeanwhile) {
  const JobGraph job = Streams({5, 5, 2});
  LaneQueues queues(job, false);
  const LaneIndex lane = job.lanes().FirstOf(ServerLanes::kDownlinks);
  queues.Push(0, lane, 0, kNone);
  EXPECT_EQ(queues.Pop(0, lane).op, 0);
  queues.Push(0, lane, 1, kNone);
  queues.PushStopped(0, lane, {.op = 0, .service = 1});
  queues.Push(0, lane, 2, kNone);
  EXPECT_EQ(Serve(job, queues), "BaCb");
}

TEST(LaneQueuesTest, TheLowestRankGoesFirstAndTiesGoByArrival) {
  const JobGraph job = Streams({1, 1, 1, 1});
  LaneQueues queues(job, true);
  const LaneIndex lane = job.lanes().FirstOf(ServerLanes::kDownlinks);
  queues.Push(0, lane, 3, 5);
  queues.Push(0, lane, 0, 5);
  queues.Push(0, lane, 2, 1);
  queues.Push(0, lane, 1, 5);
  EXPECT_EQ(Serve(job, queues), "CDAB");
}

TEST(LaneQueuesTest, UnrankedAndStoppedShareOneLineBehindTheRanked) {
  const JobGraph job = Streams({5, 1, 5, 1});
  LaneQueues queues(job, true);
  PushAll(job, queues, {2, kNone, 1, kNone});
  // C and A are ranked; B and D were in line before either was stopped.
  EXPECT_EQ(Serve(job, queues), "CABDca");
}

TEST(LaneQueuesTest, AStoppedStreamWaitsForARankedOneThatCameLater) {
  const JobGraph job = Streams({5, 1});
  LaneQueues queues(job, true);
  const LaneIndex lane = job.lanes().FirstOf(ServerLanes::kDownlinks);
  queues.Push(0, lane, 0, 0);
  EXPECT_EQ(queues.Pop(0, lane).op, 0);
  queues.PushStopped(0, lane, {.op = 0, .service = 1});
  queues.Push(0, lane, 1, 7);
  EXPECT_EQ(Serve(job, queues), "Ba");
}

TEST(LaneQueuesTest, RanksDoNotReorderComputations) {
  testing::JobBuilder builder;
  builder.Compute(1);
  builder.Compute(1);
  const Profile profile = builder.Build();
  const JobGraph job = testing::JobFor(profile, testing::Resolved(profile));
  LaneQueues queues(job, true);
  queues.Push(0, ServerLanes::kWorker, 0, 9);
  queues.Push(0, ServerLanes::kWorker, 1, 1);
  EXPECT_EQ(queues.Pop(0, ServerLanes::kWorker).op, 0);
  EXPECT_EQ(queues.Pop(0, ServerLanes::kWorker).op, 1);
  EXPECT_FALSE(queues.Pop(0, ServerLanes::kWorker));
}

TEST(LaneQueuesTest, WorkersHaveQueuesOfTheirOwn) {
  JobGraph job = Streams({1, 1});
  job.program_of_worker = {0, 0};
  LaneQueues queues(job, false);
  const LaneIndex lane = job.lanes().FirstOf(ServerLanes::kDownlinks);
  queues.Push(0, lane, 0, kNone);
  queues.Push(1, lane, 1, kNone);
  EXPECT_EQ(Serve(job, queues, 1), "B");
  EXPECT_EQ(Serve(job, queues, 0), "A");
}

TEST(LaneQueuesTest, AQueueServesStepAfterStep) {
  const JobGraph job = Streams({5, 2, 7});
  LaneQueues queues(job, false);
  for (int step = 0; step < 5; ++step) {
    PushAll(job, queues, {0, 0, 0});
    EXPECT_EQ(Serve(job, queues), "ABCac") << "step " << step;
  }
}

}  // namespace
}  // namespace stepcast::lane_queues_test
