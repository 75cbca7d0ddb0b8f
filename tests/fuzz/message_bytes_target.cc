// A request's bytes as gRPC hands them over, in slices: the first byte is the message's type, the
// second how long its slices are.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/convert/profile_convert.h"
#include "server/rpc/grpc_wire.h"
#include "stepcast/v1/prediction_service.pb.h"
#include "stepcast/v1/profile_service.pb.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/message_mutator.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/small_profile.h"

namespace stepcast::fuzz {

namespace {

using google::protobuf::Message;

constexpr int64_t kMaxBytes = 2048;
constexpr size_t kHeader = 2;

std::array<const Message*, 4> Prototypes() {
  return {&v1::CreateProfileRequest::default_instance(),
          &v1::ImportProfileRequest::default_instance(),
          &v1::PredictThroughputRequest::default_instance(),
          &v1::AllocateWorkersRequest::default_instance()};
}

const Message& PrototypeOf(char first) {
  return *Prototypes()[static_cast<unsigned char>(first) % Prototypes().size()];
}

grpc::ByteBuffer InSlices(std::string_view bytes, size_t slice_bytes) {
  std::vector<grpc::Slice> slices;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(slice_bytes, bytes.size()))) {
    slices.emplace_back(bytes.data(), std::min(slice_bytes, bytes.size()));
  }
  return {slices.data(), slices.size()};
}

std::string Flat(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  Demand(buffer.Dump(&slices).ok(), "a buffer can be read");
  std::string bytes;
  for (const grpc::Slice& slice : slices)
    bytes.append(static_cast<const char*>(static_cast<const void*>(slice.begin())), slice.size());
  return bytes;
}

// Maps in order, since they have none of their own.
std::string Serialised(const Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

class MessageBytesTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override {
    v1::CreateProfileRequest create;
    *create.mutable_profile() = server::ToWire(SmallDraft());
    v1::PredictThroughputRequest predict;
    *predict.mutable_inline_profile() = create.profile();
    return {std::string("\0\x40", kHeader) + create.SerializeAsString(),
            std::string("\2\0", kHeader) + predict.SerializeAsString()};
  }

  bool Run(std::string_view input) override {
    if (input.size() < kHeader) return false;
    const std::string_view bytes = input.substr(kHeader);
    const std::unique_ptr<Message> message(PrototypeOf(input[0]).New());
    const absl::Status read = server::ParseMessage(
        InSlices(bytes, static_cast<unsigned char>(input[1]) + size_t{1}), kMaxBytes, *message);
    const std::unique_ptr<Message> whole(PrototypeOf(input[0]).New());
    const bool is_message = whole->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
    if (!read.ok()) {
      DemandSoundRefusal(read);
      return false;
    }
    Demand(is_message && Serialised(*whole) == Serialised(*message), "slices make no difference");
    grpc::ByteBuffer written;
    Demand(server::SerializeMessage(*message, written).ok(), "what was read can be written");
    const std::unique_ptr<Message> again(PrototypeOf(input[0]).New());
    Demand(again->ParseFromString(Flat(written)) && Serialised(*again) == Serialised(*message),
           "what was written can be read");
    return true;
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    if (input.size() < kHeader || mutation.random.Below(8) == 0)
      return mutation.bytes(std::move(input));
    return input.substr(0, kHeader) +
           MutateSerialised(PrototypeOf(input[0]), input.substr(kHeader), mutation);
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<MessageBytesTarget>(); }

}  // namespace stepcast::fuzz
