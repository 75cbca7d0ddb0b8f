#include "client/cli/input_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/client/support/text_proto.h"

namespace stepcast::client::input_files_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(PriorityFileTest, HasANameATabAndARankALine) {
  const auto priorities = ParsePriorities("recv/a\t2\n# comment\n\nrecv b\t-1\r\nrecv\tc\t3");
  ASSERT_TRUE(priorities.ok()) << priorities.status();
  EXPECT_THAT(*priorities, ElementsAre(Pair("recv\tc", 3), Pair("recv b", -1), Pair("recv/a", 2)));
}

TEST(PriorityFileTest, WhatIsWrongIsSaidWithItsLine) {
  EXPECT_THAT(std::string(ParsePriorities("a\t1\nb 2").status().message()),
              HasSubstr("line 2: no tab"));
  EXPECT_THAT(std::string(ParsePriorities("a\tone").status().message()),
              HasSubstr("line 1: \"one\" is not a rank"));
  EXPECT_THAT(std::string(ParsePriorities("a\t1\n\na\t2").status().message()),
              HasSubstr("line 3: \"a\" comes twice"));
  EXPECT_FALSE(ParsePriorities("a\t99999999999").ok());
  EXPECT_LT(ParsePriorities("a\t" + std::string(10'000, 'x')).status().message().size(), 200u)
      << "a file is not repeated whole";
}

TEST(PriorityFileTest, ReadsWhatItWrote) {
  const auto order = Proto<v1::TransferOrderResult>(R"pb(
    transfers { name: "z" }
    transfers { name: "a" parameter_server: 1 }
    transfers { name: "m" rank: 1 server_rank: 1 })pb");
  EXPECT_EQ(*PriorityText(order), "z\t0\na\t0\nm\t1\n");
  EXPECT_THAT(*ParsePriorities(*PriorityText(order)),
              ElementsAre(Pair("a", 0), Pair("m", 1), Pair("z", 0)));
}

TEST(PriorityFileTest, RefusesToWriteWhatItWouldReadAsSomethingElse) {
  for (const char* name : {"#a", "a\n#b", "\n"}) {
    v1::TransferOrderResult order;
    order.add_transfers()->set_name(name);
    EXPECT_FALSE(PriorityText(order).ok()) << name;
  }
}

// The measurement of so many bytes that took so long.
auto Is(int64_t size_bytes, double seconds) {
  v1::ParsingMeasurement measurement;
  measurement.set_size_bytes(size_bytes);
  measurement.set_seconds(seconds);
  return EqualsProto(measurement);
}

TEST(MeasurementFileTest, SeparatorsTitlesCommentsAndLineEndsMayVary) {
  EXPECT_THAT(ParseMeasurements("size_bytes,seconds\r\n1,0.5\r\n# no\n\n 2 ; 1e-3 \n3\t4").value(),
              ElementsAre(Is(1, 0.5), Is(2, 1e-3), Is(3, 4)));
  EXPECT_THAT(ParseMeasurements("").value(), ElementsAre());
}

TEST(MeasurementFileTest, WhatIsNoMeasurementIsNamedByItsLine) {
  const auto says = [](const char* text) {
    return std::string(ParseMeasurements(text).status().message());
  };
  EXPECT_THAT(says("1,2\nsize,seconds\n"),
              HasSubstr("line 2 is not \"size_bytes,seconds\": \"size,seconds\""));
  EXPECT_THAT(says("1,2,3"), HasSubstr("line 1"));
  EXPECT_THAT(says("1.5,2"), HasSubstr("\"1.5,2\""));
  EXPECT_THAT(says("1"), HasSubstr("\"1\""));
  EXPECT_THAT(says("1,\x01"), HasSubstr("\\x01"));
}

// Their meaning is for the service to judge.
TEST(MeasurementFileTest, NumbersThatMakeNoSenseAreStillMeasurements) {
  EXPECT_THAT(ParseMeasurements("-1,-2").value(), ElementsAre(Is(-1, -2)));
}

TEST(MeasurementFileTest, TellsMeasurementsFromProfiles) {
  EXPECT_TRUE(LooksLikeMeasurements("1000,3e-6"));
  EXPECT_TRUE(LooksLikeMeasurements("# comment\n\nsize_bytes;seconds\n1;2"));
  EXPECT_TRUE(LooksLikeMeasurements("-1,2"));
  EXPECT_FALSE(LooksLikeMeasurements("{\"batchSize\": 1, \"a\": 2}"));
  EXPECT_FALSE(LooksLikeMeasurements("batch_size: 1, model: 2"));
  EXPECT_FALSE(LooksLikeMeasurements(std::string_view("\x0a\x05,abc", 6)));
  EXPECT_FALSE(LooksLikeMeasurements(""));
}

TEST(VariableFileTest, ALineIsANameAndItsBytes) {
  EXPECT_THAT(ParseVariableSizes("# sizes\n\nlayer 1/weights  802816\r\nb\t2KiB").value(),
              ElementsAre(Pair("b", 2048), Pair("layer 1/weights", 802816)));
  EXPECT_TRUE(ParseVariableSizes("")->empty());
}

TEST(VariableFileTest, WhatIsNoSuchLineIsRefusedWithItsNumber) {
  EXPECT_THAT(ParseVariableSizes("a 1\nb").status().message(),
              HasSubstr("line 2 is not `NAME BYTES`"));
  EXPECT_THAT(ParseVariableSizes("a many").status().message(), HasSubstr("line 1"));
  EXPECT_THAT(ParseVariableSizes("a 1\na 2").status().message(),
              HasSubstr("line 2: \"a\" is there twice"));
}

TEST(RecordingFormatTest, IsToldByTheFirstBytes) {
  EXPECT_EQ(DetectRecordingFormat("node1 -- Input -- a=1\n"), RecordingFormat::kLayers);
  EXPECT_EQ(DetectRecordingFormat("\tnode1 -- node2\r\n"), RecordingFormat::kLayers);
  EXPECT_EQ(DetectRecordingFormat(""), RecordingFormat::kLayers);
  EXPECT_EQ(DetectRecordingFormat("\xef\xbb\xbf[{\"ph\": \"X\"}]"), RecordingFormat::kTimeline);
  EXPECT_EQ(DetectRecordingFormat(" \n {\"traceEvents\": []}"), RecordingFormat::kTimeline);
  EXPECT_EQ(DetectRecordingFormat("[{\"ph\": \"X\"}]"), RecordingFormat::kTimeline);
  EXPECT_EQ(DetectRecordingFormat("{\"schemaVersion\": 1, \"traceEvents\": []}"),
            RecordingFormat::kPyTorch);
  EXPECT_EQ(DetectRecordingFormat("{\"workload_graph\": []}"), RecordingFormat::kChakra);
  EXPECT_EQ(DetectRecordingFormat("[\n{\"ph\": \"B\", \"name\": \"NEGOTIATE_ALLREDUCE\""),
            RecordingFormat::kHorovod);
  // step_stats { dev_stats { device: "/job" } }, whose first byte is a line feed.
  EXPECT_EQ(DetectRecordingFormat(std::string("\x0a\x08\x0a\x06\x0a\x04/job")),
            RecordingFormat::kRunMetadata);
}

}  // namespace
}  // namespace stepcast::client::input_files_test
