#include "core/importing/file_kind.h"

#include <gtest/gtest.h>

#include <set>
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
      {"{\"model\": \"m\", \"batchSize\": 8", FileKind::kProfileJson},
      {"{\"jobs\": []}", FileKind::kJson},
      {"model: \"m\"\nbatch_size: 8\noperations {\n", FileKind::kProfileText},
      {"recv/a\t3\nrecv/b\t4\n", FileKind::kTable},
      {"size_bytes,seconds\n", FileKind::kTable},
      {"some words", FileKind::kText},
      {"\x0a\x03\x01\x02\x03"sv, FileKind::kBinary},
      {"\x1f\x8b\x08"sv, FileKind::kGzip},
      {"PK\x03\x04\x14"sv, FileKind::kZip},
      {"\x80\x02}q"sv, FileKind::kPickle},
  };
  for (const auto& [bytes, kind] : cases) EXPECT_EQ(TextOf(KindOf(bytes)), TextOf(kind)) << bytes;
}

TEST(FileKindTest, EachKindHasAText) {
  std::set<std::string_view> texts;
  for (int kind = 0; kind <= static_cast<int>(FileKind::kSqlite); ++kind)
    texts.insert(TextOf(static_cast<FileKind>(kind)));
  EXPECT_EQ(texts.size(), static_cast<size_t>(FileKind::kSqlite) + 1);
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
  EXPECT_EQ(looked_at.kind(), FileKind::kPyTorchTrace);
}

}  // namespace
}  // namespace stepcast::file_kind_test
