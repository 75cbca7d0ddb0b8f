#include "core/predict/run_memory.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace stepcast::run_memory_test {
namespace {

struct Subject {
  Scenario scenario{.workers = 3, .bandwidth_bytes_per_second = 1e9};
  SimulationOptions options;
};

std::string KeyOf(const Subject& subject) {
  return RunKeyPrefix("digest", subject.scenario, subject.options);
}

TEST(RunKeyTest, EverythingThatChangesARunChangesItsKey) {
  const std::vector<std::function<void(Subject&)>> changes = {
      [](Subject&) {},
      [](Subject& s) { s.scenario.workers = 4; },
      [](Subject& s) { s.scenario.pipeline.emplace(); },
      [](Subject& s) { s.scenario.pipeline.emplace().layout.devices = 2; },
      [](Subject& s) { s.scenario.pipeline.emplace().layout.chunks = 2; },
      [](Subject& s) { s.scenario.pipeline.emplace().layout.micro_batches = 2; },
      [](Subject& s) { s.scenario.pipeline.emplace().layout.group = 2; },
      [](Subject& s) {
        s.scenario.pipeline.emplace().layout.schedule = PipelineSchedule::kZeroBubbleV;
      },
      [](Subject& s) { s.scenario.pipeline.emplace().layout.variant = PipelineVariant::kPytorch; },
      [](Subject& s) { s.scenario.pipeline.emplace().cuts = {"a"}; },
      [](Subject& s) { s.scenario.pipeline.emplace().receives = PipelineReceives::kLate; },
      [](Subject& s) { s.scenario.pipeline.emplace().links = PipelineLinks::kDevice; },
      [](Subject& s) { s.scenario.pipeline.emplace().bandwidth_bytes_per_second = 5; },
      [](Subject& s) { s.scenario.pipeline.emplace().latency_seconds = 5; },
      [](Subject& s) { s.scenario.pipeline.emplace().step_barrier = true; },
      [](Subject& s) { s.scenario.pipeline.emplace().has_network_links = true; },
      [](Subject& s) { s.scenario.pipeline.emplace().shares_links = true; },
      [](Subject& s) { s.scenario.pipeline.emplace().gradient_element_bytes = 8; },
      [](Subject& s) { s.scenario.pipeline.emplace().nodes_per_replica = 8; },
      [](Subject& s) { s.scenario.servers().servers = 2; },
      [](Subject& s) { s.scenario.bandwidth_bytes_per_second = 2e9; },
      [](Subject& s) { s.scenario.servers().parsing_overhead.seconds = 1; },
      [](Subject& s) { s.scenario.servers().parsing_overhead.seconds_per_byte = 1; },
      [](Subject& s) { s.scenario.servers().synchronization = Synchronization::kSynchronous; },
      [](Subject& s) { s.scenario.servers().synchronization = Synchronization::kSummed; },
      [](Subject& s) { s.scenario.servers().partition_bytes = 100; },
      [](Subject& s) { s.scenario.servers().multiplexing = Window{.bytes = 5}; },
      [](Subject& s) { s.scenario.servers().multiplexing = Window{.bytes = 7}; },
      [](Subject& s) {
        s.scenario.servers().multiplexing = Window{.bytes = 5, .quantum_bytes = 7};
      },
      [](Subject& s) {
        s.scenario.servers().multiplexing = RoundRobin{.window_bytes = 5, .quantum_bytes = 7};
      },
      [](Subject& s) {
        s.scenario.servers().multiplexing = RoundRobin{.window_bytes = 6, .quantum_bytes = 7};
      },
      [](Subject& s) {
        s.scenario.servers().multiplexing = RoundRobin{.window_bytes = 5, .quantum_bytes = 8};
      },
      [](Subject& s) { s.scenario.servers().link_sharing = FirstCome{}; },
      [](Subject& s) { s.scenario.servers().link_sharing = Turns{}; },
      [](Subject& s) { s.scenario.servers().link_sharing = Turns{.bytes = 7}; },
      [](Subject& s) { s.scenario.servers().transfer_order = TransferOrder::kTic; },
      [](Subject& s) {
        s.scenario.servers().transfer_priorities = {{"a", 1}};
      },
      [](Subject& s) {
        s.scenario.servers().transfer_priorities = {{"a", 2}};
      },
      [](Subject& s) {
        s.scenario.servers().transfer_priorities = {{"b", 1}};
      },
      [](Subject& s) {
        s.scenario.start_offsets_ns = {0, 1, 2};
      },
      [](Subject& s) {
        s.scenario.start_offsets_ns = {0, 2, 1};
      },
      [](Subject& s) { s.scenario.worker_groups = {{.count = 3}}; },
      [](Subject& s) { s.scenario.worker_groups = {{.count = 3, .compute_speed_factor = 2}}; },
      [](Subject& s) {
        s.scenario.worker_groups = {{.count = 3, .bandwidth_bytes_per_second = 2}};
      },
      [](Subject& s) { s.options.steps_per_worker = 999; },
      [](Subject& s) { s.options.warmup_steps = 49; },
      [](Subject& s) { s.options.automatic_warmup = true; },
      [](Subject& s) { s.options.seed = 2; },
      [](Subject& s) { s.options.start = Start::kSimultaneous; },
      [](Subject& s) { s.options.horizon = Horizon::kFirstSteps; },
      [](Subject& s) { s.options.horizon_steps = 9; },
      [](Subject& s) { s.options.horizon_seconds = 9; },
  };
  std::set<std::string> keys;
  for (const auto& change : changes) {
    Subject subject;
    change(subject);
    EXPECT_TRUE(keys.insert(KeyOf(subject)).second) << "change " << keys.size();
  }
}

TEST(RunKeyTest, WhatOnlySaysHowManyRunsAreMadeDoesNot) {
  const Subject subject;
  const std::vector<std::function<void(Subject&)>> changes = {
      [](Subject& s) { s.options.replications = 99; },
      [](Subject& s) { s.options.relative_precision = 0.1; },
      [](Subject& s) { s.options.time_budget_seconds = 3; },
      [](Subject& s) { s.options.confidence_level = 0.5; },
  };
  for (const auto& change : changes) {
    Subject other;
    change(other);
    EXPECT_EQ(KeyOf(other), KeyOf(subject));
  }
}

TEST(RunKeyTest, AnotherProfileOrReplicationHasAnotherKey) {
  const Subject subject;
  EXPECT_NE(RunKeyPrefix("other", subject.scenario, subject.options), KeyOf(subject));
  EXPECT_NE(RunKeyOf(KeyOf(subject), 0), RunKeyOf(KeyOf(subject), 1));
}

}  // namespace
}  // namespace stepcast::run_memory_test
