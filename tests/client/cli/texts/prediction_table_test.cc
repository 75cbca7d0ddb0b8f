#include "client/cli/texts/prediction_table.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/client/support/text_proto.h"

namespace stepcast::client::prediction_table_test {
namespace {

v1::Prediction Row(int32_t workers, double examples, v1::Operation::Resource bottleneck,
                   const std::string& warning = "") {
  auto row = Proto<v1::Prediction>(R"pb(
    scenario { parameter_servers { servers: 1 } }
    confidence_interval { level: 0.95 }
    step_time { p50 { nanos: 64930000 } }
    bottleneck_index: 1)pb");
  row.mutable_scenario()->set_workers(workers);
  row.set_examples_per_second(examples);
  row.mutable_confidence_interval()->set_lower(examples * 0.98);
  row.mutable_confidence_interval()->set_upper(examples * 1.02);
  row.set_speedup(examples / 100);
  row.set_scaling_efficiency(examples / 100 / workers);
  row.set_bottleneck(bottleneck);
  if (!warning.empty()) row.add_warnings()->set_message(warning);
  return row;
}

TEST(PredictionTableTest, HasARowAPrediction) {
  v1::Prediction certain = Row(1, 100, v1::Operation::WORKER);
  *certain.mutable_confidence_interval() =
      Proto<v1::ConfidenceInterval>("lower: 100 upper: 100 level: 0.95");
  EXPECT_EQ(
      PredictionTable(ListOf<v1::Prediction>({certain, Row(2, 187.5, v1::Operation::DOWNLINK),
                                              Row(16, 1234.5, v1::Operation::UPLINK)})),
      "workers  examples/s    95% interval  speed-up  efficiency  step p50  bottleneck\n"
      "      1       100.0               -     1.000      100.0%  64.93 ms  computation of the "
      "workers\n"
      "      2       187.5  183.8 .. 191.2     1.875       93.8%  64.93 ms  downlink of server 1\n"
      "     16        1234    1210 .. 1259     12.35       77.2%  64.93 ms  uplink of server 1\n");
}

TEST(PredictionTableTest, ShowsWhereSingleRunsFallAndBothRegimesWhereThereAreTwo) {
  v1::Prediction one = Row(1, 100, v1::Operation::WORKER);
  *one.mutable_run_interval() = Proto<v1::ConfidenceInterval>("lower: 90 upper: 110 level: 0.95");
  v1::Prediction two = Row(2, 150, v1::Operation::DOWNLINK);
  two.MergeFrom(Proto<v1::Prediction>(R"pb(
    run_interval { lower: 99.5 upper: 201.5 level: 0.95 }
    regimes { examples_per_second: 200 replications: 10 }
    regimes { examples_per_second: 100 replications: 10 other_start_replications: 3 })pb"));
  EXPECT_EQ(PredictionTable(ListOf<v1::Prediction>({one, two})),
            "workers  examples/s    95% interval     95% of runs  speed-up  efficiency  step p50  "
            "bottleneck                  two regimes, by runs\n"
            "      1       100.0  98.00 .. 102.0  90.00 .. 110.0     1.000      100.0%  64.93 ms  "
            "computation of the workers\n"
            "      2       150.0  147.0 .. 153.0  99.50 .. 201.5     1.500       75.0%  64.93 ms  "
            "downlink of server 1        200.0 in 10 of 23, 100.0 in "
            "13 of 23\n");
}

v1::Prediction Sampled(int32_t workers, double input_fraction, double model_error) {
  v1::Prediction row = Row(workers, 100, v1::Operation::WORKER);
  row.set_input_fraction(input_fraction);
  row.set_half_width_with_more_steps(0.5);
  row.mutable_model_error()->set_fraction(model_error);
  row.mutable_model_error()->set_source("as asked for");
  return row;
}

std::string Certainty(const std::vector<v1::Prediction>& rows) {
  const std::string text = PredictionTable(ListOf(rows));
  const size_t at = text.find("intervals: ");
  return at == std::string::npos ? "" : text.substr(at);
}

TEST(CertaintyTextTest, SaysWhatTheIntervalsAreOf) {
  const std::string of_steps =
      "intervals: of the long run, the recording being a sample of steps; ";
  const std::string more = "record 20 more steps: +-0.5% instead of +-2.0% with 8 workers\n";
  EXPECT_EQ(Certainty({Sampled(8, 0.7, 0.05)}),
            of_steps + "of runs, with a run's chance and the model's error, 5.0% (as asked for)\n" +
                more);
  EXPECT_EQ(Certainty({Sampled(8, 0.7, 0)}), of_steps + "of runs, with a run's chance\n" + more);
  EXPECT_EQ(Certainty({Sampled(8, 0, 0.05)}),
            "intervals: of the long run; of runs, with a run's chance and the model's error, 5.0% "
            "(as asked for)\n");
  EXPECT_EQ(Certainty({Sampled(8, 0, 0)}), "");
  // The row with the most workers counts, wherever it stands, of those of which least is known.
  EXPECT_EQ(Certainty({Sampled(8, 0.7, 0), Sampled(1, 0.7, 0)}), Certainty({Sampled(8, 0.7, 0)}));
  v1::Prediction fixed = Sampled(16, 0.7, 0);
  fixed.mutable_confidence_interval()->set_lower(100);
  fixed.mutable_confidence_interval()->set_upper(100);
  EXPECT_EQ(Certainty({Sampled(8, 0.7, 0), fixed}), Certainty({Sampled(8, 0.7, 0)}));
  // Nobody records again for a tenth of a percent.
  v1::Prediction sure = Sampled(8, 0.7, 0);
  sure.mutable_confidence_interval()->set_lower(99.8);
  sure.mutable_confidence_interval()->set_upper(100.2);
  sure.set_half_width_with_more_steps(0.1);
  EXPECT_EQ(Certainty({sure}), of_steps + "of runs, with a run's chance\n");
}

TEST(PredictionTableTest, TellsTheMemoryOfADeviceAsFarAsItIsKnown) {
  const auto text = [](const std::string& first, const std::string& last) {
    v1::Prediction one = Row(1, 100, v1::Operation::WORKER);
    v1::Prediction eight = Row(8, 700, v1::Operation::WORKER);
    if (!first.empty()) *one.mutable_memory() = Proto<v1::Memory>(first);
    if (!last.empty()) *eight.mutable_memory() = Proto<v1::Memory>(last);
    return MemoryText(ListOf<v1::Prediction>({one, eight}));
  };
  const char whole[] =
      "total_bytes: 9216 parameter_bytes: 1024 gradient_bytes: 1024 optimizer_bytes: 2048 "
      "kept_bytes: 5120";
  EXPECT_EQ(
      text(whole, whole),
      "memory of a device: 9.000 KiB: parameters 1.000 KiB, gradients 1.000 KiB, optimizer (Adam) "
      "2.000 KiB, kept for the backward pass 5.000 KiB\n");
  EXPECT_EQ(text(whole, "total_bytes: 512 parameter_bytes: 256 gradient_bytes: 256"),
            "memory of a device: 9.000 KiB with 1 worker: parameters 1.000 KiB, gradients 1.000 "
            "KiB, optimizer (Adam) 2.000 KiB, kept for the backward pass 5.000 KiB\n"
            "memory of a device: at least 512 B with 8 workers: parameters 256 B, gradients 256 B, "
            "and what the forward pass keeps, which is not known\n");
  EXPECT_EQ(text("", ""), "");
}

TEST(PredictionTableTest, SaysEachWarningOnceWithItsRows) {
  const std::string text = PredictionTable(ListOf<v1::Prediction>(
      {Row(1, 1, v1::Operation::WORKER, "drifts"), Row(2, 1, v1::Operation::WORKER, "drifts"),
       Row(3, 1, v1::Operation::WORKER), Row(4, 1, v1::Operation::WORKER, "drifts")}));
  EXPECT_EQ(text.substr(text.find("warning")), "warning (1-2, 4 workers): drifts\n");
}

TEST(PredictionTableTest, WarningsThatDifferInNumbersAreOne) {
  const std::string text =
      PredictionTable(ListOf<v1::Prediction>({Row(1, 1, v1::Operation::WORKER, "nothing is random"),
                                              Row(2, 1, v1::Operation::WORKER, "drifts by 3.5 %"),
                                              Row(3, 1, v1::Operation::WORKER, "drifts by 12 %")}));
  EXPECT_EQ(text.substr(text.find("warning")),
            "warning (1 worker): nothing is random\n"
            "warning (2-3 workers; the numbers are those for 2): drifts by 3.5 %\n");
}

TEST(PredictionTableTest, ANumberOfWorkersThatComesAgainIsSaidOnce) {
  EXPECT_EQ(WarningsText(ListOf<v1::Prediction>({Row(2, 1, v1::Operation::WORKER, "drifts"),
                                                 Row(4, 1, v1::Operation::WORKER, "drifts"),
                                                 Row(2, 1, v1::Operation::WORKER, "drifts")})),
            "warning (2, 4 workers): drifts\n");
}

TEST(BottleneckTextTest, NamesEveryResource) {
  const auto text = [](int resource) {
    v1::Prediction prediction;
    prediction.set_bottleneck(static_cast<v1::Operation::Resource>(resource));
    prediction.set_bottleneck_index(3);
    return BottleneckText(prediction);
  };
  EXPECT_EQ(text(v1::Operation::DOWNLINK), "downlink of server 3");
  EXPECT_EQ(text(v1::Operation::UPLINK), "uplink of server 3");
  EXPECT_EQ(text(v1::Operation::PARAMETER_SERVER), "computation of server 3");
  EXPECT_EQ(text(v1::Operation::WORKER), "computation of the workers");
  EXPECT_EQ(text(99), "unknown");
}

TEST(BottleneckTextTest, SaysWhatItsChangeWouldBring) {
  const auto text = [](const std::string& fields) {
    return BottleneckText(Proto<v1::Prediction>(fields));
  };
  EXPECT_EQ(text("bottleneck: DOWNLINK bottleneck_gain: 0.372 bottleneck_change: "
                 "LINKS_TWICE_AS_FAST"),
            "downlink of server 0 (+37% if links twice as fast)");
  EXPECT_EQ(text("bottleneck: WORKER bottleneck_gain: 0.0142 bottleneck_change: NO_STRAGGLERS"),
            "the slowest worker (+1.4% if as fast as the best)");
  EXPECT_EQ(text("bottleneck: WORKER bottleneck_gain: 1.5 bottleneck_change: NO_HOST_WAIT "
                 "collectives { bottleneck: HOST }"),
            "hosts of the workers (+150% if never waited for)");
  EXPECT_EQ(text("bottleneck: COLLECTIVE bottleneck_gain: 0.2 bottleneck_change: NO_LATENCY "
                 "collectives { bottleneck: LATENCY }"),
            "latency of the links (+20% if none)");
  EXPECT_EQ(text("bottleneck: COLLECTIVE bottleneck_gain: 0.2 bottleneck_change: "
                 "LINKS_TWICE_AS_FAST collectives { bottleneck: LINK_INSIDE_NODE }"),
            "links inside the node (+20% if twice as fast)");
}

TEST(ScenarioTextTest, NamesTheCluster) {
  const auto text = [](const std::string& scenario) {
    return ScenarioText(Proto<v1::Prediction>("scenario {" + scenario + "}"));
  };
  EXPECT_EQ(text(""), "1 server");
  EXPECT_EQ(
      text("bandwidth_bytes_per_second: 119.5e6 "
           "parameter_servers { servers: 2 synchronization: SYNCHRONOUS transfer_order: TAC }"),
      "2 servers, 119.5 MB/s links, synchronous, TAC order");
  EXPECT_EQ(text("parameter_servers { synchronization: ASYNCHRONOUS transfer_order: EXPLICIT }"),
            "1 server, asynchronous, explicit order");
  EXPECT_EQ(text("parameter_servers { synchronization: SUMMED partition_bytes: 4096000 }"),
            "1 server, summed, parts of 4.096 MB");
}

}  // namespace
}  // namespace stepcast::client::prediction_table_test
