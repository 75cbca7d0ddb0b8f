#include "core/communication/parameter_placement.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/core/engine/job_builder.h"

namespace stepcast::parameter_placement_test {
namespace {

using testing::JobBuilder;

TEST(ParameterPlacementTest, OnTheRecordedNumberOfServersAllStaysWhereItWas) {
  JobBuilder job;
  job.Download(10, {}, 1, "a");
  job.Download(10, {}, 1, "b");
  job.Compute(5, {0, 1});
  job.Upload(10, {2}, 0, "c");
  EXPECT_EQ(PlaceParameters(job.Build(), 2), (std::vector<int32_t>{1, 1, 0, 0}));
}

TEST(ParameterPlacementTest, EachParameterGoesToTheServerWithTheFewestBytesSoFar) {
  JobBuilder job;
  for (const int64_t bytes : {40, 10, 20, 15, 5})
    job.Download(bytes, {}, 0, "p" + std::to_string(bytes));
  // Loads: 40|0, 40|10, 40|30, 40|45, 45|45.
  EXPECT_EQ(PlaceParameters(job.Build(), 2), (std::vector<int32_t>{0, 1, 1, 1, 0}));
}

TEST(ParameterPlacementTest, WhatBelongsToAParameterGoesWithIt) {
  JobBuilder job;
  job.Download(30, {}, 0, "a");
  job.Download(20, {}, 0, "b");
  job.Compute(1, {0, 1});
  job.Upload(20, {2}, 0, "b");
  job.Update(1, {3}, 0, "b");
  job.Upload(30, {2}, 0, "a");
  EXPECT_EQ(PlaceParameters(job.Build(), 3), (std::vector<int32_t>{0, 1, 0, 1, 1, 0}));
}

TEST(ParameterPlacementTest, AParameterThatIsOnlyUploadedWeighsItsUploads) {
  JobBuilder job;
  job.Upload(30, {}, 0, "a");
  job.Download(10, {}, 0, "b");
  job.Download(10, {}, 0, "c");
  job.Download(10, {}, 0, "d");
  EXPECT_EQ(PlaceParameters(job.Build(), 2), (std::vector<int32_t>{0, 1, 1, 1}));
}

TEST(ParameterPlacementTest, MoreServersThanRecordedMeansFewerBytesEachAndOneMeansAll) {
  JobBuilder job;
  job.Download(10, {}, 1, "a");
  job.Download(10, {}, 0, "b");
  EXPECT_EQ(PlaceParameters(job.Build(), 1), (std::vector<int32_t>{0, 0}));
  EXPECT_EQ(PlaceParameters(job.Build(), 3), (std::vector<int32_t>{0, 1}));
}

// ICPE 2020, Fig. 23: VGG-11 on two servers is split into 407 and 100 MB (of 2^20 bytes), whole
// layers (weights and biases) in graph order.
TEST(ParameterPlacementTest, SplitsVgg11AsThePaperSawIt) {
  JobBuilder job;
  int layer = 0;
  const auto add = [&](int64_t inputs, int64_t outputs) {
    job.Download(4 * (inputs * outputs + outputs), {}, 0, std::to_string(layer++));
  };
  int64_t channels = 3;
  for (const int64_t outputs : {64, 128, 256, 256, 512, 512, 512, 512}) {
    add(9 * channels, outputs);
    channels = outputs;
  }
  add(int64_t{7} * 7 * 512, 4096);
  add(4096, 4096);
  add(4096, 1000);
  const Profile profile = job.Build();
  const std::vector<int32_t> servers = PlaceParameters(profile, 2);
  std::vector<int64_t> bytes(2, 0);
  for (size_t i = 0; i < servers.size(); ++i)
    bytes[static_cast<size_t>(servers[i])] += profile.operations()[i].size_bytes;
  EXPECT_NEAR(static_cast<double>(bytes[0]) / (1 << 20), 407, 0.5);
  EXPECT_NEAR(static_cast<double>(bytes[1]) / (1 << 20), 100, 0.5);
}

}  // namespace
}  // namespace stepcast::parameter_placement_test
