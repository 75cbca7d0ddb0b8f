#include "tests/core/importing/timeline_writer.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/random.h"

namespace stepcast::testing {

std::string WriteTimeline(const Timeline& timeline) {
  nlohmann::json events = nlohmann::json::array();
  for (const auto& [process, name] : timeline.processes) {
    events.push_back(
        {{"ph", "M"}, {"name", "process_name"}, {"pid", process}, {"args", {{"name", name}}}});
  }
  for (const TimelineEvent& event : timeline.events) {
    nlohmann::json arguments = {{"name", event.node}, {"op", event.op}};
    for (size_t i = 0; i < event.inputs.size(); ++i)
      arguments[absl::StrCat("input", i)] = event.inputs[i];
    events.push_back({{"ph", "X"},
                      {"cat", "Op"},
                      {"tid", 0},
                      {"pid", event.process},
                      {"ts", event.start_ns / 1000},
                      {"dur", event.length_ns / 1000},
                      {"name", event.op},
                      {"args", arguments}});
  }
  return nlohmann::json{{"traceEvents", events}}.dump(2, ' ', false,
                                                      nlohmann::json::error_handler_t::replace);
}

Timeline RandomTimeline(uint64_t seed) {
  Random random({seed});
  Timeline timeline;
  timeline.processes = {{0, "Allocators"},
                        {1, "/job:localhost/replica:0/task:0/cpu:0 Compute"},
                        {2, "/job:localhost/replica:0/task:0/cpu:0 Tensors"}};
  int64_t now_us = 1'490'000'000'000'000;
  const auto add = [&](const std::string& node, const std::string& op,
                       std::vector<std::string> inputs) {
    const auto length_us = static_cast<int64_t>(1 + random.Below(500));
    timeline.events.push_back({.process = 1,
                               .start_ns = now_us * 1000,
                               .length_ns = length_us * 1000,
                               .node = node,
                               .op = op,
                               .inputs = std::move(inputs)});
    now_us += static_cast<int64_t>(random.Below(400));
  };
  const uint64_t variables = 1 + random.Below(4);
  std::vector<std::string> made;
  for (uint64_t i = 0; i < variables; ++i) {
    add(absl::StrCat("var", i), "VariableV2", {});
    add(absl::StrCat("var", i, "/read"), "Identity", {absl::StrCat("var", i)});
    made.push_back(absl::StrCat("var", i, "/read"));
  }
  for (uint64_t i = 0; i < 2 + random.Below(15); ++i) {
    std::vector<std::string> inputs;
    for (uint64_t count = 1 + random.Below(3); count > 0; --count) {
      const std::string& maker = made[random.Below(made.size())];
      inputs.push_back(random.Below(4) == 0 ? absl::StrCat(maker, ":1") : maker);
    }
    if (random.Below(4) == 0) inputs.push_back("^" + made[random.Below(made.size())]);
    add(absl::StrCat("op", i), "MatMul", inputs);
    made.push_back(absl::StrCat("op", i));
  }
  for (uint64_t i = 0; i < variables; ++i) {
    add(absl::StrCat("update/var", i), "ApplyGradientDescent",
        {absl::StrCat("var", i), made[random.Below(made.size())]});
  }
  return timeline;
}

std::string WriteHorovodTimeline(int steps, bool ended) {
  std::string text =
      "[\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 0, \"args\": "
      "{\"start_time_since_epoch_in_micros\":1690000000000000}},\n"
      "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"args\": {\"name\": "
      "\"fc.weight\"}},\n"
      "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 2, \"args\": {\"name\": \"fc.bias\"}}";
  int64_t at = 500;
  const auto event = [&](const char* phase, const std::string& name, int64_t us, int pid,
                         const std::string& arguments) {
    absl::StrAppend(&text, ",\n{\"ph\": \"", phase, "\"");
    if (!name.empty()) absl::StrAppend(&text, ", \"name\": \"", name, "\"");
    absl::StrAppend(&text, ", \"ts\": ", us, ", \"pid\": ", pid);
    if (!arguments.empty()) absl::StrAppend(&text, ", \"args\": {", arguments, "}");
    text += "}";
  };
  for (int step = 0; step < steps; ++step) {
    absl::StrAppend(&text, ",\n{\"ph\": \"i\", \"name\": \"CYCLE_START\", \"ts\": ", at,
                    ", \"s\": \"g\"}");
    // Another worker was earlier with the first.
    event("B", "NEGOTIATE_ALLREDUCE", at + 500, 2, "");
    event("X", "1", at + 500, 2, "");
    event("X", "0", at + 600 + step, 2, "");
    event("E", "", at + 650, 2, "");
    event("B", "NEGOTIATE_ALLREDUCE", at + 800 + step, 1, "");
    event("E", "", at + 850 + step, 1, "");
    for (const int pid : {1, 2}) {
      event("B", "ALLREDUCE", at + 860, pid, "");
      event("B", "NCCL_ALLREDUCE", at + 870, pid, "");
      event("E", "", at + 900, pid, "");
      event("E", "", at + 1000, pid,
            pid == 1 ? R"("dtype": "float32", "shape": "[1000, 512]")"
                     : R"("dtype": "float16", "shape": "[1000]")");
    }
    at += 1000;
  }
  return text + (ended ? "]" : "");
}

}  // namespace stepcast::testing
