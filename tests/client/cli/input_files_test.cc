// Bad files, and the reason that each is refused with by every reader.
#include "client/cli/input_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"

#include "stepcast/error_details.h"
#include "stepcast/json.h"
#include "tests/client/support/temporary_directory.h"
#include "tests/client/support/text_proto.h"
#include "tests/client/support/tiny_profile.h"

namespace stepcast::client::input_files_test {
namespace {

using std::string_view_literals::operator""sv;
using testing::HasSubstr;

constexpr char kGzip[] = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03";

std::string Utf16(std::string_view text) {
  std::string wide("\xff\xfe");
  for (const char c : text) wide.append({c, '\0'});
  return wide;
}

class InputReaderTest : public testing::Test {
 protected:
  // The failure of each reader of the file.
  std::vector<absl::Status> Failures(const std::string& path) const {
    return {OpenInput(path).status(), ReadTextInput(path, "a table").status(),
            ReadProfileInput(path).status(), ReadSecretInput(path).status()};
  }

  TemporaryDirectory directory_;
  const std::string tiny_ = ToJson(TinyProfile());
};

TEST_F(InputReaderTest, WhatNoReaderTakesIsNamedByAll) {
  const std::vector<std::pair<std::string, std::string_view>> cases{
      {"", "the file is empty"},
      {"\xef\xbb\xbf", "the file is empty"},
      {Utf16(tiny_), "the file is text in UTF-16: save it as UTF-8"},
      {Utf16(tiny_).substr(2), "the file is text in UTF-16: save it as UTF-8"},
      {std::string("\xff\xfe\0\0{\0\0\0"sv), "the file is text in UTF-32"},
      {std::string(1 << 20, '\0'), "the file is zero bytes alone"},
      {"<!doctype html><html><body>Sign in</body></html>", "the file is a page of HTML"},
      {"PK\x03\x04zipped", "the file is a zip archive"},
      {"\xfd\x37zXZ", "the file is data compressed by xz: decompress it"},
      {"\x28\xb5\x2f\xfd", "the file is data compressed by zstd: decompress it"},
      {"\x89PNG\r\n\x1a\n", "the file is an image"},
      {"\x7f"
       "ELF\x02",
       "the file is a program"},
      {R"({"rocprofiler-sdk-tool": []})", "the file is a trace of ROCm's rocprof, which is not"},
      {std::string("\x0a\x0d\x12\x09/host:CPU"), "the file is an XPlane"},
      {std::string(kGzip, 10), "its gzip data is cut short"},
      {std::string(kGzip, 10) + "\xff\xff\xff\xff\xff\xff", "its gzip data is damaged"}};
  for (const auto& [content, why] : cases) {
    const std::string path = directory_.Write("bad", content);
    for (const absl::Status& status : Failures(path)) {
      EXPECT_THAT(std::string(status.message()),
                  testing::StartsWith(absl::StrCat("cannot read ", path, ": ", std::string(why))));
      EXPECT_EQ(GetErrorDetails(status).reason, "FILE_UNREADABLE") << status;
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    }
  }
}

TEST_F(InputReaderTest, APathThatIsNotAFileIsNamedByAll) {
  const std::string link = directory_.Path("link");
  std::filesystem::create_symlink("/nowhere/at/all", link);
  const std::string loop = directory_.Path("loop");
  std::filesystem::create_symlink("loop", loop);
  const std::string socket_path = directory_.Path("socket");
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, socket_path.c_str(), sizeof(address.sun_path) - 1);
  const int listening = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(listening, static_cast<sockaddr*>(static_cast<void*>(&address)), sizeof(address)),
            0);
  const std::vector<std::pair<std::string, std::string>> cases{
      {directory_.Path(""), "it is a directory"},
      {directory_.Path("none"), "there is no such file"},
      {link, "it is a link to /nowhere/at/all, which is not there"},
      {loop, "it is a link that leads to itself"},
      {socket_path, "it is a socket"},
      {"/dev/zero", "it is a device"},
      {"/dev/null", "the file is empty"}};
  for (const auto& [path, why] : cases) {
    for (const absl::Status& status : Failures(path)) {
      EXPECT_EQ(status.message(), absl::StrCat("cannot read ", path, ": ", why));
    }
  }
  close(listening);
  EXPECT_EQ(WhyNoFile(directory_.Path("none")),
            absl::StrCat("there is no file \"", directory_.Path("none"), "\""));
  EXPECT_EQ(WhyNoFile("/"), "cannot read \"/\": it is a directory");
  EXPECT_THAT(WhyNoFile(link), HasSubstr("it is a link to /nowhere/at/all"));
  EXPECT_FALSE(IsFile(directory_.Path("")));
  EXPECT_TRUE(IsFile("-"));
}

TEST_F(InputReaderTest, PermissionIsTheReasonWhereItIs) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read all";
  const std::string path = directory_.Write("closed", "a\t1\n");
  chmod(path.c_str(), 0);
  for (const absl::Status& status : Failures(path)) {
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("permission denied"));
  }
}

TEST_F(InputReaderTest, AMarkIsPassedOver) {
  const std::string mark = "\xef\xbb\xbf";
  EXPECT_EQ(ReadTextInput(directory_.Write("a", mark + "a\t1\n"), "a table").value(), "a\t1\n");
  for (const std::string& text : {tiny_, TinyProfile().DebugString()}) {
    const auto profile = ReadProfileInput(directory_.Write("b", mark + text));
    ASSERT_TRUE(profile.ok()) << profile.status();
    EXPECT_EQ(ToJson(*profile), tiny_);
  }
}

TEST_F(InputReaderTest, ATextOfAnotherKindIsNamed) {
  const std::string noise = directory_.Write("noise", "\x01\x9c\x02 x");
  EXPECT_THAT(std::string(ReadTextInput(noise, "a table").status().message()),
              HasSubstr("it looks like binary data, and not a table"));
  const std::string trace = directory_.Write("trace", R"({"schemaVersion": 1, "traceEvents": []})");
  EXPECT_THAT(std::string(ReadTextInput(trace, "a table").status().message()),
              HasSubstr("it looks like a trace of PyTorch's profiler, and not a table"));
  EXPECT_THAT(std::string(ReadProfileInput(trace).status().message()),
              HasSubstr("not a profile: stepcast profile import makes one of it"));
  EXPECT_THAT(std::string(ReadProfileInput(directory_.Write("c", "a,b\n")).status().message()),
              HasSubstr("; it looks like a table in text"));
}

// Looked at before it is read: a sparse file of so many bytes holds none.
TEST_F(InputReaderTest, ALargeFileIsRefusedWithTheLimit) {
  const std::string path =
      directory_.Write("large", "{\"batchSize\": 8," + std::string(size_t{1} << 20, ' '));
  ASSERT_EQ(truncate(path.c_str(), int64_t{2} << 30), 0);
  const std::vector<std::pair<absl::Status, std::string>> cases{
      {ReadProfileInput(path).status(), "max_profile_file_bytes = 1073741824"},
      {ReadSecretInput(path).status(), "max_credential_bytes = 1048576"}};
  for (const auto& [status, limit] : cases) {
    SCOPED_TRACE(status.ToString());
    EXPECT_TRUE(absl::IsOutOfRange(status));
    EXPECT_EQ(GetErrorDetails(status).reason, "FILE_TOO_LARGE");
    EXPECT_THAT(std::string(status.message()), HasSubstr("its 2147483648 bytes are above"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(limit));
  }
}

TEST_F(InputReaderTest, APipeIsReadOnceAndKnownByItsFirstBytes) {
  const std::string path = directory_.Path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::string content = R"({"schemaVersion": 1, "traceEvents": [)";
  content.append(6 << 20, ' ').append("]}");
  std::thread writer([&] { std::ofstream(path, std::ios::binary) << content; });
  const auto stream = OpenInput(path);
  ASSERT_TRUE(stream.ok()) << stream.status();
  EXPECT_EQ((*stream)->size(), -1);
  EXPECT_EQ(KindOf(FirstBytes(**stream).value()), FileKind::kPyTorchTrace);
  std::string block(100'000, '\0');
  ASSERT_TRUE((*stream)->Read(block.data(), block.size()).ok());
  ASSERT_TRUE((*stream)->Rewind().ok()) << "what was read is kept";
  std::string read;
  while (true) {
    const size_t size = (*stream)->Read(block.data(), block.size()).value();
    if (size == 0) break;
    read.append(block, 0, size);
  }
  writer.join();
  EXPECT_TRUE(read == content);
  EXPECT_THAT(std::string((*stream)->Rewind().message()), HasSubstr("this is a pipe"));
}

TEST_F(InputReaderTest, FaultsOfAFileNameTheFile) {
  absl::Status status = absl::InvalidArgumentError("chunk: not JSON");
  google::rpc::BadRequest bad;
  for (const char* field : {"chunk", "line 3", "recordings[1]", "batch_size"})
    bad.add_field_violations()->set_field(field);
  status.SetPayload("type.googleapis.com/google.rpc.BadRequest",
                    absl::Cord(bad.SerializeAsString()));
  const absl::Status named = NamingFiles(
      status, {{"chunk", "a.json"}, {"recording", "a.json"}, {"recordings[1]", "b.json"}});
  EXPECT_EQ(named.message(), "a.json: not JSON");
  std::vector<std::string> fields;
  for (const FieldViolation& violation : GetErrorDetails(named).violations)
    fields.push_back(violation.field);
  EXPECT_THAT(fields, testing::ElementsAre("a.json", "a.json, line 3", "b.json", "batch_size"));
}

// Whatever becomes of a file is a profile or a reason.
TEST_F(InputReaderTest, BrokenFilesAreReadOrRefused) {
  const std::string binary = TinyProfile().SerializeAsString();
  int refused = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    std::string bytes = seed % 2 == 0 ? tiny_ : binary;
    for (uint32_t count = 1 + random() % 6; count > 0; --count)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (seed % 3 == 0) bytes.resize(random() % bytes.size());
    if (seed % 5 == 0) bytes.insert(0, seed % 10 == 0 ? "\xef\xbb\xbf" : "\xff\xfe");
    const std::string path = directory_.Write("broken", bytes);
    for (const absl::Status& status : Failures(path)) {
      if (status.ok()) continue;
      ++refused;
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << seed << status;
      EXPECT_THAT(GetErrorDetails(status).reason,
                  testing::AnyOf("FILE_UNREADABLE", "PROFILE_UNREADABLE"))
          << seed;
    }
  }
  EXPECT_GT(refused, 1000);
}

using testing::ElementsAre;
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
