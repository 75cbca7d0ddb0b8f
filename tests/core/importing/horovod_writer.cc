#include "tests/core/importing/horovod_writer.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace stepcast::testing {

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
