#include "core/importing/tensorflow/recorded_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "tests/core/importing/random_training.h"

namespace stepcast::recorded_rows_test {
namespace {

TEST(TensorflowDeviceTest, BothFormsOfNamesSayJobTaskAndRole) {
  for (const char* name :
       {"/job:ps/replica:0/task:3/device:CPU:0", "/job:ps/replica:0/task:3/cpu:0"}) {
    const TensorflowDevice device = ParseTensorflowDevice(name);
    EXPECT_EQ(device.role, DeviceRole::kServer) << name;
    EXPECT_EQ(device.task, 3) << name;
    EXPECT_EQ(device.rows, DeviceRows::kOperations) << name;
  }
  for (const char* job : {"worker", "chief", "master", "localhost"}) {
    EXPECT_EQ(
        ParseTensorflowDevice(std::string("/job:") + job + "/replica:0/task:0/device:GPU:0").role,
        DeviceRole::kWorker)
        << job;
  }
  EXPECT_EQ(ParseTensorflowDevice("/job:evaluator/task:0").role, DeviceRole::kOther);
  EXPECT_EQ(ParseTensorflowDevice("").role, DeviceRole::kWorker);
}

TEST(TensorflowDeviceTest, StreamsAndCopiesAreNoOperations) {
  EXPECT_EQ(ParseTensorflowDevice("/gpu:0/stream:all").rows, DeviceRows::kKernels);
  EXPECT_EQ(ParseTensorflowDevice("/job:worker/replica:0/task:0/device:GPU:0/stream:all").rows,
            DeviceRows::kKernels);
  EXPECT_EQ(ParseTensorflowDevice("/device:GPU:0/stream:14").rows, DeviceRows::kCopies);
  EXPECT_EQ(ParseTensorflowDevice("/gpu:0/memcpy").rows, DeviceRows::kCopies);
}

TEST(TensorflowDeviceTest, ATaskThatIsNoNumberIsSaidToBeNone) {
  for (const char* task : {"x", "-1", "99999999999999999999"})
    EXPECT_EQ(ParseTensorflowDevice(std::string("/job:ps/task:") + task).task, -1) << task;
}

constexpr char kSource[] = "/job:ps/replica:0/task:0/device:CPU:0";
constexpr char kDestination[] = "/job:worker/replica:0/task:0/device:GPU:0";

std::string Label(const std::string& before) {
  return before + "edge_12_conv1/weights/read from " + kSource + " to " + kDestination;
}

TEST(TransferLabelTest, NamesTheTensorAndBothDevicesWhateverIsInBrackets) {
  for (const char* before :
       {"", "[1.5MB] ", "[ 1.5MB] [rdma] ", "[1.5MB] [812.400000Mb/s] ", "[123B] [1.2Gb/s] "}) {
    const std::string text = Label(before);
    const std::optional<TransferLabel> label = ParseTransferLabel(text);
    ASSERT_TRUE(label) << text;
    EXPECT_EQ(label->tensor, "edge_12_conv1/weights/read");
    EXPECT_EQ(label->source, kSource);
    EXPECT_EQ(label->destination, kDestination);
  }
}

TEST(TransferLabelTest, SizesAreExactInBytesAndRoundedInMebibytes) {
  EXPECT_EQ(ParseTransferLabel(Label("[123B] "))->bytes, 123);
  EXPECT_FALSE(ParseTransferLabel(Label("[123B] "))->rounded);
  EXPECT_EQ(ParseTransferLabel(Label("[1.5MB] [8B] "))->bytes, 1'572'864);
  EXPECT_TRUE(ParseTransferLabel(Label("[1.5MB] "))->rounded);
  for (const char* none : {"", "[rdma] ", "[-1B] ", "[nanB] ", "[B] ", "[1e300MB] "})
    EXPECT_FALSE(ParseTransferLabel(Label(none))->bytes) << none;
}

TEST(TransferLabelTest, WhatIsOfAnotherFormIsNone) {
  for (const char* text : {"", "x = MatMul(a, b)", "[1B x from a to b", "x from a", "x to b",
                           " from a to b", "x from  to b", "[1B]"}) {
    EXPECT_FALSE(ParseTransferLabel(text)) << text;
  }
}

TEST(TransferLabelTest, TheSenderIsBehindTheNumberOfTheEdge) {
  EXPECT_EQ(SenderOf("edge_12_conv1/weights/read"), "conv1/weights/read");
  for (const char* other : {"conv1", "edge_", "edge_12", "edge_12_", "edge__x", "edge_x_y"})
    EXPECT_EQ(SenderOf(other), other);
}

constexpr char kCpu[] = "/job:worker/replica:0/task:0/device:CPU:0";
constexpr char kGpu[] = "/job:worker/replica:0/task:0/device:GPU:0";
constexpr char kStreams[] = "/device:GPU:0/stream:all";

class RecordedRowsTest : public ::testing::Test {
 protected:
  void Add(const char* name, const char* device, int64_t start, int64_t end) {
    const int32_t node = rows_.Node(name, rows_.Device(device).value()).value();
    ASSERT_TRUE(rows_.AddRow(node, start, end).ok());
  }
  std::pair<int64_t, int64_t> TimesOf(size_t node) const {
    return {rows_.steps().back().start_ns[node], rows_.steps().back().end_ns[node]};
  }

  ProfileLimits limits_;
  RecordedRows rows_{limits_};
};

TEST_F(RecordedRowsTest, ARowThatIsThereTwiceCountsOnceAndRunsOfALoopAddUp) {
  ASSERT_TRUE(rows_.BeginStep().ok());
  Add("once", kCpu, 10, 20);
  Add("loop", kCpu, 40, 45);
  Add("once", kCpu, 10, 20);
  Add("loop", kCpu, 30, 33);
  ASSERT_TRUE(rows_.EndStep().ok());
  EXPECT_EQ(TimesOf(0), std::make_pair(int64_t{10}, int64_t{20}));
  EXPECT_EQ(TimesOf(1), std::make_pair(int64_t{30}, int64_t{38}));
  EXPECT_EQ(rows_.repairs().duplicates, 1);
  EXPECT_EQ(rows_.repairs().repeated, 1);
}

TEST_F(RecordedRowsTest, KernelsReplaceTheTimesOfWhatLaunchedThem) {
  ASSERT_TRUE(rows_.BeginStep().ok());
  // Before the launching row, and of two kernels at once.
  Add("gemm", kStreams, 100, 160);
  Add("gemm", kStreams, 110, 150);
  Add("gemm", kGpu, 50, 55);
  Add("nobody", kStreams, 1, 2);
  ASSERT_TRUE(rows_.EndStep().ok());
  const auto gemm = static_cast<size_t>(rows_.Node("gemm", rows_.Device(kGpu).value()).value());
  EXPECT_EQ(TimesOf(gemm), std::make_pair(int64_t{100}, int64_t{160}));
  EXPECT_EQ(rows_.repairs().kernels, 2);
  EXPECT_EQ(rows_.repairs().loose_kernels, 1);
}

TEST_F(RecordedRowsTest, ARowThatEndsBeforeItStartsLastsNoTime) {
  ASSERT_TRUE(rows_.BeginStep().ok());
  Add("back", kCpu, 20, 10);
  ASSERT_TRUE(rows_.EndStep().ok());
  EXPECT_EQ(TimesOf(0), std::make_pair(int64_t{20}, int64_t{20}));
  EXPECT_EQ(rows_.repairs().negative, 1);
}

TEST_F(RecordedRowsTest, TimesThatAreNoneAreRefused) {
  ASSERT_TRUE(rows_.BeginStep().ok());
  const int32_t node = rows_.Node("x", rows_.Device(kCpu).value()).value();
  for (const auto& [start, end] : {std::pair<int64_t, int64_t>{-1, 5},
                                   {0, limits_.max_step_ns + 1},
                                   {limits_.max_step_ns + 1, 0},
                                   {INT64_MAX, INT64_MAX}}) {
    EXPECT_NE(
        testing::Told(rows_.AddRow(node, start, end)).find("recording: step 1: \"x\" runs from"),
        std::string::npos)
        << start;
  }
}

// Against a map from names to runs: whatever the order of the rows, the same times.
TEST_F(RecordedRowsTest, TheOrderOfRowsDoesNotMatter) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random({seed});
    struct Run {
      std::string name;
      int64_t start;
      int64_t end;
    };
    std::vector<Run> runs;
    std::map<std::string, std::vector<std::pair<int64_t, int64_t>>> by_name;
    for (uint64_t i = 1 + random.Below(30); i > 0; --i) {
      const auto start = static_cast<int64_t>(random.Below(100));
      const Run run{.name = "n" + std::to_string(random.Below(8)),
                    .start = start,
                    .end = start + static_cast<int64_t>(random.Below(20))};
      runs.push_back(run);
      by_name[run.name].emplace_back(run.start, run.end);
    }
    RecordedRows rows(limits_);
    ASSERT_TRUE(rows.BeginStep().ok());
    const int32_t device = rows.Device(kCpu).value();
    for (size_t i = runs.size(); i > 0; --i) {
      std::swap(runs[i - 1], runs[random.Below(i)]);
      ASSERT_TRUE(rows.AddRow(rows.Node(runs[i - 1].name, device).value(), runs[i - 1].start,
                              runs[i - 1].end)
                      .ok());
    }
    ASSERT_TRUE(rows.EndStep().ok());
    for (auto& [name, times] : by_name) {
      std::sort(times.begin(), times.end());
      times.erase(std::unique(times.begin(), times.end()), times.end());
      int64_t length = 0;
      int64_t last = 0;
      for (const auto& [start, end] : times) {
        length += end - start;
        last = std::max(last, end);
      }
      const auto node = static_cast<size_t>(rows.Node(name, device).value());
      EXPECT_EQ(rows.steps()[0].start_ns[node], times.front().first) << name << " seed " << seed;
      EXPECT_EQ(rows.steps()[0].end_ns[node], std::min(times.front().first + length, last))
          << name << " seed " << seed;
    }
  }
}

}  // namespace
}  // namespace stepcast::recorded_rows_test
