#include "server/report/step_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast::server::step_trace_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string Named(int worker, int thread, const std::string& name) {
  return absl::StrCat(R"({"ph":"M","pid":)", worker, R"(,"tid":)", thread,
                      R"(,"name":"thread_name","args":{"name":")", name, R"("}},)");
}

std::string StepEvent(int worker, int step, double start, double length) {
  return absl::StrCat(R"({"ph":"X","pid":)", worker, R"(,"tid":1,"cat":"step","name":"step",)",
                      R"("ts":)", start, R"(,"dur":)", length, R"(,"args":{"step":)", step, "}},");
}

std::string Ran(int worker, int thread, int step, const std::string& name, double start,
                double length) {
  return absl::StrCat(R"({"ph":"X","pid":)", worker, R"(,"tid":)", thread,
                      R"(,"cat":"transfer","name":")", name, R"(","ts":)", start, R"(,"dur":)",
                      length, R"(,"args":{"step":)", step, R"(,"bytes":64,"size_bytes":640}},)");
}

std::string TraceOf(std::string events) {
  if (!events.empty()) events.pop_back();
  return absl::StrCat(R"({"displayTimeUnit":"ns","traceEvents":[)", events, "]}");
}

// Two steps of the first worker, of 100 and of 40 microseconds, and one of the second worker.
std::string TwoSteps() {
  return TraceOf(absl::StrCat(Named(1, 1, "steps"), Named(1, 2, "down"), Named(1, 3, "compute"),
                              Named(2, 2, "other"), StepEvent(1, 0, 0, 100),
                              Ran(1, 2, 0, "long", 0, 100), StepEvent(2, 0, 0, 40),
                              Ran(2, 2, 0, "not ours", 0, 40), StepEvent(1, 1, 100, 40),
                              Ran(1, 3, 1, R"(b\"}{\\)", 120.5, 19.5), Ran(1, 2, 1, "a", 100, 20)));
}

TEST(StepTraceTest, ShowsTheStepOfTheFirstWorkerThatIsNearest) {
  StepTrace trace;
  ASSERT_TRUE(trace.Take(TwoSteps()).ok());
  const auto step = trace.StepNearest(45e-6);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->step, 1);
  EXPECT_EQ(step->steps_found, 2);
  EXPECT_EQ(step->length_ns, 40'000);
  EXPECT_THAT(step->lanes, ElementsAre("down", "compute"));
  EXPECT_THAT(step->names, ElementsAre("a", "b\"}{\\"));
  ASSERT_THAT(step->operations, SizeIs(2));
  EXPECT_EQ(step->operations[0].start_ns, 0);
  EXPECT_EQ(step->operations[0].size_bytes, 64);
  EXPECT_EQ(step->operations[1].lane, 1);
  EXPECT_EQ(step->operations[1].start_ns, 20'500);
  EXPECT_EQ(step->operations[1].length_ns, 19'500);
  EXPECT_EQ(trace.StepNearest(1)->step, 0);
}

// A pipeline's computations are told by their part; arrows are passed over, and what began before
// the step does with it.
TEST(StepTraceTest, APipelinesPartsAreKindsAndArrowsAreNone) {
  const std::string device = Named(1, 1, "steps") + Named(1, 2, "device 0");
  const std::string arrow =
      R"({"ph":"s","pid":1,"tid":2,"cat":"transfer","name":"transfer","id":7,"ts":100},)";
  const std::string forward =
      R"({"ph":"X","pid":1,"tid":2,"cat":"computation","name":"forward 0","ts":95,"dur":15,)"
      R"("args":{"step":1,"part":"forward"}},)";
  StepTrace trace;
  ASSERT_TRUE(trace.Take(TraceOf(device + StepEvent(1, 1, 100, 40) + arrow + forward)).ok());
  const auto step = trace.StepNearest(40e-6);
  ASSERT_TRUE(step.ok()) << step.status();
  ASSERT_THAT(step->operations, SizeIs(1));
  EXPECT_EQ(step->kinds[0], "forward");
  EXPECT_EQ(step->operations[0].start_ns, 0);
  EXPECT_EQ(step->operations[0].length_ns, 10'000);
}

TEST(StepTraceTest, PiecesMayEndAnywhere) {
  const std::string text = TwoSteps();
  for (const size_t size : {size_t{1}, size_t{2}, size_t{7}}) {
    StepTrace trace;
    for (size_t at = 0; at < text.size(); at += size)
      ASSERT_TRUE(trace.Take(std::string_view(text).substr(at, size)).ok());
    const auto step = trace.StepNearest(40e-6);
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_THAT(step->names, ElementsAre("a", "b\"}{\\"));
  }
}

TEST(StepTraceTest, WhatIsNoTraceIsRefused) {
  StepTrace no_json;
  EXPECT_EQ(DetailsOf(no_json.Take(R"({"traceEvents":[{"pid":1,}]})")).reason, "TRACE_UNREADABLE");
  StepTrace twice;
  EXPECT_EQ(DetailsOf(twice.Take("}")).reason, "TRACE_UNREADABLE");
  StepTrace endless;
  EXPECT_EQ(DetailsOf(endless.Take("{[{\"" + std::string(70'000, 'x'))).reason, "TRACE_UNREADABLE");
  StepTrace broken;
  const std::string text = TwoSteps();
  ASSERT_TRUE(broken.Take(std::string_view(text).substr(0, text.size() - 3)).ok());
  EXPECT_EQ(DetailsOf(broken.StepNearest(1).status()).reason, "TRACE_UNREADABLE");
  StepTrace empty;
  ASSERT_TRUE(empty.Take(TraceOf("")).ok());
  EXPECT_EQ(DetailsOf(empty.StepNearest(1).status()).reason, "NO_STEP");
}

TEST(StepTraceTest, BeyondItsLimitItSaysHowManyAreLeftOut) {
  std::string events = Named(1, 2, "lane") + StepEvent(1, 0, 0, 1e6);
  for (size_t i = 0; i < kMaxShownOperations + 3; ++i)
    events += Ran(1, 2, 0, "x", static_cast<double>(i), 1);
  StepTrace trace;
  ASSERT_TRUE(trace.Take(TraceOf(events)).ok());
  const auto step = trace.StepNearest(1);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_THAT(step->operations, SizeIs(kMaxShownOperations));
  EXPECT_EQ(step->operations_left_out, 3);
  EXPECT_THAT(step->names, ElementsAre("x"));
}

}  // namespace
}  // namespace stepcast::server::step_trace_test
