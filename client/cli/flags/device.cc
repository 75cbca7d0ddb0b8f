#include "client/cli/flags/device.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/texts/measure_text.h"

namespace stepcast::client {

namespace {

using nlohmann::ordered_json;

absl::Status Unusable(const std::string& text, std::string why) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is neither a number nor two devices, as h100/v100: ", why));
}

const ordered_json* Find(const ordered_json& devices, const std::string& name) {
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const ordered_json& device) {
    return device["name"].get_ref<const std::string&>() == name;
  });
  return found == devices.end() ? nullptr : &*found;
}

// `7.916 (989.5 / 125 TFLOP/s)`.
std::string RatioText(double one, double other, const char* unit) {
  return absl::StrCat(NumberText(one / other), " (", one, " / ", other, " ", unit, ")");
}

ComputeSpeed SpeedOf(const ordered_json& to, const ordered_json& from, const std::string& rate) {
  const double one = to[rate];
  const double other = from[rate];
  const double memory = to["memory"];
  const double other_memory = from["memory"];
  const auto source = [](const ordered_json& device) {
    return absl::StrCat(device["about"].get<std::string>(), ", ",
                        device["source"].get<std::string>());
  };
  return {.factor = one / other,
          .told = absl::StrCat(
              "compute speed: x ", RatioText(one, other, "TFLOP/s"), ", the ratio of peak ", rate,
              " rates, as if all layers were bound by arithmetic; layers bound by memory gain x ",
              RatioText(memory, other_memory, "GB/s"), ": a job is between (--compute-speed ",
              NumberText(memory / other_memory), " is the other end)\n", "devices: ", source(to),
              "; ", source(from), "\n")};
}

}  // namespace

absl::StatusOr<ComputeSpeed> ParseComputeSpeed(const std::string& text) {
  if (double factor = 0; absl::SimpleAtod(text, &factor)) return ComputeSpeed{.factor = factor};
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  const std::vector<std::string> names = absl::StrSplit(parts.front(), '/');
  const std::string rate = parts.size() < 2 ? "fp16" : parts[1];
  if (names.size() != 2) return Unusable(text, "the recorded device stands behind a slash");
  if (rate != "fp16" && rate != "fp32")
    return Unusable(text, absl::StrCat("\"", rate, "\" is neither fp16 nor fp32"));
  const ordered_json devices = ordered_json::parse(kDevicePresets);
  for (const std::string& name : names) {
    if (Find(devices, name) != nullptr) continue;
    std::vector<std::string> known;
    for (const ordered_json& device : devices) known.push_back(device["name"]);
    return Unusable(text, absl::StrCat("\"", name, "\" is none of ", absl::StrJoin(known, ", ")));
  }
  return SpeedOf(*Find(devices, names[0]), *Find(devices, names[1]), rate);
}

}  // namespace stepcast::client
