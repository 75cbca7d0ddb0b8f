#include "core/importing/tensorflow_device.h"

#include <gtest/gtest.h>

namespace stepcast::tensorflow_device_test {
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

}  // namespace
}  // namespace stepcast::tensorflow_device_test
