#include "stepcast/json.h"

#include <google/protobuf/any.pb.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver_util.h>

#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/src/error_status.h"

namespace stepcast::client {

namespace {

using google::protobuf::Any;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// The binary form, in which maps have an order only here.
std::string DeterministicBytes(const Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

// The content of an Any, if it is of a type of this program.
std::unique_ptr<Message> Unpacked(const Any& any) {
  const std::string type = any.type_url().substr(any.type_url().rfind('/') + 1);
  const Descriptor* const descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(type);
  if (descriptor == nullptr) return nullptr;
  std::unique_ptr<Message> content(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(descriptor)->New());
  return any.UnpackTo(content.get()) ? std::move(content) : nullptr;
}

// The bounds of proto JSON (google/protobuf/timestamp.proto, duration.proto).
bool IsPrintable(const google::protobuf::Timestamp& time) {
  constexpr int64_t kFirst = -62'135'596'800;  // of the year 1
  constexpr int64_t kLast = 253'402'300'799;   // of the year 9999
  return time.seconds() >= kFirst && time.seconds() <= kLast && time.nanos() >= 0 &&
         time.nanos() < 1'000'000'000;
}
bool IsPrintable(const google::protobuf::Duration& length) {
  constexpr int64_t kLongest = 315'576'000'000;  // 10,000 years
  const bool has_one_sign = (length.seconds() >= 0 && length.nanos() >= 0) ||
                            (length.seconds() <= 0 && length.nanos() <= 0);
  return length.seconds() >= -kLongest && length.seconds() <= kLongest &&
         length.nanos() > -1'000'000'000 && length.nanos() < 1'000'000'000 && has_one_sign;
}

// Leaves out of a message what has no JSON: Anys of types that are not known, and times out of
// bounds. False: the message itself has none.
bool Mend(Message& message);

bool MendAny(Any& any) {
  const std::unique_ptr<Message> content = Unpacked(any);
  if (content == nullptr || !Mend(*content)) return false;
  any.set_value(DeterministicBytes(*content));
  return true;
}

bool MendField(Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  if (!field.is_repeated()) return Mend(*reflection.MutableMessage(&message, &field));
  for (int i = reflection.FieldSize(message, &field) - 1; i >= 0; --i) {
    if (Mend(*reflection.MutableRepeatedMessage(&message, &field, i))) continue;
    for (int k = i; k + 1 < reflection.FieldSize(message, &field); ++k)
      reflection.SwapElements(&message, &field, k, k + 1);
    reflection.RemoveLast(&message, &field);
  }
  return true;
}

bool Mend(Message& message) {
  if (auto* const any = dynamic_cast<Any*>(&message)) return MendAny(*any);
  if (const auto* time = dynamic_cast<google::protobuf::Timestamp*>(&message))
    return IsPrintable(*time);
  if (const auto* length = dynamic_cast<google::protobuf::Duration*>(&message))
    return IsPrintable(*length);
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
    if (!MendField(message, *field)) message.GetReflection()->ClearField(&message, field);
  }
  return true;
}

std::unique_ptr<Message> Mended(const Message& message) {
  std::unique_ptr<Message> copy(message.New());
  copy->CopyFrom(message);
  Mend(*copy);
  return copy;
}

// True where a message of the type may hold an Any, at any depth.
bool MayHoldAny(const Descriptor& type, std::set<const Descriptor*>& seen) {
  if (&type == Any::descriptor()) return true;
  if (!seen.insert(&type).second) return false;
  for (int i = 0; i < type.field_count(); ++i) {
    const Descriptor* const inner = type.field(i)->message_type();
    if (inner != nullptr && MayHoldAny(*inner, seen)) return true;
  }
  return false;
}

// Through the binary form, because only there maps have an order. The types of Anys are found among
// those of this program. False: something in it has no JSON.
bool Print(const Message& message, std::string& json) {
  const std::unique_ptr<google::protobuf::util::TypeResolver> resolver(
      google::protobuf::util::NewTypeResolverForDescriptorPool(
          "type.googleapis.com", message.GetDescriptor()->file()->pool()));
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  json.clear();
  return google::protobuf::util::BinaryToJsonString(
             resolver.get(), "type.googleapis.com/" + message.GetDescriptor()->full_name(),
             DeterministicBytes(message), &json, options)
      .ok();
}

}  // namespace

std::string ToJson(const Message& message) {
  std::set<const Descriptor*> seen;
  std::string json;
  // Messages may be large, so those without an Any are copied only where they must be.
  if (!MayHoldAny(*message.GetDescriptor(), seen) && Print(message, json)) return json;
  // Failure now is text that is not UTF-8, which no message that was parsed has.
  return Print(*Mended(message), json) ? json : std::string("{}\n");
}

absl::Status FromJson(std::string_view json, Message& message) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (json.starts_with(kByteOrderMark)) json.remove_prefix(kByteOrderMark.size());
  const auto status =
      google::protobuf::util::JsonStringToMessage({json.data(), json.size()}, &message);
  if (status.ok()) return absl::OkStatus();
  const std::string& name = message.GetDescriptor()->name();
  const bool has_vowel = std::string_view("AEIOU").find(name.front()) != std::string_view::npos;
  return MakeLocalError(absl::StatusCode::kInvalidArgument, "REQUEST_UNREADABLE",
                        absl::StrCat("not ", has_vowel ? "an " : "a ", name,
                                     " in JSON: ", status.message().ToString()));
}

}  // namespace stepcast::client
