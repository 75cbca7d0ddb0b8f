#include "core/importing/file_kind.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "core/importing/layers/layer_table.h"

namespace stepcast {

namespace {

// clang-tidy 14 does not see that literals use it.
using std::string_view_literals::operator""sv;  // NOLINT(misc-unused-using-decls)

constexpr std::pair<FileKind, std::string_view> kTexts[] = {
    {FileKind::kUnknown, "something unknown"sv},
    {FileKind::kEmpty, "an empty file"sv},
    {FileKind::kLayers, "measured times of layers"sv},
    {FileKind::kTimeline, "JSON of trace events, as TensorFlow 1's timeline and Chrome write"sv},
    {FileKind::kPyTorchTrace, "a trace of PyTorch's profiler"sv},
    {FileKind::kPyTorchExecutionTrace, "an execution trace of PyTorch, which has no times"sv},
    {FileKind::kHorovodTimeline, "Horovod's timeline"sv},
    {FileKind::kChakraJson, "a Chakra execution trace"sv},
    {FileKind::kChakra, "a Chakra execution trace, serialised"sv},
    {FileKind::kXPlane, "an XPlane or its JSON, as the profilers of JAX and TensorFlow 2 write"sv},
    {FileKind::kBytePsTimeline, "a timeline of BytePS"sv},
    {FileKind::kMxnetTimeline, "a timeline of MXNet's profiler"sv},
    {FileKind::kRocprof, "a trace of ROCm's rocprof"sv},
    {FileKind::kProfileJson, "a Stepcast profile in proto JSON"sv},
    {FileKind::kProfileText, "a Stepcast profile in proto text"sv},
    {FileKind::kJson, "JSON"sv},
    {FileKind::kTable, "a table in text, its columns divided by tabs or commas"sv},
    {FileKind::kBenchmark,
     "a benchmark of collectives, which stepcast profile fit-collectives reads"sv},
    {FileKind::kText, "text"sv},
    {FileKind::kBinary, "binary data"sv},
    {FileKind::kZeros, "zero bytes alone, as a download or copy that failed leaves"sv},
    {FileKind::kUtf16, "text in UTF-16"sv},
    {FileKind::kUtf32, "text in UTF-32"sv},
    {FileKind::kHtml, "a page of HTML, as a server's login or error page is"sv},
    {FileKind::kXml, "XML"sv},
    {FileKind::kGzip, "gzip within gzip"sv},
    {FileKind::kZip, "a zip archive, as PyTorch's checkpoints are"sv},
    {FileKind::kBzip2, "data compressed by bzip2"sv},
    {FileKind::kXz, "data compressed by xz"sv},
    {FileKind::kZstd, "data compressed by zstd"sv},
    {FileKind::kSevenZip, "a 7z archive"sv},
    {FileKind::kTar, "a tar archive"sv},
    {FileKind::kPickle, "a Python pickle"sv},
    {FileKind::kHdf5, "an HDF5 file"sv},
    {FileKind::kSqlite, "an SQLite database"sv},
    {FileKind::kImage, "an image"sv},
    {FileKind::kPdf, "a PDF document"sv},
    {FileKind::kProgram, "a program"sv},
};

constexpr std::pair<std::string_view, FileKind> kMagics[] = {
    {"\x1f\x8b"sv, FileKind::kGzip},
    {"PK\x03\x04"sv, FileKind::kZip},
    {"BZh"sv, FileKind::kBzip2},
    {"\xfd\x37zXZ"sv, FileKind::kXz},
    {"\x28\xb5\x2f\xfd"sv, FileKind::kZstd},
    {"7z\xbc\xaf\x27\x1c"sv, FileKind::kSevenZip},
    {"\x80\x02"sv, FileKind::kPickle},
    {"\x80\x04"sv, FileKind::kPickle},
    {"\x89HDF\r\n"sv, FileKind::kHdf5},
    {"SQLite format 3"sv, FileKind::kSqlite},
    {"\x89PNG\r\n"sv, FileKind::kImage},
    {"\xff\xd8\xff"sv, FileKind::kImage},
    {"GIF8"sv, FileKind::kImage},
    {"II*\0"sv, FileKind::kImage},
    {"MM\0*"sv, FileKind::kImage},
    {"%PDF-"sv, FileKind::kPdf},
    {"\x7f"
     "ELF"sv,
     FileKind::kProgram},
    {"MZ\x90\0"sv, FileKind::kProgram},
    {"\xcf\xfa\xed\xfe"sv, FileKind::kProgram},
    // Before UTF-16's, which is the beginning of the first.
    {"\xff\xfe\0\0"sv, FileKind::kUtf32},
    {"\0\0\xfe\xff"sv, FileKind::kUtf32},
    {"\xff\xfe"sv, FileKind::kUtf16},
    {"\xfe\xff"sv, FileKind::kUtf16}};

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// Control characters other than white space and the escapes of colours.
bool IsNoText(char c) {
  constexpr unsigned char kEscape = 0x1b;
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && byte != kEscape && absl::ascii_isspace(byte) == 0) || byte == 0x7f;
}

// True where every `width`-th byte from `at` on is of ASCII, not 0, and all others are 0: ASCII in
// characters of so many bytes, without a mark.
bool IsWide(std::string_view bytes, size_t width, size_t at) {
  if (bytes.size() < 2 * width) return false;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (i % width == at ? byte == 0 || byte >= 0x80 : byte != 0) return false;
  }
  return true;
}

// The next varint of a message, without its sign; -1: there is none.
int64_t TakeVarint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 70 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    if (shift < 63) value |= static_cast<uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80) return static_cast<int64_t>(value);
  }
  return -1;
}

// Reads a length, and the field that begins there.
bool TakesField(std::string_view& bytes, char tag) {
  if (bytes.empty() || bytes.front() != tag) return false;
  bytes.remove_prefix(1);
  return TakeVarint(bytes) >= 0;
}

// GlobalMetadata with its length before it, in which a version stands first: "0.0.4".
bool IsChakra(std::string_view bytes) {
  const int64_t length = TakeVarint(bytes);
  if (length < 3 || bytes.size() < 2 || bytes.front() != '\x0a') return false;
  bytes.remove_prefix(1);
  const int64_t version = TakeVarint(bytes);
  if (version < 1 || version > 32 || version + 2 > length ||
      bytes.size() < static_cast<size_t>(version))
    return false;
  const std::string_view text = bytes.substr(0, static_cast<size_t>(version));
  return text.find_first_not_of("0123456789.") == std::string_view::npos && Has(text, ".");
}

// An XSpace: an XPlane, in it an id, or none, and its name.
bool IsXPlane(std::string_view bytes) {
  if (!TakesField(bytes, '\x0a')) return false;
  if (!bytes.empty() && bytes.front() == '\x08') {
    bytes.remove_prefix(1);
    if (TakeVarint(bytes) < 0) return false;
  }
  if (!TakesField(bytes, '\x12')) return false;
  for (const std::string_view name :
       {"/host:"sv, "/device:"sv, "Task Environment"sv, "#Chip"sv, "/task:"sv}) {
    if (StartsWith(bytes, name)) return true;
  }
  return false;
}

// Other than by its first bytes.
FileKind KindOfBinary(std::string_view bytes) {
  constexpr size_t kTarMagicAt = 257;
  const auto is_zero = [](char c) { return c == 0; };
  // One or two may be all that there is of a message.
  if (bytes.size() > 16 && std::all_of(bytes.begin(), bytes.end(), is_zero))
    return FileKind::kZeros;
  if (IsWide(bytes, 4, 0) || IsWide(bytes, 4, 3)) return FileKind::kUtf32;
  if (IsWide(bytes, 2, 0) || IsWide(bytes, 2, 1)) return FileKind::kUtf16;
  if (bytes.size() > kTarMagicAt && StartsWith(bytes.substr(kTarMagicAt), "ustar"))
    return FileKind::kTar;
  if (IsXPlane(bytes)) return FileKind::kXPlane;
  return IsChakra(bytes) ? FileKind::kChakra : FileKind::kBinary;
}

// Kind of a text that begins with `<`.
FileKind KindOfMarkup(std::string_view text) {
  constexpr size_t kLongest = 9;
  std::string start(text.substr(0, kLongest));
  absl::AsciiStrToLower(&start);
  if (StartsWith(start, "<?xml")) return FileKind::kXml;
  for (const std::string_view tag :
       {"<!doctype"sv, "<html"sv, "<head"sv, "<body"sv, "<script"sv, "<!--"sv}) {
    if (StartsWith(start, tag)) return FileKind::kHtml;
  }
  return FileKind::kText;
}

bool HasAny(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [text](std::string_view part) { return Has(text, part); });
}

// Kinds that are read come first: their files may name kinds that are not.
FileKind KindOfJson(std::string_view text) {
  if (HasAny(text, {"start_time_since_epoch_in_micros", "NEGOTIATE_", "\"CYCLE_START\""}))
    return FileKind::kHorovodTimeline;
  if (Has(text, "\"workload_graph\"")) return FileKind::kChakraJson;
  if (Has(text, "\"schema\"") && Has(text, "\"nodes\"")) return FileKind::kPyTorchExecutionTrace;
  if (HasAny(text, {"\"schemaVersion\"", "\"deviceProperties\"", "\"cpu_op\"",
                    "\"distributedInfo\"", "\"aten::", "\"ProfilerStep#"}))
    return FileKind::kPyTorchTrace;
  if (HasAny(text, {"Comm.byteps", "byteps.gradient", "\"pid\": \"Comm.", "\"pid\":\"Comm."}))
    return FileKind::kBytePsTimeline;
  if (Has(text, "\"rocprofiler-sdk-tool\"") || (Has(text, "\"BeginNs\"") && Has(text, "\"EndNs\"")))
    return FileKind::kRocprof;
  const bool has_events = Has(text, "\"traceEvents\"");
  if (has_events && HasAny(text, {"\"/host:CPU\"", "\"XLA Ops\"", "\"XLA Modules\""}))
    return FileKind::kXPlane;
  if (has_events && HasAny(text, {"\"cpu/0\"", "\"gpu/0\"", "\"MXNET_C_API\""}))
    return FileKind::kMxnetTimeline;
  if (has_events || (Has(text, "\"ph\"") && Has(text, "\"pid\""))) return FileKind::kTimeline;
  if (HasAny(text, {"\"batchSize\"", "\"batch_size\"", "\"sizeBytes\"", "\"waitingFor\"",
                    "\"parameterServers\""}))
    return FileKind::kProfileJson;
  // From micro-batch, tensor width and layer to times, as Sailor writes.
  const size_t first = text.find_first_not_of(" \t\r\n", 1);
  const bool is_number = first != std::string_view::npos && first + 1 < text.size() &&
                         text[first] == '"' && text[first + 1] >= '0' && text[first + 1] <= '9';
  if (text.front() == '{' && is_number) return FileKind::kLayers;
  return FileKind::kJson;
}

FileKind KindOfText(std::string_view text) {
  if ((StartsWith(text, "node") && Has(text, " -- ")) || IsLayerTable(text))
    return FileKind::kLayers;
  for (const std::string_view field : {"batch_size:"sv, "operations {"sv, "platform {"sv}) {
    if (StartsWith(text, field) || Has(text, std::string("\n").append(field)))
      return FileKind::kProfileText;
  }
  if (HasAny(text, {"algbw   busbw", "# OSU MPI", "MPI Benchmarks", "#bytes #repetitions"}))
    return FileKind::kBenchmark;
  const std::string_view line = text.substr(0, text.find('\n'));
  return Has(line, "\t") || Has(line, ",") ? FileKind::kTable : FileKind::kText;
}

// A brace or bracket, and then what may be in it.
bool BeginsAsJson(std::string_view text) {
  const auto after = [&text](size_t at) { return text.find_first_not_of(" \t\r\n", at); };
  const size_t begin = after(0);
  if (begin == std::string_view::npos || (text[begin] != '{' && text[begin] != '[')) return false;
  const size_t next = after(begin + 1);
  return next != std::string_view::npos && (text[next] == '"' || text[next] == '{');
}

}  // namespace

std::string_view WithoutMark(std::string_view text) {
  return StartsWith(text, kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
}

FileKind KindOf(std::string_view first_bytes) {
  first_bytes = WithoutMark(first_bytes);
  if (first_bytes.empty()) return FileKind::kEmpty;
  for (const auto& [magic, kind] : kMagics) {
    if (StartsWith(first_bytes, magic)) return kind;
  }
  // Some writers of JSON put control characters into texts.
  if (std::any_of(first_bytes.begin(), first_bytes.end(), IsNoText) && !BeginsAsJson(first_bytes))
    return KindOfBinary(first_bytes);
  const size_t begin = first_bytes.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return FileKind::kText;
  const std::string_view text = first_bytes.substr(begin);
  if (text.front() == '<') return KindOfMarkup(text);
  return text.front() == '{' || text.front() == '[' ? KindOfJson(text) : KindOfText(text);
}

std::string_view TextOf(FileKind kind) {
  const auto* const text = std::find_if(std::begin(kTexts), std::end(kTexts),
                                        [kind](const auto& each) { return each.first == kind; });
  return text == std::end(kTexts) ? kTexts[0].second : text->second;
}

std::string RefusalOf(FileKind kind) {
  if (kind == FileKind::kEmpty) return "the file is empty";
  if (kind < FileKind::kXPlane) return "";
  std::string refusal("the file is ");
  refusal.append(TextOf(kind));
  switch (kind) {
    case FileKind::kUtf16:
    case FileKind::kUtf32:
      return refusal.append(": save it as UTF-8");
    case FileKind::kGzip:
    case FileKind::kBzip2:
    case FileKind::kXz:
    case FileKind::kZstd:
      return refusal.append(": decompress it, or compress it by gzip alone");
    case FileKind::kZip:
    case FileKind::kSevenZip:
    case FileKind::kTar:
      return refusal.append(": unpack it, and give the file in it");
    case FileKind::kXPlane:
    case FileKind::kBytePsTimeline:
    case FileKind::kMxnetTimeline:
    case FileKind::kRocprof:
      return refusal.append(
          ", which is not read: record with PyTorch's profiler, Horovod's timeline or RunMetadata "
          "of TensorFlow, or write the layers' times as text (--format layers)");
    default:
      return refusal;
  }
}

std::string NotNumberIn(std::string_view json) {
  bool is_within = false;  // a string
  for (size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '"') is_within = !is_within;
    if (is_within && json[i] == '\\') ++i;
    if (is_within || i >= json.size()) continue;
    for (const std::string_view word : {"NaN"sv, "nan"sv, "Infinity"sv, "inf"sv}) {
      if (json.substr(i, word.size()) == word)
        return absl::StrCat(absl::string_view(word.data(), word.size()), " at byte ", i,
                            " is not a number of JSON");
    }
  }
  return "";
}

absl::Status KindSource::ReadFirst() {
  if (is_begun_) return first_.empty() && !is_handed_on_ ? failure_ : absl::OkStatus();
  is_begun_ = true;
  first_.resize(kKindBytes);
  size_t filled = 0;
  absl::StatusOr<size_t> read = 1;
  while (filled < first_.size() && read.ok() && *read > 0) {
    read = source_.Read(first_.data() + filled, first_.size() - filled);
    filled += read.value_or(0);
  }
  first_.resize(filled);
  at_ = first_.size() - WithoutMark(first_).size();
  failure_ = read.status();
  // Bytes that came before a failure tell more than the failure.
  return filled > 0 ? absl::OkStatus() : failure_;
}

absl::StatusOr<size_t> KindSource::Read(char* buffer, size_t size) {
  if (absl::Status status = ReadFirst(); !status.ok()) return status;
  if (is_handed_on_ || at_ == first_.size())
    return failure_.ok() ? source_.Read(buffer, size) : failure_;
  const size_t taken = first_.copy(buffer, size, at_);
  at_ += taken;
  if (at_ == first_.size()) {
    kind_ = KindOf(first_);
    first_ = std::string();
    at_ = 0;
    is_handed_on_ = true;
  }
  return taken;
}

absl::StatusOr<FileKind> KindSource::Kind() {
  if (absl::Status status = ReadFirst(); !status.ok()) return status;
  return is_handed_on_ ? kind_ : KindOf(first_);
}

}  // namespace stepcast
