#include "tests/client/support/random_message.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <cmath>
#include <string>

namespace stepcast::client {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

class Filler {
 public:
  Filler(std::mt19937_64& generator, bool all) : generator_(generator), all_(all) {}

  void Fill(Message& message) {
    if (auto* duration = dynamic_cast<google::protobuf::Duration*>(&message))
      return FillTime(*duration);
    if (auto* timestamp = dynamic_cast<google::protobuf::Timestamp*>(&message))
      return FillTime(*timestamp);
    const google::protobuf::Descriptor& type = *message.GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      const google::protobuf::OneofDescriptor* oneof = field.real_containing_oneof();
      if (oneof != nullptr && oneof->field(0) != &field) continue;
      const FieldDescriptor& chosen =
          oneof == nullptr
              ? field
              : *oneof->field(static_cast<int>(Below(static_cast<uint64_t>(oneof->field_count()))));
      if (chosen.is_repeated()) {
        FillRepeated(message, chosen);
      } else if (all_ || !chosen.has_presence() || oneof != nullptr || Below(2) == 0) {
        FillSingle(message, chosen);
      }
    }
  }

 private:
  uint64_t Below(uint64_t bound) { return generator_() % bound; }
  // Not zero, since a zero left out would not be noticed.
  int64_t Integer() { return static_cast<int64_t>(generator_() | 1); }
  double Real() {
    return std::ldexp(static_cast<double>(generator_() | 1), static_cast<int>(Below(60)) - 90);
  }
  std::string Text() {
    std::string text;
    for (uint64_t left = 1 + Below(8); left > 0; --left)
      text.push_back(static_cast<char>('a' + Below(26)));
    return text;
  }
  int Enum(const FieldDescriptor& field) {
    // The value 0 is that of an empty field.
    return field.enum_type()
        ->value(1 + static_cast<int>(
                        Below(static_cast<uint64_t>(field.enum_type()->value_count() - 1))))
        ->number();
  }

  template <typename Time>
  void FillTime(Time& time) {
    time.set_seconds(static_cast<int64_t>(Below(9'000'000'000)));
    time.set_nanos(static_cast<int32_t>(1 + Below(999'999'999)));
  }

  void FillSingle(Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return reflection.SetInt32(&message, &field, static_cast<int32_t>(Integer()));
      case FieldDescriptor::CPPTYPE_INT64:
        return reflection.SetInt64(&message, &field, Integer());
      case FieldDescriptor::CPPTYPE_UINT64:
        return reflection.SetUInt64(&message, &field, static_cast<uint64_t>(Integer()));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return reflection.SetDouble(&message, &field, Real());
      case FieldDescriptor::CPPTYPE_BOOL:
        return reflection.SetBool(&message, &field, true);
      case FieldDescriptor::CPPTYPE_ENUM:
        return reflection.SetEnumValue(&message, &field, Enum(field));
      case FieldDescriptor::CPPTYPE_STRING:
        return reflection.SetString(&message, &field, Text());
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Fill(*reflection.MutableMessage(&message, &field));
      default:
        GOOGLE_LOG(FATAL) << "no random value for " << field.full_name();
    }
  }

  void FillRepeated(Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    for (uint64_t left = 1 + Below(3); left > 0; --left) {
      switch (field.cpp_type()) {
        case FieldDescriptor::CPPTYPE_INT32:
          reflection.AddInt32(&message, &field, static_cast<int32_t>(Integer()));
          break;
        case FieldDescriptor::CPPTYPE_INT64:
          reflection.AddInt64(&message, &field, Integer());
          break;
        case FieldDescriptor::CPPTYPE_ENUM:
          reflection.AddEnumValue(&message, &field, Enum(field));
          break;
        case FieldDescriptor::CPPTYPE_STRING:
          reflection.AddString(&message, &field, Text());
          break;
        case FieldDescriptor::CPPTYPE_MESSAGE:
          Fill(*reflection.AddMessage(&message, &field));
          break;
        default:
          GOOGLE_LOG(FATAL) << "no random list for " << field.full_name();
      }
      if (field.is_map()) return;  // two random keys might be equal
    }
  }

  std::mt19937_64& generator_;
  bool all_;
};

}  // namespace

void FillRandomly(Message& message, std::mt19937_64& generator, bool all) {
  Filler(generator, all).Fill(message);
}

}  // namespace stepcast::client
