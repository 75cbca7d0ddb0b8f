// A streaming reader of serialised protobuf, field by field from a ByteSource, so that a message of
// any size needs no more memory than its largest leaf.
//
// Failure: INVALID_ARGUMENT, reason IMPORT_INVALID, where the bytes are no message, with their
// position; what the source or the stop check fails with. Threads: none.
#pragma once

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "core/base/stop_check.h"
#include "core/importing/common/byte_source.h"

namespace stepcast {

// The tag of a text or a message.
constexpr uint32_t Nested(int field) {
  return google::protobuf::internal::WireFormatLite::MakeTag(
      field, google::protobuf::internal::WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

class WireReader {
 public:
  // Longest text, and longest row, that is taken whole: none of a recording is near it.
  static constexpr int kMaxLeafBytes = 1 << 20;

  using Field = absl::FunctionRef<absl::Status(uint32_t tag)>;

  // `where` is the field of faults. Asks `stop` before each 64 KiB that it reads. Borrows both.
  WireReader(ByteSource& source, const char* where, StopCheck stop);

  // Calls `field` for each field of the outermost message, up to the end of the source. It must
  // read the field, or skip it.
  absl::Status ReadAll(Field field);
  // The same for the fields of the message that is next.
  absl::Status ReadNested(Field field);
  // Calls `message` for each of the messages up to the end of the source, which each follow their
  // length. It must read all fields.
  absl::Status ReadDelimited(absl::FunctionRef<absl::Status()> message);
  // Calls `field` for each field of a message that ReadDelimited is at.
  absl::Status ReadFields(Field field);
  absl::Status ReadVarint(uint64_t& value);
  // A packed list of varints.
  absl::Status ReadPacked(absl::FunctionRef<void(uint64_t value)> take);
  absl::Status ReadBytes(std::string& bytes);
  absl::Status ReadMessage(google::protobuf::MessageLite& message);
  // Without keeping any of it.
  absl::Status Skip(uint32_t tag);

  // A fault where the reader is.
  absl::Status Fail(const std::string& description);

 private:
  class Stream final : public google::protobuf::io::CopyingInputStream {
   public:
    Stream(ByteSource& source, StopCheck stop) : source_(source), stop_(stop) {}
    int Read(void* buffer, int size) override;
    const absl::Status& status() const { return status_; }

   private:
    ByteSource& source_;
    StopCheck stop_;
    absl::Status status_;
  };

  absl::Status Broken() { return Fail("no message, or one that is cut short"); }

  Stream stream_;
  google::protobuf::io::CopyingInputStreamAdaptor input_;
  // One an outermost field, since each reads 2 GiB at most.
  std::optional<google::protobuf::io::CodedInputStream> coded_;
  int64_t coded_from_ = 0;
  const char* const where_;
};

}  // namespace stepcast
