#include "core/importing/common/wire_reader.h"

#include <google/protobuf/wire_format_lite.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "core/importing/common/recording_import.h"

namespace stepcast {

namespace {

using google::protobuf::internal::WireFormatLite;

constexpr int kBlockBytes = 64 << 10;

}  // namespace

int WireReader::Stream::Read(void* buffer, int size) {
  if (status_.ok()) status_ = stop_();
  if (!status_.ok()) return -1;
  const absl::StatusOr<size_t> read =
      source_.Read(static_cast<char*>(buffer), static_cast<size_t>(size));
  status_ = read.status();
  return read.ok() ? static_cast<int>(*read) : -1;
}

WireReader::WireReader(ByteSource& source, const char* where, StopCheck stop)
    : stream_(source, stop), input_(&stream_, kBlockBytes), where_(where) {}

absl::Status WireReader::Fail(const std::string& description) {
  if (!stream_.status().ok()) return stream_.status();
  // Bytes to be skipped may be missing: the stream's own count starts anew.
  const int64_t position =
      std::min<int64_t>(coded_from_ + (coded_ ? coded_->CurrentPosition() : 0), input_.ByteCount());
  return ImportFault(where_, absl::StrCat("byte ", position, ": ", description));
}

absl::Status WireReader::ReadAll(Field field) {
  while (true) {
    coded_.reset();  // gives back what it has not used
    coded_from_ = input_.ByteCount();
    coded_.emplace(&input_);
    const uint32_t tag = coded_->ReadTag();
    if (tag == 0)
      return stream_.status().ok() && coded_->ConsumedEntireMessage() ? absl::OkStatus() : Broken();
    if (absl::Status status = field(tag); !status.ok()) return status;
  }
}

absl::Status WireReader::ReadNested(Field field) {
  int length = 0;
  if (!coded_->ReadVarintSizeAsInt(&length)) return Broken();
  const int outer = coded_->BytesUntilLimit();
  if (outer >= 0 && length > outer) return Broken();
  const auto limit = coded_->PushLimit(length);
  while (const uint32_t tag = coded_->ReadTag()) {
    if (absl::Status status = field(tag); !status.ok()) return status;
  }
  if (!coded_->ConsumedEntireMessage() || coded_->BytesUntilLimit() != 0) return Broken();
  coded_->PopLimit(limit);
  return absl::OkStatus();
}

absl::Status WireReader::ReadDelimited(absl::FunctionRef<absl::Status()> message) {
  while (true) {
    coded_.reset();  // gives back what it has not used
    coded_from_ = input_.ByteCount();
    coded_.emplace(&input_);
    const void* rest = nullptr;
    int size = 0;
    if (!coded_->GetDirectBufferPointer(&rest, &size))
      return stream_.status().ok() ? absl::OkStatus() : stream_.status();
    int length = 0;
    if (!coded_->ReadVarintSizeAsInt(&length)) return Broken();
    const auto limit = coded_->PushLimit(length);
    if (absl::Status status = message(); !status.ok()) return status;
    if (coded_->BytesUntilLimit() != 0) return Broken();
    coded_->PopLimit(limit);
  }
}

absl::Status WireReader::ReadFields(Field field) {
  while (const uint32_t tag = coded_->ReadTag()) {
    if (absl::Status status = field(tag); !status.ok()) return status;
  }
  return coded_->ConsumedEntireMessage() ? absl::OkStatus() : Broken();
}

absl::Status WireReader::ReadVarint(uint64_t& value) {
  return coded_->ReadVarint64(&value) ? absl::OkStatus() : Broken();
}

absl::Status WireReader::ReadPacked(absl::FunctionRef<void(uint64_t value)> take) {
  int length = 0;
  if (!coded_->ReadVarintSizeAsInt(&length)) return Broken();
  if (length > kMaxLeafBytes)
    return Fail(absl::StrCat("a list of ", length, " bytes is above the limit of ", kMaxLeafBytes));
  const int outer = coded_->BytesUntilLimit();
  if (outer >= 0 && length > outer) return Broken();
  const auto limit = coded_->PushLimit(length);
  while (coded_->BytesUntilLimit() > 0) {
    uint64_t value = 0;
    if (!coded_->ReadVarint64(&value)) return Broken();
    take(value);
  }
  coded_->PopLimit(limit);
  return absl::OkStatus();
}

absl::Status WireReader::ReadBytes(std::string& bytes) {
  int length = 0;
  if (!coded_->ReadVarintSizeAsInt(&length)) return Broken();
  if (length > kMaxLeafBytes)
    return Fail(absl::StrCat("a text of ", length, " bytes is above the limit of ", kMaxLeafBytes));
  return coded_->ReadString(&bytes, length) ? absl::OkStatus() : Broken();
}

absl::Status WireReader::ReadMessage(google::protobuf::MessageLite& message) {
  int length = 0;
  if (!coded_->ReadVarintSizeAsInt(&length)) return Broken();
  if (length > kMaxLeafBytes)
    return Fail(
        absl::StrCat("a message of ", length, " bytes is above the limit of ", kMaxLeafBytes));
  const int outer = coded_->BytesUntilLimit();
  if (outer >= 0 && length > outer) return Broken();
  message.Clear();
  const auto limit = coded_->PushLimit(length);
  if (!message.MergePartialFromCodedStream(&*coded_) || !coded_->ConsumedEntireMessage() ||
      coded_->BytesUntilLimit() != 0)
    return Broken();
  coded_->PopLimit(limit);
  return absl::OkStatus();
}

absl::Status WireReader::Skip(uint32_t tag) {
  return WireFormatLite::SkipField(&*coded_, tag) ? absl::OkStatus() : Broken();
}

}  // namespace stepcast
