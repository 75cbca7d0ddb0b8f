#include "server/convert/trace_convert.h"

#include <gtest/gtest.h>

namespace stepcast::server::trace_convert_test {
namespace {

TEST(TraceConvertTest, GenerateTraceTakesItsScenarioAndOptions) {
  v1::GenerateTraceRequest wire;
  wire.set_profile("profiles/a");
  wire.mutable_scenario()->set_workers(3);
  wire.mutable_options()->set_steps_per_worker(2);
  wire.mutable_options()->set_start(static_cast<v1::SimulationOptions::Start>(9));
  const GenerateTraceCall call = FromWire(wire);
  EXPECT_EQ(std::get<std::string>(call.source), "profiles/a");
  EXPECT_EQ(call.draft.scenario.workers, 3);
  EXPECT_EQ(call.draft.options.steps_per_worker, 2);
  ASSERT_EQ(call.faults.size(), 1U);
  EXPECT_EQ(call.faults[0].field, "options.start");
}

}  // namespace
}  // namespace stepcast::server::trace_convert_test
