#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "client/cli/texts/answer_texts.h"
#include "client/cli/texts/table.h"

#include "tests/client/support/text_proto.h"

namespace stepcast::client::diagnose_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

v1::DiagnoseJobResponse WithStraggler() {
  return Proto<v1::DiagnoseJobResponse>(R"pb(
    prediction {
      scenario { workers: 2 }
      examples_per_second: 32
      confidence_interval { lower: 31 upper: 33 level: 0.95 }
      warnings { reason: NOT_STEADY message: "not a steady state yet" }
    }
    path_steps: 20
    path_seconds: 0.5
    path { kind: COMPUTATION seconds: 0.3 }
    path { kind: COMMUNICATION seconds: 0.05 }
    path { kind: WAITING seconds: 0.15 }
    workers { on_path_seconds: 0 }
    workers { on_path_seconds: 0.45 waited_for_seconds: 0.15 }
    straggler: 1
    operations { operations: "conv1" kind: COMPUTATION seconds: 0.2 }
    operations {
      operations: "w1"
      operations: "w2"
      operations: "w3"
      kind: COMMUNICATION
      seconds: 0.05
    }
    what_ifs {
      change: NO_STRAGGLERS
      prediction { examples_per_second: 44.8 }
      ratio: 1.4
      ratio_interval { lower: 1.39 upper: 1.41 level: 0.95 }
    }
    what_ifs {
      change: ONE_WORKER_FEWER
      prediction { examples_per_second: 20 }
      ratio: 0.625
      ratio_interval { lower: 0.625 upper: 0.625 level: 0.95 }
    }
    left_out { change: NO_LATENCY reason: "the scenario has none" })pb");
}

TEST(DiagnosisTextTest, OpensWithASentenceAndShowsPathChangesAndOperations) {
  EXPECT_EQ(DiagnosisText(WithStraggler()),
            "A step takes 500.0 ms, 60.0% of it computation; the others wait for worker 1 (of 0 to "
            "1) for 30.0% of it; no stragglers would gain most, +40.0% (+39.0% .. +41.0%).\n"
            "\n"
            "critical path              a step  share\n"
            "computation              300.0 ms  60.0%\n"
            "communication            50.00 ms  10.0%\n"
            "waiting for the slowest  150.0 ms  30.0%\n"
            "\n"
            "change            examples/s    gain      95% interval\n"
            "as it is               32.00\n"
            "no stragglers          44.80  +40.0%  +39.0% .. +41.0%\n"
            "one worker fewer       20.00  -37.5%\n"
            "not tried: no latency (the scenario has none)\n"
            "\n"
            "longest operations                   a step  share\n"
            "conv1               computation    200.0 ms  40.0%\n"
            "w1 and 2 more       communication  50.00 ms  10.0%\n"
            "warning (2 workers): not a steady state yet\n");
}

TEST(DiagnosisTextTest, ChangesInARowThatAreLeftOutForOneReasonAreOneLine) {
  v1::DiagnoseJobResponse response = WithStraggler();
  response.MergeFrom(Proto<v1::DiagnoseJobResponse>(R"pb(
    left_out { change: DATA_LOADING_TWICE_AS_FAST reason: "workers never wait" }
    left_out { change: NO_DATA_WAIT reason: "workers never wait" })pb"));
  EXPECT_THAT(DiagnosisText(response),
              HasSubstr("not tried: no latency (the scenario has none)\n"
                        "not tried: data loading twice as fast, no waiting for data (workers never "
                        "wait)\n"));
}

TEST(DiagnosisTextTest, NamesTheBucketsAndTheOrderThatWereFound) {
  v1::DiagnoseJobResponse response = WithStraggler();
  response.MergeFrom(Proto<v1::DiagnoseJobResponse>(
      R"pb(
        what_ifs {
          change: BEST_BUCKETS
          prediction { examples_per_second: 33 }
          ratio: 1.03
          setting: "bucket_cap_mb=5"
          groups { operations: "w1" size_bytes: 1048576 }
          groups { operations: "w2" operations: "w3" size_bytes: 4500000 }
        }
        what_ifs {
          change: BEST_TRANSFER_ORDER
          prediction { examples_per_second: 33 }
          ratio: 1.03
          setting: "transfer_order=TAC"
        })pb"));
  const std::string text = DiagnosisText(response);
  EXPECT_THAT(text, HasSubstr("\nbest buckets              33.00   +3.0%\n"));
  EXPECT_THAT(text, HasSubstr("\nbest buckets: 2 buckets of " + BytesText(1048576) + " to " +
                              BytesText(4500000) + "; bucket_cap_mb=5\n" +
                              "best transfer order: transfer_order=TAC\n"));
}

TEST(DiagnosisTextTest, AGainThatIsNotToldFromNothingIsNone) {
  v1::DiagnoseJobResponse response = WithStraggler();
  response.clear_straggler();
  response.mutable_what_ifs(0)->mutable_ratio_interval()->set_lower(0.99);
  const std::string text = DiagnosisText(response);
  EXPECT_THAT(text, StartsWith("A step takes 500.0 ms, 60.0% of it computation; none of the "
                               "changes tried is told to gain anything.\n"));
  EXPECT_THAT(text, HasSubstr("\nno stragglers          44.80  +40.0%  -1.0% .. +41.0%\n"));
}

TEST(DiagnosisTextTest, ARecordingOfSeveralWorkersComesFirst) {
  v1::DiagnoseJobResponse response = WithStraggler();
  response.MergeFrom(Proto<v1::DiagnoseJobResponse>(
      R"pb(
        recording {
          report {
            workers { name: "rank 0" recorded_step_seconds: 0.52 replayed_step_seconds: 0.51 }
            workers {
              name: "rank 1"
              clock_offset_ns: -3250000000
              least_clock_offset_ns: -3250000353
              clock_drift: 1.5e-05
              recorded_step_seconds: 0.5
              replayed_step_seconds: 0.51
            }
            steps: 9
            collectives: 4
            recorded_step_seconds: 0.51
            replayed_step_seconds: 0.5
            unaligned_step_seconds: 0.68
            waiting_seconds: 0.1
            between_steps_seconds: 0.004
            unexplained_seconds: 0.006
          }
          path_steps: 9
          path_seconds: 0.5
          path { kind: COMPUTATION seconds: 0.4 }
          path { kind: WAITING seconds: 0.1 }
          workers { on_path_seconds: 0.1 }
          workers { on_path_seconds: 0.4 waited_for_seconds: 0.1 }
          straggler: 1
          overlap_slowdown {
            slowdown: 1.184
            interval { lower: 1.1 upper: 1.276 level: 0.95 }
            operations: 68
            runs_alone: 254
            runs_beside: 265
          }
          collective_slowdown {
            slowdown: 1.316
            interval { lower: 1.25 upper: 1.384 level: 0.95 }
            collectives: 4
            runs: 36
            computing_fraction: 0.62
          }
        })pb"));
  EXPECT_THAT(
      DiagnosisText(response),
      StartsWith(
          "As recorded, a step takes 500.0 ms, 80.0% of it computation; the others wait for rank 1 "
          "for 20.0% of it.\n"
          "recorded on     clock            give or take       drift  step recorded  replayed\n"
          "rank 0           0 ns                                           520.0 ms  510.0 ms\n"
          "rank 1       -3.250 s  -353.0 ns .. unbounded  15.00 us/s       500.0 ms  510.0 ms\n"
          "matched: 4 collectives in each of 9 steps of 2 workers\n"
          "replay: a step takes 500.0 ms, 2.0% shorter than the recorded 510.0 ms; with the clocks "
          "as they were read 680.0 ms, 33.3% longer\n"
          "of it workers wait for others: 100.0 ms; not replayed: +4.000 ms between steps, +6.000 "
          "ms unexplained\n"
          "computation beside a collective takes 1.18 times as long as alone (1.10 .. 1.28, of 68 "
          "operations that ran both ways)\n"
          "a collective beside computation takes 1.32 times as long as alone (1.25 .. 1.38, of 4 "
          "collectives of a step, beside it for 62.0% of their time)\n"
          "\n"
          "A step takes 500.0 ms, 60.0% of it computation; the others wait for rank 1 for 30.0% of "
          "it; "));
  response.mutable_recording()->clear_straggler();
  response.mutable_recording()->clear_overlap_slowdown();
  response.mutable_recording()->clear_collective_slowdown();
  EXPECT_THAT(DiagnosisText(response),
              StartsWith("As recorded, a step takes 500.0 ms, 80.0% of it computation; nobody is "
                         "waited for more than others.\n"));
  EXPECT_THAT(DiagnosisText(response), Not(HasSubstr("beside ")));
}

// As an older or a stranger server might send it.
TEST(DiagnosisTextTest, AnEmptyReplyIsText) {
  v1::DiagnoseJobResponse response;
  response.set_straggler(3);
  const std::string text = DiagnosisText(response);
  EXPECT_THAT(text, StartsWith("A step takes 0 ns; no change was tried.\n"));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  response.set_straggler(-1);
  response.mutable_recording()->set_straggler(-1);
  response.mutable_recording()->mutable_report()->add_workers();
  EXPECT_THAT(DiagnosisText(response), Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace stepcast::client::diagnose_test
