#include "tests/fuzz/message_mutator.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepcast::fuzz {

namespace {

namespace pb = google::protobuf;
using pb::FieldDescriptor;

template <typename Number>
Number OtherInteger(Number old, Random& random) {
  using Limits = std::numeric_limits<Number>;
  switch (random.Below(6)) {
    case 0:
      return static_cast<Number>(random.Below(6));
    case 1:
      return static_cast<Number>(static_cast<uint64_t>(old) + 1);
    case 2:
      return static_cast<Number>(static_cast<uint64_t>(old) - 1);
    case 3:
      return static_cast<Number>(uint64_t{1} << random.Below(sizeof(Number) * 8));
    case 4:
      return random.Below(2) == 0 ? Limits::max() : Limits::min();
    default:
      return static_cast<Number>(random.Next() >> random.Below(64));
  }
}

double OtherDouble(double old, Random& random) {
  using Limits = std::numeric_limits<double>;
  constexpr double kEdges[] = {0.0,           -0.0,
                               -1.0,          1.0,
                               0.5,           1e-9,
                               1e9,           1e18,
                               Limits::min(), Limits::denorm_min(),
                               Limits::max(), Limits::infinity()};
  if (random.Below(16) == 0) return Limits::quiet_NaN();
  if (random.Below(2) == 0) return kEdges[random.Below(std::size(kEdges))];
  return random.Below(2) == 0 ? old * (0.5 + 2 * random.Unit())
                              : std::ldexp(random.Unit(), static_cast<int>(random.Below(80)) - 40);
}

class Mutator {
 public:
  explicit Mutator(const Mutation& mutation) : mutation_(mutation), random_(mutation.random) {}

  void Mutate(pb::Message& message) {
    const pb::Descriptor& type = *message.GetDescriptor();
    if (type.field_count() == 0) return;
    const FieldDescriptor* field = type.field(Below(type.field_count()));
    // A field that is set has more to change than one that is not.
    std::vector<const FieldDescriptor*> set;
    message.GetReflection()->ListFields(message, &set);
    if (!set.empty() && Below(4) != 0)
      field = set[static_cast<size_t>(Below(static_cast<int>(set.size())))];
    if (field->is_repeated()) {
      MutateList(message, *field);
    } else {
      MutateField(message, *field);
    }
  }

 private:
  int Below(int bound) { return static_cast<int>(random_.Below(static_cast<uint64_t>(bound))); }

  void MutateField(pb::Message& message, const FieldDescriptor& field) {
    const pb::Reflection& reflection = *message.GetReflection();
    const bool is_set = reflection.HasField(message, &field);
    if (is_set && Below(8) == 0) return reflection.ClearField(&message, &field);
    if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return SetValue(message, field, -1);
    pb::Message& nested = *reflection.MutableMessage(&message, &field);
    if (is_set || Below(2) == 0) Mutate(nested);
  }

  void MutateList(pb::Message& message, const FieldDescriptor& field) {
    const pb::Reflection& reflection = *message.GetReflection();
    const int size = reflection.FieldSize(message, &field);
    const int kind = size == 0 ? 0 : Below(8);
    if (kind == 0) return Add(message, field, size);
    const int at = Below(size);
    if (kind == 1) {
      reflection.SwapElements(&message, &field, at, size - 1);
      reflection.RemoveLast(&message, &field);
    } else if (kind == 2) {
      reflection.SwapElements(&message, &field, at, Below(size));
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      Mutate(*reflection.MutableRepeatedMessage(&message, &field, at));
    } else {
      SetValue(message, field, at);
    }
  }

  // A copy of an element, changed, or a new one.
  void Add(pb::Message& message, const FieldDescriptor& field, int size) {
    const pb::Reflection& reflection = *message.GetReflection();
    if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return AddValue(message, field);
    std::unique_ptr<pb::Message> added(
        reflection.GetMessageFactory()->GetPrototype(field.message_type())->New());
    if (size > 0 && Below(4) != 0)
      added->CopyFrom(reflection.GetRepeatedMessage(message, &field, Below(size)));
    Mutate(*added);
    reflection.AddMessage(&message, &field)->CopyFrom(*added);
  }

  void AddValue(pb::Message& message, const FieldDescriptor& field) {
    const pb::Reflection& reflection = *message.GetReflection();
    Visit(field, [&](auto access) {
      access.Add(reflection, message, field, decltype(access.None())());
      const int last = reflection.FieldSize(message, &field) - 1;
      access.SetAt(reflection, message, field, last, Other(field, access.None()));
    });
  }

  // `at`: the element; -1: the field is none of a list.
  void SetValue(pb::Message& message, const FieldDescriptor& field, int at) {
    const pb::Reflection& reflection = *message.GetReflection();
    Visit(field, [&](auto access) {
      if (at < 0) {
        access.Set(reflection, message, field,
                   Other(field, access.Get(reflection, message, field)));
      } else {
        access.SetAt(reflection, message, field, at,
                     Other(field, access.GetAt(reflection, message, field, at)));
      }
    });
  }

  template <typename Value>
  Value Other(const FieldDescriptor& field, Value old) {
    if constexpr (std::is_same_v<Value, std::string>) {
      return OtherText(field, std::move(old));
    } else if constexpr (std::is_same_v<Value, bool>) {
      return !old;
    } else if constexpr (std::is_floating_point_v<Value>) {
      return static_cast<Value>(OtherDouble(old, random_));
    } else {
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM && Below(8) != 0)
        return static_cast<Value>(Below(field.enum_type()->value_count() + 1));
      return OtherInteger(old, random_);
    }
  }

  std::string OtherText(const FieldDescriptor& field, std::string old) {
    std::string text = Below(16) == 0 ? old + old : mutation_.bytes(std::move(old));
    if (field.type() == FieldDescriptor::TYPE_BYTES) return text;
    for (char& c : text) c = static_cast<char>(static_cast<unsigned char>(c) & 0x7f);
    return text;
  }

  // Calls `change` with the accessors of the field's type.
  template <typename Change>
  static void Visit(const FieldDescriptor& field, Change change);

  const Mutation& mutation_;
  Random& random_;
};

#define STEPCAST_FUZZ_ACCESS(Name, Type)                                                         \
  struct Name##Access {                                                                          \
    static Type None() { return {}; }                                                            \
    static Type Get(const pb::Reflection& r, const pb::Message& m, const FieldDescriptor& f) {   \
      return r.Get##Name(m, &f);                                                                 \
    }                                                                                            \
    static Type GetAt(const pb::Reflection& r, const pb::Message& m, const FieldDescriptor& f,   \
                      int i) {                                                                   \
      return r.GetRepeated##Name(m, &f, i);                                                      \
    }                                                                                            \
    static void Set(const pb::Reflection& r, pb::Message& m, const FieldDescriptor& f, Type v) { \
      r.Set##Name(&m, &f, std::move(v));                                                         \
    }                                                                                            \
    static void SetAt(const pb::Reflection& r, pb::Message& m, const FieldDescriptor& f, int i,  \
                      Type v) {                                                                  \
      r.SetRepeated##Name(&m, &f, i, std::move(v));                                              \
    }                                                                                            \
    static void Add(const pb::Reflection& r, pb::Message& m, const FieldDescriptor& f, Type v) { \
      r.Add##Name(&m, &f, std::move(v));                                                         \
    }                                                                                            \
  }
STEPCAST_FUZZ_ACCESS(Int32, int32_t);
STEPCAST_FUZZ_ACCESS(Int64, int64_t);
STEPCAST_FUZZ_ACCESS(UInt32, uint32_t);
STEPCAST_FUZZ_ACCESS(UInt64, uint64_t);
STEPCAST_FUZZ_ACCESS(Double, double);
STEPCAST_FUZZ_ACCESS(Float, float);
STEPCAST_FUZZ_ACCESS(Bool, bool);
STEPCAST_FUZZ_ACCESS(EnumValue, int);
STEPCAST_FUZZ_ACCESS(String, std::string);
#undef STEPCAST_FUZZ_ACCESS

template <typename Change>
void Mutator::Visit(const FieldDescriptor& field, Change change) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return change(Int32Access());
    case FieldDescriptor::CPPTYPE_INT64:
      return change(Int64Access());
    case FieldDescriptor::CPPTYPE_UINT32:
      return change(UInt32Access());
    case FieldDescriptor::CPPTYPE_UINT64:
      return change(UInt64Access());
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return change(DoubleAccess());
    case FieldDescriptor::CPPTYPE_FLOAT:
      return change(FloatAccess());
    case FieldDescriptor::CPPTYPE_BOOL:
      return change(BoolAccess());
    case FieldDescriptor::CPPTYPE_ENUM:
      return change(EnumValueAccess());
    case FieldDescriptor::CPPTYPE_STRING:
      return change(StringAccess());
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return;
  }
}

}  // namespace

void MutateMessage(pb::Message& message, const Mutation& mutation) {
  Mutator(mutation).Mutate(message);
}

std::string MutateSerialised(const pb::Message& prototype, std::string bytes,
                             const Mutation& mutation) {
  if (mutation.random.Below(8) == 0) return mutation.bytes(std::move(bytes));
  const std::unique_ptr<pb::Message> message(prototype.New());
  // The part that is read of a broken one is as good as any.
  static_cast<void>(message->ParsePartialFromString(bytes));
  for (uint64_t count = 1 + mutation.random.Below(3); count > 0; --count)
    MutateMessage(*message, mutation);
  return message->SerializePartialAsString();
}

}  // namespace stepcast::fuzz
