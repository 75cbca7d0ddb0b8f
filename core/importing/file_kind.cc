#include "core/importing/file_kind.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace stepcast {

namespace {

// clang-tidy 14 does not see that literals use it.
using std::string_view_literals::operator""sv;  // NOLINT(misc-unused-using-decls)

constexpr std::pair<std::string_view, FileKind> kMagics[] = {
    {"\x1f\x8b"sv, FileKind::kGzip},
    {"PK\x03\x04"sv, FileKind::kZip},
    {"BZh"sv, FileKind::kBzip2},
    {"\xfd\x37zXZ"sv, FileKind::kXz},
    {"\x28\xb5\x2f\xfd"sv, FileKind::kZstd},
    {"\x80\x02"sv, FileKind::kPickle},
    {"\x80\x04"sv, FileKind::kPickle},
    {"\x89HDF\r\n"sv, FileKind::kHdf5},
    {"SQLite format 3"sv, FileKind::kSqlite}};

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// Control characters other than white space.
bool IsNoText(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && absl::ascii_isspace(byte) == 0) || byte == 0x7f;
}

FileKind KindOfJson(std::string_view text) {
  for (const std::string_view key : {"start_time_since_epoch_in_micros"sv, "NEGOTIATE_"sv}) {
    if (Has(text, key)) return FileKind::kHorovodTimeline;
  }
  if (Has(text, "\"workload_graph\"")) return FileKind::kChakraJson;
  if (Has(text, "\"schema\"") && Has(text, "\"nodes\"")) return FileKind::kPyTorchExecutionTrace;
  for (const std::string_view key :
       {"\"schemaVersion\""sv, "\"deviceProperties\""sv, "\"cpu_op\""sv, "\"distributedInfo\""sv,
        "\"aten::"sv, "\"ProfilerStep#"sv}) {
    if (Has(text, key)) return FileKind::kPyTorchTrace;
  }
  if (Has(text, "\"traceEvents\"") || (Has(text, "\"ph\"") && Has(text, "\"pid\"")))
    return FileKind::kTimeline;
  for (const std::string_view key : {"\"batchSize\""sv, "\"batch_size\""sv, "\"sizeBytes\""sv,
                                     "\"waitingFor\""sv, "\"parameterServers\""sv}) {
    if (Has(text, key)) return FileKind::kProfileJson;
  }
  return FileKind::kJson;
}

FileKind KindOfText(std::string_view text) {
  if (StartsWith(text, "node") && Has(text, " -- ")) return FileKind::kLayers;
  for (const std::string_view field : {"batch_size:"sv, "operations {"sv, "platform {"sv}) {
    if (StartsWith(text, field) || Has(text, std::string("\n").append(field)))
      return FileKind::kProfileText;
  }
  const std::string_view line = text.substr(0, text.find('\n'));
  return Has(line, "\t") || Has(line, ",") ? FileKind::kTable : FileKind::kText;
}

}  // namespace

FileKind KindOf(std::string_view first_bytes) {
  if (first_bytes.empty()) return FileKind::kEmpty;
  for (const auto& [magic, kind] : kMagics) {
    if (StartsWith(first_bytes, magic)) return kind;
  }
  if (std::any_of(first_bytes.begin(), first_bytes.end(), IsNoText)) return FileKind::kBinary;
  const size_t begin = first_bytes.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return FileKind::kText;
  const std::string_view text = first_bytes.substr(begin);
  return text.front() == '{' || text.front() == '[' ? KindOfJson(text) : KindOfText(text);
}

std::string_view TextOf(FileKind kind) {
  switch (kind) {
    case FileKind::kUnknown:
      return "something unknown";
    case FileKind::kEmpty:
      return "nothing: there are no bytes";
    case FileKind::kLayers:
      return "PipeDream's layer times";
    case FileKind::kTimeline:
      return "JSON of trace events, as TensorFlow 1's timeline and Chrome write";
    case FileKind::kPyTorchTrace:
      return "a trace of PyTorch's profiler";
    case FileKind::kPyTorchExecutionTrace:
      return "an execution trace of PyTorch, which has no times";
    case FileKind::kHorovodTimeline:
      return "Horovod's timeline";
    case FileKind::kChakraJson:
      return "a Chakra execution trace";
    case FileKind::kProfileJson:
      return "a Stepcast profile in proto JSON";
    case FileKind::kProfileText:
      return "a Stepcast profile in proto text";
    case FileKind::kJson:
      return "JSON";
    case FileKind::kTable:
      return "a table in text, its columns divided by tabs or commas";
    case FileKind::kText:
      return "text";
    case FileKind::kBinary:
      return "binary data";
    case FileKind::kGzip:
      return "gzip, within gzip";
    case FileKind::kZip:
      return "a zip archive, as PyTorch's checkpoints are";
    case FileKind::kBzip2:
      return "data compressed by bzip2";
    case FileKind::kXz:
      return "data compressed by xz";
    case FileKind::kZstd:
      return "data compressed by zstd";
    case FileKind::kPickle:
      return "a Python pickle";
    case FileKind::kHdf5:
      return "an HDF5 file";
    case FileKind::kSqlite:
      return "an SQLite database";
  }
  return "something unknown";
}

absl::StatusOr<size_t> KindSource::Read(char* buffer, size_t size) {
  absl::StatusOr<size_t> read = source_.Read(buffer, size);
  if (read.ok() && first_.size() < kKindBytes)
    first_.append(buffer, std::min(*read, kKindBytes - first_.size()));
  return read;
}

}  // namespace stepcast
