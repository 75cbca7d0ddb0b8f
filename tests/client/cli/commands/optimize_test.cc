#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "client/cli/texts/answer_texts.h"

#include "tests/client/support/text_proto.h"

namespace stepcast::client::optimize_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(StrategyTextTest, OpensWithTheReasonAndShowsWhatWasComparedAndTheGroups) {
  const auto response = Proto<v1::OptimizeJobResponse>(R"pb(
    strategy {
      fused_operations {
        operations: "forward/a"
        operations: "forward/b"
        seconds_apart: 0.25
        seconds: 0.125
        is_estimate: true
      }
      tensors {
        operations: "g1"
        operations: "g2"
        operations: "g3"
        size_bytes: 3145728
        partitions: 2
      }
      tensors { operations: "g4" size_bytes: 512 partitions: 1 }
      memory_pass: RECOMPUTATION
      recomputed: "forward/a"
    }
    compared { name: "AS_RECORDED" step_seconds: 0.5 examples_per_second: 64 no_difference: true }
    compared {
      name: "MG_WFBP"
      step_seconds: 0.5
      examples_per_second: 64
      gain: -0.0001
      gain_interval { lower: -0.001 upper: 0.001 level: 0.95 }
      no_difference: true
    }
    compared {
      name: "FOUND"
      step_seconds: 0.25
      examples_per_second: 128
      gain: 1
      gain_interval { lower: 0.99 upper: 1.01 level: 0.95 }
    }
    reason: "2 operations fused into 1 and 4 gradients in 2 collectives gain"
    cost_source: "an estimate"
    no_bound_because: "operations are fused"
    memory {
      before_bytes: 2097152
      after_bytes: 1048576
      parameter_bytes: 524288
      tried { pass: RECOMPUTATION bytes: 1048576 step_seconds: 0.25 recomputes: "9 cheap outputs" }
      tried { pass: GRADIENT_ACCUMULATION bytes: 1048576 why_not: "needs 9 GB" }
      assumptions: "everything is kept"
    }
    search { rounds: 3 replays: 7 replayed_operations: 1000 accepted: 2 partial_replays: 9 }
    warnings { message: "careful" })pb");
  EXPECT_EQ(StrategyText(response),
            "2 operations fused into 1 and 4 gradients in 2 collectives gain\n"
            "\n"
            "strategy         step  examples/s     gain           interval\n"
            "AS_RECORDED  500.0 ms       64.00\n"
            "MG_WFBP      500.0 ms       64.00    +0.0%     -0.1% .. +0.1%  no difference\n"
            "FOUND        250.0 ms       128.0  +100.0%  +99.0% .. +101.0%\n"
            "\n"
            "computed as one                apart    as one\n"
            "forward/a .. forward/b (2)  250.0 ms  125.0 ms  estimated\n"
            "\n"
            "sent as one       bytes  parts\n"
            "g1 .. g3 (3)  3.000 MiB      2\n"
            "g4                512 B      1\n"
            "\n"
            "computed again: forward/a\n"
            "\n"
            "costs of fused operations: an estimate\n"
            "no bound: operations are fused\n"
            "searched: 3 rounds, 7 replays of the whole job (1000 operations), of which 2 were "
            "accepted; 9 of one tensor\n"
            "\n"
            "memory: 2.000 MiB, now 1.000 MiB, of which 512.0 KiB parameters and their state\n"
            "tried: RECOMPUTATION of 9 cheap outputs: 1.000 MiB, a step of 250.0 ms\n"
            "tried: GRADIENT_ACCUMULATION: needs 9 GB\n"
            "assumed: everything is kept\n"
            "warning: careful\n");
}

// As an older or a stranger server might send it.
TEST(StrategyTextTest, AnEmptyReplyIsText) {
  EXPECT_THAT(StrategyText({}), HasSubstr("searched: 0 rounds"));
  EXPECT_THAT(StrategyText({}), Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace stepcast::client::optimize_test
