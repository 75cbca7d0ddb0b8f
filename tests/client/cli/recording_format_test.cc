#include "client/cli/recording_format.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/client/support/temporary_directory.h"

namespace stepcast::client::recording_format_test {
namespace {

TEST(RecordingFormatTest, IsToldByTheFirstBytes) {
  EXPECT_EQ(DetectRecordingFormat("node1 -- Input -- a=1\n"), RecordingFormat::kLayers);
  EXPECT_EQ(DetectRecordingFormat("\tnode1 -- node2\r\n"), RecordingFormat::kLayers);
  EXPECT_EQ(DetectRecordingFormat(""), RecordingFormat::kLayers);
  EXPECT_EQ(DetectRecordingFormat(" \n {\"traceEvents\": []}"), RecordingFormat::kTimeline);
  EXPECT_EQ(DetectRecordingFormat("[{\"ph\": \"X\"}]"), RecordingFormat::kTimeline);
  // step_stats { dev_stats { device: "/job" } }, whose first byte is a line feed.
  EXPECT_EQ(DetectRecordingFormat(std::string("\x0a\x08\x0a\x06\x0a\x04/job")),
            RecordingFormat::kRunMetadata);
}

TEST(RecordingFormatTest, AFileThatIsNotThereHasNone) {
  const TemporaryDirectory directory;
  EXPECT_EQ(DetectRecordingFormatOf(directory.Write("layers", "node1")).value(),
            RecordingFormat::kLayers);
  EXPECT_TRUE(absl::IsNotFound(DetectRecordingFormatOf(directory.Path("nowhere")).status()));
}

}  // namespace
}  // namespace stepcast::client::recording_format_test
