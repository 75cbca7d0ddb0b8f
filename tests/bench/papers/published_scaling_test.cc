#include "tests/bench/papers/published_scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace stepcast::bench::published_scaling_test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string Pollux(const std::string& placements, const std::string& scalability = "") {
  const std::string of_model = R"({"placements": {"1": [[20, 0.25, 0.001]])" + placements +
                               R"(}, "scalability_nodes_x_gpus": {)" + scalability + "}}";
  return R"({"models": {"imagenet": )" + of_model + R"(, "cifar10": )" + of_model + "}}";
}

TEST(PublishedScalingTest, PolluxsRowsHaveTheStepOfOneWorkerWithTheSameBatch) {
  const PublishedSet set =
      ReadPollux(Pollux(R"(, "22": [[20, 0.5, 0.2], [28, 0.6, 0.2]], "12": [[20, 1, 1]])",
                        R"("3x6": [[20, 0.75, 0.2]], "4x6": [[20, 1, 1]])"));
  // A batch that one worker was not measured with, and nodes that are unlike, are left out.
  ASSERT_THAT(set.rows, SizeIs(4));
  const PublishedRow& first = set.rows[0];
  EXPECT_EQ(first.model, "resnet50");
  EXPECT_EQ(first.nodes, 2);
  EXPECT_EQ(first.workers_per_node, 2);
  EXPECT_EQ(first.workers(), 4);
  EXPECT_EQ(first.batch_size, 20);
  EXPECT_EQ(first.one_worker_seconds, 0.25);
  EXPECT_EQ(first.step_seconds, 0.5);
  EXPECT_EQ(first.examples_per_second(), 160);
  EXPECT_EQ(set.rows[1].nodes, 3);
  EXPECT_EQ(set.rows[1].workers_per_node, 2);
  EXPECT_EQ(set.rows[2].model, "resnet18_cifar");
}

TEST(PublishedScalingTest, GavelsRatesAreOfAllWorkersTogether) {
  const std::string batches =
      R"({"16": {"1": [10, 11], "2": [16, 16], "4": [0, 1], "8": [40, 40]}})";
  const std::string models = R"({"ResNet-18": )" + batches + R"(, "ResNet-50": {}, "LM": {}})";
  const PublishedSet set =
      ReadGavel(R"({"data": {"p100": )" + models + R"(, "p100_unconsolidated": )" + models + "}}");
  // Two on one server; two and eight on as many. No rate is no row, eight packed ones lie nobody
  // knows how.
  ASSERT_THAT(set.rows, SizeIs(3));
  EXPECT_EQ(set.rows[0].nodes, 1);
  EXPECT_EQ(set.rows[0].workers_per_node, 2);
  EXPECT_EQ(set.rows[0].one_worker_seconds, 0.1);
  EXPECT_EQ(set.rows[0].step_seconds, 0.125);
  EXPECT_EQ(set.rows[2].nodes, 8);
  EXPECT_EQ(set.rows[2].workers_per_node, 1);
  EXPECT_EQ(set.rows[2].step_seconds, 0.2);
}

TEST(PublishedScalingTest, DlPerfsTablesArePyTorchsAndOfOneJobEach) {
  const PublishedSet set = ReadDlPerf(
      R"({"tables": [
        {"dir": "MindSpore/resnet50v1.5", "title": "x", "rows": [[1, 1, 128, 370], [1, 2, 128, 711]]},
        {"dir": "NVIDIADeepLearningExamples/PyTorch/resnet50v1.5", "title": "AMP", "rows":
          [[1, 1, 256, 800], [2, 16, 256, 6400]]},
        {"dir": "PyTorch/resnet50v1.5", "title": "a, worker=8 / b, worker=48", "rows":
          [[1, 1, 128, 320], [1, 4, 128, 640]]}]})");
  ASSERT_THAT(set.rows, SizeIs(2));
  EXPECT_EQ(set.rows[0].job, "NVIDIADeepLearningExamples, mixed precision");
  EXPECT_EQ(set.rows[0].nodes, 2);
  EXPECT_EQ(set.rows[0].workers_per_node, 8);
  EXPECT_EQ(set.rows[0].one_worker_seconds, 0.32);
  EXPECT_EQ(set.rows[0].step_seconds, 0.64);
  EXPECT_EQ(set.rows[1].job, "PyTorch, float32, 48 loaders");
}

std::string Complaint(PublishedSet (*read)(std::string_view), const std::string& text) {
  try {
    read(text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(PublishedScalingTest, WhatIsNotAsPublishedIsSaidSo) {
  EXPECT_THAT(Complaint(ReadPollux, "{"), HasSubstr("not what Pollux, T4 published: "));
  EXPECT_THAT(Complaint(ReadPollux, "[]"), HasSubstr("not what Pollux, T4 published: "));
  EXPECT_THAT(Complaint(ReadPollux, Pollux("")), HasSubstr("has no rows"));
  EXPECT_THAT(Complaint(ReadPollux, Pollux(R"(, "2x": [[20, 1, 1]])")), HasSubstr("not what"));
  EXPECT_THAT(Complaint(ReadPollux, Pollux(R"(, "22": [[20, 0, 1]])")), HasSubstr("is none"));
  EXPECT_THAT(Complaint(ReadPollux, Pollux("", R"("24": [[20, 1, 1]])")),
              HasSubstr("24 is no placement"));
  EXPECT_THAT(Complaint(ReadPollux, Pollux("", R"("0x4": [[20, 1, 1]])")),
              HasSubstr("not a number above 0"));
  EXPECT_THAT(Complaint(ReadGavel, R"({"data": {}})"), HasSubstr("not what Gavel"));
  EXPECT_THAT(Complaint(ReadDlPerf, R"({"tables": []})"), HasSubstr("has no rows"));
  EXPECT_THAT(Complaint(ReadDlPerf,
                        R"({"tables": [{"dir": "PyTorch", "title": "", "rows": [[1, 4, 8, 9]]}]})"),
              HasSubstr("is none"))
      << "no row of one worker";
}

}  // namespace
}  // namespace stepcast::bench::published_scaling_test
