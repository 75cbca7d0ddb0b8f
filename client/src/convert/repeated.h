// Lists and maps between structs and messages.
#pragma once

#include <google/protobuf/map.h>
#include <google/protobuf/repeated_field.h>

#include <map>
#include <string>
#include <vector>

namespace stepcast::client {

template <typename Struct, typename Message>
void ToProto(const std::vector<Struct>& from, google::protobuf::RepeatedPtrField<Message>& to) {
  to.Reserve(static_cast<int>(from.size()));
  for (const Struct& one : from) ToProto(one, *to.Add());
}

template <typename Struct, typename Message>
void FromProto(const google::protobuf::RepeatedPtrField<Message>& from, std::vector<Struct>& to) {
  to.resize(static_cast<size_t>(from.size()));
  for (int i = 0; i < from.size(); ++i) FromProto(from.Get(i), to[static_cast<size_t>(i)]);
}

template <typename Number>
void ToProto(const std::vector<Number>& from, google::protobuf::RepeatedField<Number>& to) {
  to.Assign(from.begin(), from.end());
}

template <typename Number>
void FromProto(const google::protobuf::RepeatedField<Number>& from, std::vector<Number>& to) {
  to.assign(from.begin(), from.end());
}

template <typename Value>
void ToProto(const std::map<std::string, Value>& from,
             google::protobuf::Map<std::string, Value>& to) {
  to.insert(from.begin(), from.end());
}

template <typename Value>
void FromProto(const google::protobuf::Map<std::string, Value>& from,
               std::map<std::string, Value>& to) {
  to.clear();
  to.insert(from.begin(), from.end());
}

}  // namespace stepcast::client
