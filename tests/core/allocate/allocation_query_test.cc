#include "core/allocate/allocation_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/error.h"

namespace stepcast::allocation_query_test {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> FaultyFields(const AllocationDraft& draft) {
  std::vector<std::string> fields;
  const absl::Status status = ResolveAllocation(draft).status();
  EXPECT_EQ(DetailsOf(status).reason, "REQUEST_INVALID");
  for (const Fault& fault : DetailsOf(status).faults) fields.push_back(fault.field);
  return fields;
}

TEST(AllocationQueryTest, TakesWhatIsSound) {
  const absl::StatusOr<AllocationQuery> query = ResolveAllocation(
      {.job_ids = {"a", "b"}, .capacity = ClusterCapacity{.workers = 65'536, .servers = 1}});
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_EQ(query->capacity.workers, 65'536);
  EXPECT_EQ(query->objective, AllocationObjective::kTotalUtility);
}

TEST(AllocationQueryTest, EveryFaultIsNamed) {
  EXPECT_THAT(FaultyFields({}), ElementsAre("jobs", "capacity"));
  EXPECT_THAT(FaultyFields({.job_ids = {"a", "", std::string(129, 'x'), "a"},
                            .capacity = ClusterCapacity{.workers = 0, .servers = 4097},
                            .options = {.replications = 0}}),
              ElementsAre("jobs[1].id", "jobs[2].id", "jobs[3].id", "capacity.workers",
                          "capacity.parameter_servers", "options.replications"));
  EXPECT_THAT(FaultyFields({.job_ids = std::vector<std::string>(257, "a"),
                            .capacity = ClusterCapacity{.workers = 1}}),
              ElementsAre("jobs"));
}

}  // namespace
}  // namespace stepcast::allocation_query_test
