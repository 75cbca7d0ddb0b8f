#include "core/importing/tensorflow/recorded_operations.h"

#include <gtest/gtest.h>

#include <vector>

namespace stepcast::recorded_operations_test {
namespace {

// A server's read, its download, a computation, its upload, an update.
std::vector<Operation> Operations(bool read = true) {
  return {{.name = "read", .resource = read ? Resource::kParameterServer : Resource::kWorker},
          {.name = "recv", .resource = Resource::kDownlink, .size_bytes = 100, .waiting_for = {0}},
          {.name = "compute", .resource = Resource::kWorker, .waiting_for = {1}},
          {.name = "send", .resource = Resource::kUplink, .size_bytes = 100, .waiting_for = {2}},
          {.name = "update", .resource = Resource::kParameterServer, .waiting_for = {3}}};
}

RecordedStep Step(int64_t ahead_ns, int64_t from = 1'000'000) {
  RecordedStep step{.start_ns = {from, from + 10, from + 30, from + 50, from + 80},
                    .end_ns = {from + 10, from + 30, from + 50, from + 80, from + 90}};
  for (const size_t on_server : {0, 3, 4}) {
    step.start_ns[on_server] += ahead_ns;
    step.end_ns[on_server] += ahead_ns;
  }
  return step;
}

TEST(StepClockTest, ClocksThatAgreeAreLeftAlone) {
  const std::vector<Operation> operations = Operations();
  StepClock clock(operations, 1, 1e9);
  RecordedStep step = Step(0);
  clock.Repair(step);
  EXPECT_EQ(step, Step(0, 0));
  EXPECT_EQ(clock.repairs().moved_clocks, 0);
  EXPECT_EQ(clock.repairs().clamped, 0);
}

TEST(StepClockTest, AClockAheadIsMovedUntilNothingIsReceivedBeforeItWasSent) {
  const std::vector<Operation> operations = Operations();
  StepClock clock(operations, 1, 1e9);
  RecordedStep step = Step(5'000'000);
  clock.Repair(step);
  EXPECT_EQ(clock.repairs().moved_clocks, 1);
  EXPECT_EQ(clock.repairs().most_moved_ns, -4'999'980);
  // The read ends when the download does, at 20 from the worker's first row, the download: what the
  // clocks hide is at most how long that took.
  EXPECT_EQ(step.end_ns[0], step.end_ns[1]);
  EXPECT_EQ(step.end_ns[2] - step.start_ns[2], 20);
  EXPECT_EQ(step.end_ns[4] - step.start_ns[4], 10);
  EXPECT_LE(step.end_ns[4], 100);
}

TEST(StepClockTest, AClockBehindIsMovedUntilNoUploadIsThereBeforeItWasMade) {
  const std::vector<Operation> operations = Operations();
  StepClock clock(operations, 1, 1e9);
  RecordedStep step = Step(-5'000'000);
  clock.Repair(step);
  EXPECT_EQ(clock.repairs().most_moved_ns, 4'999'970);
  EXPECT_EQ(step.end_ns[3], step.end_ns[2]);
  EXPECT_GE(step.start_ns[0], 0);
}

TEST(StepClockTest, AServerThatMadeNothingItSentIsJudgedByItsUploads) {
  const std::vector<Operation> operations = Operations(/*read=*/false);
  StepClock clock(operations, 1, 1e9);
  RecordedStep step = Step(5'000'000);
  step.start_ns[0] -= 5'000'000;
  step.end_ns[0] -= 5'000'000;
  clock.Repair(step);
  EXPECT_EQ(clock.repairs().moved_clocks, 1);
  EXPECT_LE(step.end_ns[4], 100);
}

TEST(StepClockTest, AStepWithNothingOfTheWorkersBeginsOnTheServersClock) {
  const std::vector<Operation> operations = {
      {.name = "one", .resource = Resource::kParameterServer},
      {.name = "other", .resource = Resource::kParameterServer, .waiting_for = {0}}};
  constexpr int64_t kNow = 1'600'000'000'000'000'000;
  for (const KeptReadings kept : {KeptReadings::kNone, KeptReadings::kEnds}) {
    StepClock clock(operations, 1, 1e9, kept);
    RecordedStep step{.start_ns = {kNow, kNow + 20}, .end_ns = {kNow + 20, kNow + 50}};
    const RepairedStep repaired = clock.Repair(step);
    EXPECT_EQ(repaired.begin_ns, kNow);
    EXPECT_EQ(repaired.shifts_ns, std::vector<int64_t>{0});
    EXPECT_EQ(step, (RecordedStep{.start_ns = {0, 20}, .end_ns = {20, 50}}));
  }
}

TEST(StepClockTest, EachServerHasAClock) {
  std::vector<Operation> operations = Operations();
  const std::vector<Operation> more = Operations();
  for (Operation operation : more) {
    operation.parameter_server = 1;
    for (int32_t& before : operation.waiting_for) before += 5;
    operations.push_back(operation);
  }
  StepClock clock(operations, 2, 1e9);
  RecordedStep step = Step(5'000'000);
  const RecordedStep other = Step(0);
  step.start_ns.insert(step.start_ns.end(), other.start_ns.begin(), other.start_ns.end());
  step.end_ns.insert(step.end_ns.end(), other.end_ns.begin(), other.end_ns.end());
  clock.Repair(step);
  EXPECT_EQ(clock.repairs().moved_clocks, 1);
  EXPECT_EQ(step.end_ns[9] - step.start_ns[5], 90);
}

}  // namespace
}  // namespace stepcast::recorded_operations_test
