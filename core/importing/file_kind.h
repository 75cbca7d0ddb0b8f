// The likely kind of bytes that are not what they were said to be, so that an error can say so.
//
// A guess by the first bytes, for people; nothing is read by it.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/importing/common/byte_source.h"

namespace stepcast {

enum class FileKind : uint8_t {
  kUnknown,
  kEmpty,
  kLayers,                 // PipeDream's layer times, or a table of layers
  kTimeline,               // JSON of Chrome's trace events, as TensorFlow 1 writes it
  kPyTorchTrace,           // the same of PyTorch's profiler
  kPyTorchExecutionTrace,  // of its ExecutionTraceObserver, without times
  kHorovodTimeline,
  kChakraJson,
  kChakra,       // the same, serialised
  kProfileJson,  // a Stepcast profile
  kProfileText,  // the same in proto text
  kJson,         // something else
  kTable,        // lines of columns, divided by tabs or commas
  kBenchmark,    // log of nccl-tests, rccl-tests, or the MPI benchmarks of OSU or Intel
  kText,         // something else
  kBinary,       // perhaps a serialised message
  // Taken by no reader:
  kXPlane,          // JAX's and TensorFlow 2's profiler
  kBytePsTimeline,  // JSON of trace events
  kMxnetTimeline,   // likewise
  kRocprof,         // JSON of ROCm's profiler, of its first or third version
  kZeros,           // zero bytes alone
  kUtf16,
  kUtf32,
  kHtml,
  kXml,
  kGzip,
  kZip,
  kBzip2,
  kXz,
  kZstd,
  kSevenZip,
  kTar,
  kPickle,
  kHdf5,
  kSqlite,
  kImage,
  kPdf,
  kProgram
};

// So many bytes are enough.
inline constexpr size_t kKindBytes = size_t{256} << 10;

// UTF-8's mark at the beginning of a text, which many editors write.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
// The text without that mark.
std::string_view WithoutMark(std::string_view text);

// A mark is passed over.
FileKind KindOf(std::string_view first_bytes);
// "a trace of PyTorch's profiler".
std::string_view TextOf(FileKind kind);
// The reason, and the remedy, for a kind that no reader takes: "the file is UTF-16: save it as
// UTF-8". Empty: some reader takes it.
std::string RefusalOf(FileKind kind);

// The formats that can be imported, and what else to do with a profile; for the end of a sentence.
inline constexpr std::string_view kReadableFormats =
    "what can be imported is layers (PipeDream's layer times, or a table of layers with the "
    "columns "
    "name, forward_ms, backward_ms, activation_bytes and parameter_bytes), run-metadata "
    "(TensorFlow's "
    "serialised RunMetadata), timeline (JSON of TensorFlow 1's timeline), pytorch (JSON of "
    "PyTorch's profiler), chakra (a Chakra execution trace) and horovod (Horovod's timeline), each "
    "also compressed by gzip; --format (in a request the header's format) says which it is; a "
    "Stepcast profile is uploaded, not imported";

// The fault of a text in JSON that has NaN or an infinity where a number should be, as Python
// writes them: "NaN at byte 12 is not a number of JSON". Empty: it has none. Cost: linear.
std::string NotNumberIn(std::string_view json);

// A source that hands on another's bytes, without a mark, and tells their kind by the first
// kKindBytes, which it reads before anything is asked of it and keeps until it has handed them on.
class KindSource final : public ByteSource {
 public:
  // Borrows it.
  explicit KindSource(ByteSource& source) : source_(source) {}

  absl::StatusOr<size_t> Read(char* buffer, size_t size) override;
  // Fails as the source does.
  absl::StatusOr<FileKind> Kind();

 private:
  absl::Status ReadFirst();

  ByteSource& source_;
  bool is_begun_ = false;
  bool is_handed_on_ = false;
  std::string first_;
  size_t at_ = 0;                       // in it
  FileKind kind_ = FileKind::kUnknown;  // once they are handed on
  absl::Status failure_;                // after it
};

}  // namespace stepcast
