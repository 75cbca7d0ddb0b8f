// Durations between the standard library and the wire.
#pragma once

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <chrono>

namespace stepcast::client {

using SystemNanoseconds = std::chrono::sys_time<std::chrono::nanoseconds>;

void ToProto(std::chrono::nanoseconds from, google::protobuf::Duration& to);
void ToProto(SystemNanoseconds from, google::protobuf::Timestamp& to);

// What is outside the range of nanoseconds (292 years) becomes its nearest end.
void FromProto(const google::protobuf::Duration& from, std::chrono::nanoseconds& to);
void FromProto(const google::protobuf::Timestamp& from, SystemNanoseconds& to);

}  // namespace stepcast::client
