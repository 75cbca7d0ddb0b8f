// The smallest job worth predicting.
#pragma once

#include "stepcast/profile.h"

namespace stepcast::client {

// One worker, one server, 1 MB/s: a download of 1 kB (1 ms), a computation of 2 ms, an upload of 1
// kB (1 ms), an update of 1 ms; no overlap, so a step of one worker takes exactly 5 ms.
inline Profile TinyProfile() {
  return {.display_name = "tiny",
          .model = "tiny",
          .framework = "test",
          .batch_size = 10,
          .platform = {.bandwidth_bytes_per_second = 1e6},
          .parameter_servers = 1,
          .operations = {{.name = "recv",
                          .resource = Resource::kDownlink,
                          .size_bytes = 1000,
                          .parameter = "w"},
                         {.name = "compute", .resource = Resource::kWorker, .waiting_for = {0}},
                         {.name = "send",
                          .resource = Resource::kUplink,
                          .size_bytes = 1000,
                          .waiting_for = {1},
                          .parameter = "w"},
                         {.name = "update",
                          .resource = Resource::kParameterServer,
                          .waiting_for = {2},
                          .parameter = "w"}},
          .steps = {{.start_ns = {0, 1'000'000, 3'000'000, 4'000'000},
                     .end_ns = {1'000'000, 3'000'000, 4'000'000, 5'000'000}}}};
}

}  // namespace stepcast::client
