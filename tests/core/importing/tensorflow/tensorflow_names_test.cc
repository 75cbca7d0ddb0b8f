#include "core/importing/tensorflow/tensorflow_names.h"

#include <gtest/gtest.h>

#include <string>

namespace stepcast::tensorflow_names_test {
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

}  // namespace
}  // namespace stepcast::tensorflow_names_test
