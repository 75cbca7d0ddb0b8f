// Numbers with their units, and times, as people read them.
#pragma once

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace stepcast::client {

// Four significant digits, never with an exponent: 0.01235, 1.235, 123.5, 12346.
std::string NumberText(double value);
// 97.8%.
std::string PercentText(double fraction);
// 812 ns, 81.35 ms, 1.25 s.
std::string DurationText(std::chrono::nanoseconds length);
std::string DurationText(const google::protobuf::Duration& length);
std::string SecondsText(double seconds);
// The same in minutes, hours or days where it has a hundred of the unit below: 2.972 d.
std::string LongDurationText(const google::protobuf::Duration& length);
// 512 B, 97.39 MiB.
std::string BytesText(int64_t bytes);
// 2026-11-22 02:31:07Z, in UTC.
std::string TimeText(const google::protobuf::Timestamp& time);

}  // namespace stepcast::client
