// The likely kind of bytes that are not what they were said to be, so that an error can say so.
//
// A guess by the first bytes, for people; nothing is read by it.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/importing/byte_source.h"

namespace stepcast {

enum class FileKind : uint8_t {
  kUnknown,
  kEmpty,
  kLayers,                 // PipeDream's layer times
  kTimeline,               // JSON of Chrome's trace events, as TensorFlow 1 writes it
  kPyTorchTrace,           // the same of PyTorch's profiler
  kPyTorchExecutionTrace,  // of its ExecutionTraceObserver, without times
  kHorovodTimeline,
  kChakraJson,
  kProfileJson,  // a Stepcast profile
  kProfileText,  // the same in proto text
  kJson,         // something else
  kTable,        // lines of columns, divided by tabs or commas
  kText,         // something else
  kBinary,       // perhaps a serialised message
  kGzip,
  kZip,
  kBzip2,
  kXz,
  kZstd,
  kPickle,
  kHdf5,
  kSqlite
};

// So many bytes are enough.
inline constexpr size_t kKindBytes = 4096;

FileKind KindOf(std::string_view first_bytes);
// "a trace of PyTorch's profiler".
std::string_view TextOf(FileKind kind);

// The formats that can be imported, and what else to do with a profile; for the end of a sentence.
inline constexpr std::string_view kReadableFormats =
    "what can be imported is layers (PipeDream's layer times, as text), run-metadata (TensorFlow's "
    "serialised RunMetadata), timeline (JSON of TensorFlow 1's timeline), pytorch (JSON of "
    "PyTorch's profiler), chakra (a Chakra execution trace) and horovod (Horovod's timeline), each "
    "also compressed by gzip; a Stepcast profile is uploaded, not imported";

// A source that hands on another's bytes and keeps the first kKindBytes of them.
class KindSource final : public ByteSource {
 public:
  // Borrows it.
  explicit KindSource(ByteSource& source) : source_(source) {}

  absl::StatusOr<size_t> Read(char* buffer, size_t size) override;
  // The kind by what has been read so far.
  FileKind kind() const { return KindOf(first_); }

 private:
  ByteSource& source_;
  std::string first_;
};

}  // namespace stepcast
