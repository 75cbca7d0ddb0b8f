#include <gtest/gtest.h>

#include "client/cli/texts/answer_texts.h"

#include "tests/client/support/text_proto.h"

namespace stepcast::client::allocate_test {
namespace {

v1::AllocateWorkersResponse TwoJobs() {
  return Proto<v1::AllocateWorkersResponse>(R"pb(
    allocations {
      id: "vision"
      workers: 5
      parameter_servers: 2
      utility: 3.5
      speedup: 3.5
      examples_per_second: 350
      interpolated: true
      duration { seconds: 20 }
    }
    allocations {
      id: "text"
      error { code: 5 message: "there is no profile profiles/text" }
    }
    total_utility: 3.5
    workers: 5
    parameter_servers: 2
    one_more_worker {
      utility_gain: 0.25
      objective_gain: 0.25
      changes { id: "vision" workers: 6 parameter_servers: 2 }
    })pb");
}

TEST(AllocationTableTest, EachJobHasARowAndABadOneItsError) {
  EXPECT_EQ(AllocationText(TwoJobs()),
            "job     workers  servers  examples/s  speed-up  utility  time left\n"
            "vision        5        2      ~350.0     3.500    3.500    20.00 s\n"
            "text          -        -           -         -        -          -\n"
            "total: 5 workers, 2 servers, utility 3.500\n"
            "one more worker would add 0.2500 of utility: vision would have 6 workers\n"
            "error (text): there is no profile profiles/text\n");
}

TEST(AllocationTableTest, OneMoreWorkerIsToldByTheObjectiveWhereThatIsNotUtility) {
  v1::AllocateWorkersResponse response = TwoJobs();
  response.mutable_one_more_worker()->set_objective_gain(-12.5);
  EXPECT_NE(AllocationText(response).find("one more worker would change the objective by -12.50, "
                                          "and utility by 0.2500: vision would have 6 workers\n"),
            std::string::npos)
      << AllocationText(response);
}

TEST(AllocationTableTest, OneMoreWorkerMayBeOfNoUse) {
  v1::AllocateWorkersResponse response = TwoJobs();
  response.clear_one_more_worker();
  EXPECT_NE(AllocationText(response).find("one more worker would be of no use\n"),
            std::string::npos);
}

TEST(AllocationTableTest, WhereNoJobMayGetMoreThatIsWhyOneMoreIsOfNoUse) {
  v1::AllocateWorkersResponse response = TwoJobs();
  response.clear_one_more_worker();
  response.mutable_allocations(0)->set_workers_edge(v1::AT_LARGEST_ASKED);
  EXPECT_NE(AllocationText(response).find(
                "vision has 5, the most that it may get\n"
                "one more worker would be of no use: no job may get more (maxWorkers)\n"),
            std::string::npos)
      << AllocationText(response);
  response.add_allocations()->set_workers(1);
  EXPECT_EQ(AllocationText(response).find("no job may get more"), std::string::npos);
  response.mutable_allocations(0)->set_workers_edge(v1::ONLY_CHOICE);
  EXPECT_NE(AllocationText(response).find("vision has 5, the only number that it may get\n"),
            std::string::npos);
}

TEST(AllocationTableTest, WhatWeakensAJobsCurveStandsBelow) {
  v1::AllocateWorkersResponse response = TwoJobs();
  response.mutable_allocations(0)->add_warnings()->set_message(
      "2-8 workers: the start still shows");
  response.mutable_allocations(0)->add_warnings()->set_message("1 worker: nothing is random");
  EXPECT_NE(AllocationText(response).find("vision would have 6 workers\n"
                                          "warning (vision): 2-8 workers: the start still shows\n"
                                          "warning (vision): 1 worker: nothing is random\n"
                                          "error (text)"),
            std::string::npos)
      << AllocationText(response);
}

TEST(AllocationTableTest, ACapacityThatIsTooSmallIsAllThatIsSaid) {
  const auto response =
      Proto<v1::AllocateWorkersResponse>(R"pb(infeasible_reason: "capacity.workers: too few")pb");
  EXPECT_EQ(AllocationText(response), "No allocation: capacity.workers: too few\n");
}

}  // namespace
}  // namespace stepcast::client::allocate_test
