// Numbers with their units, as people read them.
#pragma once

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
std::string SecondsText(double seconds);
// 512 B, 97.39 MiB.
std::string BytesText(int64_t bytes);

}  // namespace stepcast::client
