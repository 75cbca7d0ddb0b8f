#include "server/rpc/grpc_wire.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/convert/wire_error.h"

namespace stepcast::server {

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const WireError error = ToWireError(status);
  // absl's codes are the canonical ones, as gRPC's are.
  return {static_cast<grpc::StatusCode>(status.code()), error.message, error.details};
}

namespace {

// The contract's messages are six deep.
constexpr int kMaxNesting = 16;

absl::Status Malformed(const google::protobuf::MessageLite& message) {
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("the bytes of the request are no ", message.GetTypeName()),
      {.reason = "REQUEST_MALFORMED", .metadata = {{"message", message.GetTypeName()}}});
}

}  // namespace

absl::Status ParseMessage(const grpc::ByteBuffer& buffer, int64_t max_bytes,
                          google::protobuf::MessageLite& message, const char* limit) {
  const auto size = static_cast<int64_t>(buffer.Length());
  if (size > max_bytes) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        absl::StrCat("a message of ", size, " bytes is above the limit ", limit, " = ", max_bytes),
        {.reason = "MESSAGE_TOO_LARGE",
         .metadata = {{"bytes", absl::StrCat(size)}, {limit, absl::StrCat(max_bytes)}},
         .quota_subject = limit});
  }
  grpc::ByteBuffer copy(buffer);  // of references; reading needs one that may change
  grpc::ProtoBufferReader reader(&copy);
  if (!reader.status().ok()) return Malformed(message);
  google::protobuf::io::CodedInputStream stream(&reader);
  stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
  stream.SetRecursionLimit(kMaxNesting);
  if (!message.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    return Malformed(message);
  return absl::OkStatus();
}

absl::Status SerializeMessage(const google::protobuf::MessageLite& message,
                              grpc::ByteBuffer& buffer) {
  constexpr int kBlockBytes = 1 << 20;
  const size_t size = message.ByteSizeLong();
  // The writer aborts the process on a buffer that holds something.
  buffer.Clear();
  if (size <= static_cast<size_t>(std::numeric_limits<int>::max())) {
    grpc::ProtoBufferWriter writer(&buffer, kBlockBytes, static_cast<int>(size));
    if (message.SerializeToZeroCopyStream(&writer)) return absl::OkStatus();
  }
  return MakeError(absl::StatusCode::kInternal,
                   absl::StrCat("a reply of ", size, " bytes cannot be sent"),
                   {.reason = "REPLY_TOO_LARGE"});
}

namespace {

std::string ValueOf(const grpc::CallbackServerContext& context, const char* key) {
  const auto& metadata = context.client_metadata();
  const auto at = metadata.find(key);
  return at == metadata.end() ? "" : std::string(at->second.data(), at->second.size());
}

bool IsLowerHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

std::string RequestIdOf(const grpc::CallbackServerContext& context) {
  return CleanRequestId(ValueOf(context, "x-request-id"));
}

std::string TraceIdOf(const grpc::CallbackServerContext& context) {
  return TraceIdIn(ValueOf(context, "traceparent"));
}

std::string CleanRequestId(std::string text) {
  const bool is_printable = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  return is_printable && text.size() <= kMaxRequestIdBytes ? text : "";
}

std::string TraceIdIn(const std::string& traceparent) {
  // VERSION-TRACE-PARENT-FLAGS: 2, 32, 16 and 2 digits; later versions may go on after another
  // dash.
  constexpr size_t kBytes = 55;
  constexpr size_t kTraceAt = 3;
  constexpr size_t kTraceBytes = 32;
  if (traceparent.size() < kBytes || traceparent[2] != '-' || traceparent[35] != '-' ||
      traceparent[52] != '-')
    return "";
  if (traceparent.size() > kBytes &&
      (traceparent.compare(0, 2, "00") == 0 || traceparent[kBytes] != '-'))
    return "";
  const std::string version = traceparent.substr(0, 2);
  std::string trace = traceparent.substr(kTraceAt, kTraceBytes);
  if (!IsLowerHex(version) || version == "ff" || !IsLowerHex(trace) ||
      trace.find_first_not_of('0') == std::string::npos)
    return "";
  return trace;
}

namespace {

namespace pb = google::protobuf;
using pb::internal::WireFormatLite;

// Measured: an empty operation of a profile takes 240 bytes from its message to its draft.
constexpr int64_t kMessageBytes = 256;
constexpr int64_t kTextBytes = 48;   // beside its characters
constexpr int64_t kFieldBytes = 32;  // that is unknown, or one of a list, with the list's growth
constexpr int64_t kNumberBytes = 8;
constexpr int kMaxDepth = 16;

class Walk {
 public:
  Walk(pb::io::CodedInputStream& bytes, int64_t enough) : bytes_(bytes), enough_(enough) {}

  int64_t Found(const pb::Descriptor& type) {
    Message(type, 0);
    return found_;
  }

 private:
  // False, here and below: it is not worth going on.
  bool Message(const pb::Descriptor& type, int depth) {
    found_ += kMessageBytes;
    if (depth > kMaxDepth) return false;
    while (found_ <= enough_) {
      const uint32_t tag = bytes_.ReadTag();
      if (tag == 0) return true;
      if (!Field(type, tag, depth)) return false;
    }
    return false;
  }

  bool Field(const pb::Descriptor& type, uint32_t tag, int depth) {
    const pb::FieldDescriptor* field =
        type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
    switch (WireFormatLite::GetTagWireType(tag)) {
      case WireFormatLite::WIRETYPE_START_GROUP:
        // No message of ours has one, but they are kept; what is inside counts as if beside it.
        found_ += kMessageBytes;
        return true;
      case WireFormatLite::WIRETYPE_END_GROUP:
        return true;
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        return Delimited(field, depth);
      default:
        // A message has room for those of its fields that are there once.
        if (field == nullptr || field->is_repeated()) found_ += kFieldBytes;
        return WireFormatLite::SkipField(&bytes_, tag);
    }
  }

  bool Delimited(const pb::FieldDescriptor* field, int depth) {
    uint32_t size = 0;
    if (!bytes_.ReadVarint32(&size)) return false;
    if (field != nullptr && field->type() == pb::FieldDescriptor::TYPE_MESSAGE) {
      const auto limit = bytes_.PushLimit(static_cast<int>(size));
      const bool goes_on = Message(*field->message_type(), depth + 1);
      bytes_.PopLimit(limit);
      return goes_on;
    }
    // Numbers that are packed take a byte each or more.
    const bool is_packed = field != nullptr && field->is_packable();
    if (!bytes_.Skip(static_cast<int>(size))) return false;
    found_ += is_packed ? kNumberBytes * size : kTextBytes + size;
    return true;
  }

  pb::io::CodedInputStream& bytes_;
  const int64_t enough_;
  int64_t found_ = 0;
};

}  // namespace

int64_t ParsedBytes(const grpc::ByteBuffer& buffer, const pb::Descriptor& type, int64_t enough) {
  grpc::ByteBuffer copy(buffer);  // of references; reading needs one that may change
  grpc::ProtoBufferReader reader(&copy);
  if (!reader.status().ok()) return 0;
  pb::io::CodedInputStream stream(&reader);
  stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
  return Walk(stream, enough).Found(type);
}

int64_t ParsedBytes(std::string_view bytes, const pb::Descriptor& type, int64_t enough) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) return 0;
  pb::io::ArrayInputStream array(bytes.data(), static_cast<int>(bytes.size()));
  pb::io::CodedInputStream stream(&array);
  stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
  return Walk(stream, enough).Found(type);
}

int64_t ParsedBytesOfText(std::string_view text) {
  int64_t found = static_cast<int64_t>(text.size());
  for (const char c : text) {
    if (c == '{' || c == '<') found += kMessageBytes;
    if (c == ',' || c == ':') found += kNumberBytes;
  }
  return found;
}

}  // namespace stepcast::server
