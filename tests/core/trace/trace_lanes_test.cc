#include "core/trace/trace_lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/engine/job_builder.h"

namespace stepcast::trace_lanes_test {
namespace {

using ::testing::ElementsAre;
using testing::JobBuilder;

std::vector<std::string> NamesOf(const JobBuilder& job) {
  const Profile profile = job.Build();
  const TraceLanes lanes(BuildProgram(profile, testing::Resolved(profile)));
  std::vector<std::string> names;
  for (const TraceLanes::Lane& lane : lanes.shown()) {
    names.push_back(lane.name);
    EXPECT_EQ(lane.thread_id, static_cast<int32_t>(names.size()));
  }
  return names;
}

TEST(TraceLanesTest, StandInTheOrderOfUse) {
  JobBuilder job;
  job.Update(1, {job.Upload(1, {job.Compute(1, {job.Download(1)})})});
  EXPECT_THAT(NamesOf(job),
              ElementsAre("steps", "downlink", "worker", "uplink", "parameter server"));
}

TEST(TraceLanesTest, SayWhichServerWhereThereAreSeveralAndLeaveOutWhatRunsNothing) {
  JobBuilder job;
  const int32_t last = job.Compute(1, {job.Download(1, {}, 0), job.Download(1, {}, 1)});
  job.Update(1, {job.Upload(1, {last}, 1)}, 1);
  EXPECT_THAT(NamesOf(job), ElementsAre("steps", "downlink of server 0", "downlink of server 1",
                                        "worker", "uplink of server 1", "parameter server 1"));
}

}  // namespace
}  // namespace stepcast::trace_lanes_test
