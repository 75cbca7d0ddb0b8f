#include "server/convert/earlier_contract.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/random.h"
#include "server/convert/scenario_convert.h"
#include "stepcast/v1/allocation.pb.h"
#include "stepcast/v1/job_service.pb.h"
#include "stepcast/v1/order.pb.h"
#include "stepcast/v1/prediction.pb.h"
#include "stepcast/v1/recommendation.pb.h"

namespace stepcast::server::earlier_contract_test {
namespace {

using ::google::protobuf::TextFormat;
using ::google::protobuf::UnknownFieldSet;
using ::google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string BytesOf(const UnknownFieldSet& fields) {
  std::string bytes;
  EXPECT_TRUE(fields.SerializeToString(&bytes));
  return bytes;
}

// A scenario as the former contract wrote it, by the numbers of its fields.
class Former {
 public:
  Former& Number(int field, int64_t value) {
    UnknownFieldSet one;
    one.AddVarint(field, static_cast<uint64_t>(value));
    bytes_ += BytesOf(one);
    return *this;
  }
  Former& Bytes(int field, const std::string& bytes) {
    UnknownFieldSet one;
    *one.AddLengthDelimited(field) = bytes;
    bytes_ += BytesOf(one);
    return *this;
  }
  Former& Overhead(double seconds_per_byte, double seconds) {
    v1::ParsingOverhead overhead;
    overhead.set_seconds_per_byte(seconds_per_byte);
    overhead.set_seconds(seconds);
    return Bytes(4, overhead.SerializeAsString());
  }
  // An entry of a map: its key is field 1, its value field 2.
  Former& Priority(const std::string& name, int32_t rank) {
    UnknownFieldSet entry;
    *entry.AddLengthDelimited(1) = name;
    entry.AddVarint(2, static_cast<uint64_t>(int64_t{rank}));
    return Bytes(11, BytesOf(entry));
  }
  // As it is read today.
  v1::Scenario Read() const {
    v1::Scenario scenario;
    EXPECT_TRUE(scenario.ParseFromString(bytes_));
    return scenario;
  }

 private:
  std::string bytes_;
};

v1::Scenario Upgraded(const Former& former) {
  v1::Scenario scenario = former.Read();
  EXPECT_TRUE(UpgradeStored(scenario));
  EXPECT_TRUE(scenario.GetReflection()->GetUnknownFields(scenario).empty());
  return scenario;
}

v1::Scenario FromText(const std::string& text) {
  v1::Scenario scenario;
  EXPECT_TRUE(TextFormat::ParseFromString(text, &scenario)) << text;
  return scenario;
}

struct UpgradeCase {
  Former former;
  std::string today;  // of parameter_servers
};

TEST(UpgradeStoredTest, EveryFormerFieldAndValueHasItsPlaceToday) {
  const std::vector<UpgradeCase> cases = {
      {Former().Number(2, 3), "servers: 3"},
      {Former().Number(2, 0), "servers: 0"},
      {Former().Overhead(1e-9, 1e-6), "parsing_overhead { seconds_per_byte: 1e-9 seconds: 1e-6 }"},
      {Former().Bytes(4, ""), "parsing_overhead {}"},
      {Former().Number(5, 1), "synchronization: ASYNCHRONOUS"},
      {Former().Number(5, 2), "synchronization: SYNCHRONOUS"},
      {Former().Number(6, 1), "window {}"},
      {Former().Number(6, 1).Number(7, 9), "window { bytes: 9 }"},
      {Former().Number(6, 1).Number(7, 9).Number(8, 5), "window { bytes: 9 quantum_bytes: 5 }"},
      {Former().Number(6, 1).Number(8, 0), "window { quantum_bytes: 0 }"},
      {Former().Number(6, 2), "whole_stream {}"},
      {Former().Number(6, 2).Number(7, 0).Number(8, 0), "whole_stream {}"},
      {Former().Number(6, 3), "round_robin {}"},
      {Former().Number(6, 3).Number(7, 9), "round_robin { window_bytes: 9 }"},
      {Former().Number(6, 3).Number(8, 5), "round_robin { quantum_bytes: 5 }"},
      {Former().Number(6, 3).Number(7, 9).Number(8, 5),
       "round_robin { window_bytes: 9 quantum_bytes: 5 }"},
      // Without a kind a window meant WINDOW, none WHOLE_STREAM, and a quantum the profile's
      // window.
      {Former().Number(7, 9), "window { bytes: 9 }"},
      {Former().Number(7, 0), "whole_stream {}"},
      {Former().Number(7, 9).Number(8, 5), "window { bytes: 9 quantum_bytes: 5 }"},
      {Former().Number(8, 5), "window { quantum_bytes: 5 }"},
      {Former().Number(8, 0), ""},
      {Former().Number(9, 1), "equal {}"},
      {Former().Number(9, 2), "first_come {}"},
      {Former().Number(9, 3), "turns {}"},
      {Former().Number(9, 3).Number(14, 7), "turns { bytes: 7 }"},
      {Former().Number(14, 0), ""},
      {Former().Number(10, 1), "transfer_order: GRAPH"},
      {Former().Number(10, 2), "transfer_order: RECORDED"},
      {Former().Number(10, 3), "transfer_order: RANDOM"},
      {Former().Number(10, 4), "transfer_order: REVERSE"},
      {Former().Number(10, 5), "transfer_order: TIC"},
      {Former().Number(10, 6), "transfer_order: TAC"},
      {Former().Number(10, 7).Priority("recv", 4).Priority("send", 0).Priority("", -1),
       "transfer_order: EXPLICIT"
       " transfer_priorities { key: 'recv' value: 4 }"
       " transfer_priorities { key: 'send' value: 0 }"
       " transfer_priorities { key: '' value: -1 }"},
      {Former().Priority(std::string(300, 'x'), 1),
       "transfer_priorities { key: '" + std::string(300, 'x') + "' value: 1 }"},
      // Parsers take the last of what may be once.
      {Former().Number(2, 3).Number(2, 4), "servers: 4"},
  };
  for (const UpgradeCase& one : cases) {
    const v1::Scenario upgraded = Upgraded(one.former);
    EXPECT_TRUE(
        MessageDifferencer::Equals(upgraded, FromText("parameter_servers { " + one.today + " }")))
        << upgraded.ShortDebugString() << " is not " << one.today;
  }
}

TEST(UpgradeStoredTest, FieldsThatStayedStay) {
  v1::Scenario scenario = Former().Number(5, 2).Read();
  scenario.MergeFrom(
      FromText("workers: 3 bandwidth_bytes_per_second: 1e9 start_offsets_ns: 5 "
               "worker_groups { count: 3 compute_speed_factor: 2 }"));
  EXPECT_TRUE(UpgradeStored(scenario));
  EXPECT_TRUE(MessageDifferencer::Equals(
      scenario, FromText("workers: 3 bandwidth_bytes_per_second: 1e9 start_offsets_ns: 5 "
                         "worker_groups { count: 3 compute_speed_factor: 2 } "
                         "parameter_servers { synchronization: SYNCHRONOUS }")))
      << scenario.ShortDebugString();
}

TEST(UpgradeStoredTest, AMessageOfTodayIsLeftAsItIs) {
  v1::StartJobRequest job;
  *job.mutable_predict_throughput()->mutable_scenario() =
      FromText("workers: 3 parameter_servers { window { bytes: 9 } turns {} }");
  const v1::StartJobRequest before = job;
  EXPECT_FALSE(UpgradeStored(job));
  EXPECT_TRUE(MessageDifferencer::Equals(job, before));
}

// A former field whose bytes are of another kind was never written by a server of ours.
TEST(UpgradeStoredTest, AFieldOfAnotherKindIsIgnored) {
  const v1::Scenario upgraded =
      Upgraded(Former().Bytes(2, "x").Number(4, 1).Bytes(5, "y").Number(11, 3).Bytes(7, "z"));
  EXPECT_EQ(upgraded.parameter_servers().servers(), 0);
  EXPECT_FALSE(upgraded.parameter_servers().has_parsing_overhead());
  EXPECT_EQ(upgraded.parameter_servers().synchronization(),
            v1::ParameterServers::SYNCHRONIZATION_UNSPECIFIED);
  EXPECT_THAT(upgraded.parameter_servers().transfer_priorities(), IsEmpty());
}

// Wherever a request has one.
TEST(UpgradeStoredTest, EveryScenarioOfEveryJobIsUpgraded) {
  const v1::Scenario former = Former().Number(5, 2).Read();
  std::vector<v1::StartJobRequest> jobs(6);
  *jobs[0].mutable_predict_throughput()->add_scenarios() = former;
  *jobs[0].mutable_predict_throughput()->add_scenarios() = former;
  *jobs[1].mutable_predict_throughput()->mutable_scenario() = former;
  *jobs[2].mutable_recommend_workers()->mutable_scenario() = former;
  *jobs[3].mutable_optimize_order()->mutable_scenario() = former;
  *jobs[4].mutable_allocate_workers()->add_jobs()->mutable_scenario() = former;
  *jobs[5].mutable_compare_models()->mutable_scenario() = former;
  for (v1::StartJobRequest& job : jobs) {
    EXPECT_TRUE(UpgradeStored(job));
    const std::string text = job.ShortDebugString();
    EXPECT_THAT(text, HasSubstr("synchronization: SYNCHRONOUS"));
    EXPECT_EQ(text.find(" 5: 2"), std::string::npos) << text;
    EXPECT_FALSE(UpgradeStored(job)) << "done already";
  }
}

// A message with texts at a number that was a field of warnings.
template <typename Wire>
Wire WithFormerWarnings(int number, const std::vector<std::string>& texts) {
  Wire wire;
  for (const std::string& text : texts)
    wire.GetReflection()->MutableUnknownFields(&wire)->AddLengthDelimited(number, text);
  Wire read;
  EXPECT_TRUE(read.ParseFromString(wire.SerializeAsString()));
  return read;
}

template <typename Wire>
void ExpectWarningsUpgraded(int number) {
  const std::string name = Wire::descriptor()->full_name();
  auto wire = WithFormerWarnings<Wire>(number, {"1-2 workers: one replication only", "", "other"});
  EXPECT_TRUE(UpgradeStored(wire)) << name;
  EXPECT_EQ(wire.warnings_size(), 2) << name;
  EXPECT_EQ(wire.warnings(0).reason(), v1::Warning::ONE_REPLICATION) << name;
  EXPECT_EQ(wire.warnings(0).message(), "1-2 workers: one replication only") << name;
  EXPECT_EQ(wire.warnings(1).reason(), v1::Warning::REASON_UNSPECIFIED) << name;
  EXPECT_EQ(wire.warnings(1).message(), "other") << name;
  EXPECT_TRUE(wire.GetReflection()->GetUnknownFields(wire).empty()) << name;
  EXPECT_FALSE(UpgradeStored(wire)) << name;
}

TEST(UpgradeStoredTest, TextsOfEveryMessageThatHadThemAreWarnings) {
  ExpectWarningsUpgraded<v1::Prediction>(13);
  ExpectWarningsUpgraded<v1::RecommendWorkersResponse>(19);
  ExpectWarningsUpgraded<v1::OptimizeOrderResponse>(16);
  ExpectWarningsUpgraded<v1::JobAllocation>(12);
}

// The texts of the server of before, whole.
TEST(UpgradeStoredTest, ATextThatTheServerWroteHasItsReason) {
  const std::vector<std::pair<std::string, v1::Warning::Reason>> texts = {
      {"of the first 3 steps of each worker, as asked for: no steady state",
       v1::Warning::FINITE_HORIZON},
      {"of the first 2.5 s, as asked for: no steady state", v1::Warning::FINITE_HORIZON},
      {"not a steady state yet: the second half of the counted steps ran 3.1 % faster than the "
       "first; ask for more steps_per_worker or warmup_steps",
       v1::Warning::NOT_STEADY},
      {"nothing is random here (one recorded step, fixed order and start), so the interval has no "
       "width and says nothing of real variation",
       v1::Warning::NOTHING_RANDOM},
      {"one replication only: the interval comes from its own batch means, or has no width where "
       "it is too short for those",
       v1::Warning::ONE_REPLICATION},
      {"two regimes: 368 examples/s in 4 of 5 runs that start at random times and 0 of 3 that "
       "start together, 240 in 1 and 3; a real cluster may do either",
       v1::Warning::TWO_REGIMES},
      // Without regimes to look at, and more steps were advised as of any drift.
      {"the start still shows: workers that start as asked make 188 examples/s, workers that start "
       "at random times 246; a real cluster may do either, and runs of more steps_per_worker come "
       "closer to each other",
       v1::Warning::NOT_STEADY},
      // One text held both; the regimes explain the drift.
      {"not a steady state yet: it drifts; two regimes: 368 examples/s; a real cluster may do "
       "either",
       v1::Warning::TWO_REGIMES},
  };
  for (const auto& [text, reason] : texts) {
    auto prediction = WithFormerWarnings<v1::Prediction>(13, {text});
    EXPECT_TRUE(UpgradeStored(prediction));
    ASSERT_EQ(prediction.warnings_size(), 1);
    EXPECT_EQ(prediction.warnings(0).reason(), reason) << text;
    EXPECT_EQ(prediction.warnings(0).message(), text);
  }
}

TEST(UpgradedBytesTest, AStoredReplyIsReadAsItWouldBeWrittenNow) {
  v1::PredictThroughputResponse reply;
  v1::Prediction& prediction = *reply.add_predictions();
  *prediction.mutable_scenario() = Former().Number(2, 2).Number(5, 2).Read();
  prediction.set_examples_per_second(7);
  prediction.GetReflection()->MutableUnknownFields(&prediction)->AddLengthDelimited(13, "text");
  v1::PredictThroughputResponse upgraded;
  ASSERT_TRUE(upgraded.ParseFromString(
      UpgradedBytes("stepcast.v1.PredictThroughputResponse", reply.SerializeAsString())));
  v1::PredictThroughputResponse expected;
  ASSERT_TRUE(TextFormat::ParseFromString(
      "predictions { scenario { parameter_servers { servers: 2 synchronization: SYNCHRONOUS } } "
      "examples_per_second: 7 warnings { message: 'text' } }",
      &expected));
  EXPECT_TRUE(MessageDifferencer::Equals(upgraded, expected)) << upgraded.ShortDebugString();
}

TEST(UpgradedBytesTest, WhatIsOfTodayOrNoMessageIsReturnedAsItIs) {
  v1::PredictThroughputResponse reply;
  reply.add_predictions()->mutable_scenario()->mutable_parameter_servers()->set_servers(2);
  const std::string bytes = reply.SerializeAsString();
  EXPECT_EQ(UpgradedBytes("stepcast.v1.PredictThroughputResponse", bytes), bytes);
  EXPECT_EQ(UpgradedBytes("stepcast.v1.Nothing", bytes), bytes);
  EXPECT_EQ(UpgradedBytes("stepcast.v1.PredictThroughputResponse", "\xFF\xFF"), "\xFF\xFF");
}

// Bytes with a message's length before them, for fields within fields.
std::string RandomBytes(Random& random, int depth) {
  UnknownFieldSet fields;
  for (uint64_t i = random.Below(6); i > 0; --i) {
    const auto number = static_cast<int>(1 + random.Below(20));
    switch (random.Below(4)) {
      case 0:
        fields.AddVarint(number, random.Below(2) == 0 ? random.Below(16) : ~uint64_t{0});
        break;
      case 1:
        fields.AddFixed64(number, random.Below(uint64_t{1} << 40));
        break;
      default:
        *fields.AddLengthDelimited(number) =
            depth > 0 ? RandomBytes(random, depth - 1) : std::string(random.Below(9), 'x');
    }
  }
  return BytesOf(fields);
}

TEST(UpgradedBytesTest, RandomBytesAreUpgradedOnceOrNotAtAll) {
  int changed = 0;
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    Random random({seed});
    std::string bytes = RandomBytes(random, 5);
    if (random.Below(4) == 0 && !bytes.empty())
      bytes[random.Below(bytes.size())] = static_cast<char>(random.Below(256));
    for (const char* const type :
         {"stepcast.v1.StartJobRequest", "stepcast.v1.PredictThroughputResponse",
          "stepcast.v1.RecommendWorkersResponse", "stepcast.v1.OptimizeOrderResponse",
          "stepcast.v1.AllocateWorkersResponse", "stepcast.v1.Scenario"}) {
      const std::string once = UpgradedBytes(type, bytes);
      ASSERT_EQ(UpgradedBytes(type, once), once) << "seed " << seed << " as " << type;
      changed += once != bytes ? 1 : 0;
    }
  }
  EXPECT_GT(changed, 1000) << "else the bytes never held a former field";
}

TEST(RefuseFormerFieldsTest, EachIsNamedWithWhatItIsCalledNow) {
  const std::vector<std::tuple<int, std::string, std::string>> names = {
      {2, "parameter_servers (a number)", "parameter_servers.servers"},
      {4, "parsing_overhead", "parameter_servers.parsing_overhead"},
      {5, "synchronization", "parameter_servers.synchronization"},
      {6, "multiplexing", "parameter_servers.whole_stream, window or round_robin"},
      {7, "window_bytes", "parameter_servers.window.bytes or round_robin.window_bytes"},
      {8, "quantum_bytes", "parameter_servers.window.quantum_bytes or round_robin.quantum_bytes"},
      {9, "link_sharing", "parameter_servers.equal, first_come or turns"},
      {10, "transfer_order", "parameter_servers.transfer_order"},
      {11, "transfer_priorities", "parameter_servers.transfer_priorities"},
      {14, "turn_bytes", "parameter_servers.turns.bytes"},
  };
  for (const auto& [number, before, now] : names) {
    FaultList list;
    RefuseFormerFields(Former().Number(number, 1).Read(), "scenarios[2]", list);
    const std::vector<Fault> faults = std::move(list).Take();
    ASSERT_EQ(faults.size(), 1U) << before;
    EXPECT_EQ(faults[0].field, "scenarios[2]");
    EXPECT_EQ(faults[0].description,
              absl::StrCat("field ", number, ", ", before,
                           ", is of the former contract; today it is ", now));
  }
}

TEST(RefuseFormerFieldsTest, SeveralAreSeveralFaultsAndOtherUnknownFieldsNone) {
  FaultList list;
  RefuseFormerFields(Former().Number(5, 2).Number(7, 9).Number(99, 1).Read(), "scenario", list);
  EXPECT_EQ(std::move(list).Take().size(), 2U);
  FaultList none;
  RefuseFormerFields(Former().Number(99, 1).Read(), "scenario", none);
  RefuseFormerFields(FromText("parameter_servers { window {} }"), "scenario", none);
  EXPECT_TRUE(none.empty());
}

// A job is kept as it was sent, so all of it is looked at first.
TEST(RefuseFormerFieldsTest, AScenarioIsFoundWhereverARequestHasIt) {
  const v1::Scenario former = Former().Number(5, 2).Read();
  v1::StartJobRequest job;
  job.mutable_allocate_workers()->add_jobs()->mutable_inline_profile()->set_batch_size(1);
  *job.mutable_allocate_workers()->add_jobs()->mutable_scenario() = former;
  const auto fields_of = [](const google::protobuf::Message& message, const std::string& path) {
    FaultList list;
    RefuseFormerFields(message, path, list);
    std::vector<std::string> fields;
    for (const Fault& fault : std::move(list).Take()) fields.push_back(fault.field);
    return fields;
  };
  EXPECT_THAT(fields_of(job, ""), ElementsAre("allocate_workers.jobs[1].scenario"));
  EXPECT_THAT(fields_of(job.allocate_workers(), "it"), ElementsAre("it.jobs[1].scenario"));
  job.mutable_predict_throughput()->add_scenarios();
  *job.mutable_predict_throughput()->mutable_scenario() = former;
  EXPECT_THAT(fields_of(job, ""), ElementsAre("predict_throughput.scenario"));
}

// A request is refused by what converts it, wherever the scenario stands.
TEST(RefuseFormerFieldsTest, EveryScenarioOfARequestIsLookedAt) {
  FaultList list;
  FromWire(Former().Number(5, 2).Read(), "jobs[1].scenario", list);
  std::vector<std::string> fields;
  for (const Fault& fault : std::move(list).Take()) fields.push_back(fault.field);
  EXPECT_THAT(fields, ElementsAre("jobs[1].scenario"));
}

}  // namespace
}  // namespace stepcast::server::earlier_contract_test
