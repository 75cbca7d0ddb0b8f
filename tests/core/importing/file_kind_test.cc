#include "core/importing/file_kind.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace stepcast::file_kind_test {
namespace {

using std::string_view_literals::operator""sv;

TEST(FileKindTest, EachKindIsKnownByItsFirstBytes) {
  const std::vector<std::pair<std::string_view, FileKind>> cases{
      {"", FileKind::kEmpty},
      {"node1 -- Input0 -- forward_compute_time=1.0", FileKind::kLayers},
      {"{\"traceEvents\": [{\"ph\": \"M\"", FileKind::kTimeline},
      {"\n[{\"ph\": \"X\", \"pid\": 1,", FileKind::kTimeline},
      {"{\"schemaVersion\": 1, \"deviceProperties\": [], \"traceEvents\": [",
       FileKind::kPyTorchTrace},
      {"{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\"", FileKind::kPyTorchTrace},
      {"[\n{\"args\": {\"start_time_since_epoch_in_micros\":1}}", FileKind::kHorovodTimeline},
      {"{\"workload_graph\": [", FileKind::kChakraJson},
      {"[{\"name\": \"aten::zeros\", \"ph\": \"X\", \"pid\": \"CPU functions\"",
       FileKind::kPyTorchTrace},
      {"{\"schema\": \"1.0.1\", \"nodes\": [{\"name\": "
       "\"[pytorch|profiler|execution_trace|thread]\"",
       FileKind::kPyTorchExecutionTrace},
      {"[{\"name\": \"PUSH\", \"ph\": \"X\", \"pid\": \"Comm.gradient_1\"",
       FileKind::kBytePsTimeline},
      // A file that is read may name a kind that is not.
      {"{\"schemaVersion\": 1, \"traceEvents\": [{\"name\": \"Comm.byteps.conv\"",
       FileKind::kPyTorchTrace},
      {"{\"traceEvents\": [{\"name\": \"process_name\", \"args\": {\"name\": \"gpu/0\"}}",
       FileKind::kMxnetTimeline},
      {"{\"traceEvents\": [{\"ph\": \"X\", \"args\": {\"BeginNs\": \"1\", \"EndNs\": \"2\"}}",
       FileKind::kRocprof},
      {"{\"rocprofiler-sdk-tool\": [", FileKind::kRocprof},
      // Its identity is a hash, of 64 bits.
      {"\x0a\x20\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\x09/host:CPU"sv,
       FileKind::kXPlane},
      {"{\"model\": \"m\", \"batchSize\": 8", FileKind::kProfileJson},
      {"{\"jobs\": []}", FileKind::kJson},
      {"model: \"m\"\nbatch_size: 8\noperations {\n", FileKind::kProfileText},
      {"recv/a\t3\nrecv/b\t4\n", FileKind::kTable},
      {"size_bytes,seconds\n", FileKind::kTable},
      {"some words", FileKind::kText},
      {"# nThread 1\n#  (us)\n#  size  count  time   algbw   busbw #wrong\n", FileKind::kBenchmark},
      {"$ mpirun, twice\n# OSU MPI Allreduce Latency Test v7.0\n", FileKind::kBenchmark},
      {"#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part\n", FileKind::kBenchmark},
      {"\x0a\x03\x01\x02\x03"sv, FileKind::kBinary},
      {"\x1f\x8b\x08"sv, FileKind::kGzip},
      {"PK\x03\x04\x14"sv, FileKind::kZip},
      {"\x80\x02}q"sv, FileKind::kPickle},
      {"\xef\xbb\xbfnode1 -- Input0 -- forward_compute_time=1.0", FileKind::kLayers},
      {"\xef\xbb\xbf{\"model\": \"m\", \"batchSize\": 8", FileKind::kProfileJson},
      {"\xef\xbb\xbf", FileKind::kEmpty},
      {"\xff\xfe{\0\"\0"sv, FileKind::kUtf16},
      {"\xfe\xff\0{\0\""sv, FileKind::kUtf16},
      {"{\0\"\0"sv, FileKind::kUtf16},
      {"\0{\0\""sv, FileKind::kUtf16},
      {"\xff\xfe\0\0{\0\0\0"sv, FileKind::kUtf32},
      {"{\0\0\0\"\0\0\0"sv, FileKind::kUtf32},
      {"\n<!DOCTYPE html><html>", FileKind::kHtml},
      {"<HTML><head><title>Sign in", FileKind::kHtml},
      {"<?xml version=\"1.0\"?>", FileKind::kXml},
      {"<what it is", FileKind::kText},
      {"\x89PNG\r\n\x1a\n"sv, FileKind::kImage},
      {"\xff\xd8\xff\xe0"sv, FileKind::kImage},
      {"%PDF-1.7", FileKind::kPdf},
      {"\x7f"
       "ELF\x02\x01\x01"sv,
       FileKind::kProgram},
      {"7z\xbc\xaf\x27\x1c"sv, FileKind::kSevenZip},
      {"\xfd\x37zXZ\0"sv, FileKind::kXz},
      {"\x28\xb5\x2f\xfd\x04"sv, FileKind::kZstd},
  };
  for (const auto& [bytes, kind] : cases) EXPECT_EQ(TextOf(KindOf(bytes)), TextOf(kind)) << bytes;
}

constexpr auto kLastKind = FileKind::kProgram;

TEST(FileKindTest, EachKindHasAText) {
  std::set<std::string_view> texts;
  for (int kind = 0; kind <= static_cast<int>(kLastKind); ++kind)
    texts.insert(TextOf(static_cast<FileKind>(kind)));
  EXPECT_EQ(texts.size(), static_cast<size_t>(kLastKind) + 1);
}

TEST(FileKindTest, ATarIsKnownByWhatIsFartherIn) {
  std::string tar("trace.json");
  tar.resize(257);
  EXPECT_EQ(KindOf(tar + "ustar"), FileKind::kTar);
  EXPECT_EQ(KindOf(tar), FileKind::kBinary);
  EXPECT_EQ(KindOf(std::string(4096, '\0')), FileKind::kZeros);
}

TEST(FileKindTest, WhatNoReaderTakesIsRefusedWithTheRemedy) {
  EXPECT_EQ(RefusalOf(FileKind::kEmpty), "the file is empty");
  EXPECT_EQ(RefusalOf(FileKind::kUtf16), "the file is text in UTF-16: save it as UTF-8");
  EXPECT_EQ(RefusalOf(FileKind::kXz),
            "the file is data compressed by xz: decompress it, or compress it by gzip alone");
  EXPECT_EQ(RefusalOf(FileKind::kTar),
            "the file is a tar archive: unpack it, and give the file in it");
  EXPECT_EQ(RefusalOf(FileKind::kImage), "the file is an image");
  for (const FileKind kind : {FileKind::kXPlane, FileKind::kBytePsTimeline,
                              FileKind::kMxnetTimeline, FileKind::kRocprof}) {
    EXPECT_EQ(RefusalOf(kind), std::string("the file is ")
                                   .append(TextOf(kind))
                                   .append(", which is not read: record with PyTorch's profiler, "
                                           "Horovod's timeline or RunMetadata of TensorFlow, or "
                                           "write the layers' times as text (--format layers)"));
  }
  for (const FileKind kind : {FileKind::kUnknown, FileKind::kLayers, FileKind::kPyTorchTrace,
                              FileKind::kTable, FileKind::kText, FileKind::kBinary})
    EXPECT_EQ(RefusalOf(kind), "") << TextOf(kind);
}

TEST(FileKindTest, ASourceIsHandedOnWholeWhileItsBeginningIsKept) {
  const std::string text = "{\"schemaVersion\": 1}" + std::string(3 * kKindBytes, ' ') + "\x01";
  TextSource source(text);
  KindSource looked_at(source);
  std::string read;
  char buffer[1000];
  while (const size_t count = looked_at.Read(buffer, sizeof(buffer)).value())
    read.append(buffer, count);
  EXPECT_EQ(read, text);
  EXPECT_EQ(looked_at.Kind().value(), FileKind::kPyTorchTrace);
}

TEST(FileKindTest, ANumberThatJsonDoesNotHaveIsFoundOutsideOfTexts) {
  EXPECT_EQ(NotNumberIn(R"({"a": NaN})"), "NaN at byte 6 is not a number of JSON");
  EXPECT_EQ(NotNumberIn(R"(["NaN", "\"NaN", -Infinity])"),
            "Infinity at byte 18 is not a number of JSON");
  EXPECT_EQ(NotNumberIn("[-nan, 1]"), "nan at byte 2 is not a number of JSON");
  EXPECT_EQ(NotNumberIn("[inf]"), "inf at byte 1 is not a number of JSON");
  EXPECT_EQ(NotNumberIn(R"({"NaN": "Infinity"})"), "");
  EXPECT_EQ(NotNumberIn("\"\\"), "");
}

// Hands on a byte at a time, then fails.
class BrokenSource final : public ByteSource {
 public:
  explicit BrokenSource(std::string_view text) : text_(text) {}
  absl::StatusOr<size_t> Read(char* buffer, size_t) override {
    if (text_.empty()) return absl::DataLossError("broken");
    *buffer = text_.front();
    text_.remove_prefix(1);
    return 1;
  }

 private:
  std::string_view text_;
};

TEST(FileKindTest, ASourceLosesItsMarkAndKeepsItsFailure) {
  BrokenSource source("\xef\xbb\xbfnode1 -- Conv");
  KindSource looked_at(source);
  EXPECT_EQ(looked_at.Kind().value(), FileKind::kLayers);
  char buffer[64];
  const size_t size = looked_at.Read(buffer, sizeof(buffer)).value();
  EXPECT_EQ(std::string_view(buffer, size), "node1 -- Conv");
  EXPECT_EQ(looked_at.Read(buffer, sizeof(buffer)).status(), absl::DataLossError("broken"));
  BrokenSource nothing("");
  EXPECT_EQ(KindSource(nothing).Kind().status(), absl::DataLossError("broken"));
}

}  // namespace
}  // namespace stepcast::file_kind_test
