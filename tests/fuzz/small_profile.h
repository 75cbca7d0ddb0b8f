// The smallest job with something of everything: a download, a computation, an upload and an
// update, a label, two recorded steps.
#pragma once

#include "core/model/profile.h"

namespace stepcast::fuzz {

inline ProfileDraft SmallDraft() {
  return {.display_name = "small",
          .model = "tiny",
          .framework = "test",
          .labels = {{"team", "vision"}},
          .batch_size = 10,
          .platform = {.bandwidth_bytes_per_second = 1e6,
                       .parsing_overhead = {.seconds_per_byte = 1e-9, .seconds = 1e-5},
                       .window_bytes = 300},
          .parameter_servers = 1,
          .operations = {{.name = "recv",
                          .resource = Resource::kDownlink,
                          .size_bytes = 1000,
                          .waiting_for = {},
                          .parameter = "w"},
                         {.name = "compute",
                          .resource = Resource::kWorker,
                          .waiting_for = {0},
                          .parameter = ""},
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
                     .end_ns = {1'000'000, 3'000'000, 4'000'000, 5'000'000}},
                    {.start_ns = {0, 1'200'000, 3'000'000, 4'000'000},
                     .end_ns = {1'200'000, 3'000'000, 4'000'000, 5'100'000}}}};
}

// The same of a job of collectives: two gradients, the buckets' rule, two streams.
inline ProfileDraft SmallCollectivesDraft() {
  return {.display_name = "small collectives",
          .model = "tiny",
          .framework = "test",
          .batch_size = 10,
          .platform = {.bandwidth_bytes_per_second = 1e6},
          .operations = {{.name = "load", .resource = Resource::kWorker, .stream = 1},
                         {.name = "compute", .resource = Resource::kWorker},
                         {.name = "reduce 1",
                          .resource = Resource::kCollective,
                          .size_bytes = 1000,
                          .waiting_for = {1},
                          .parameter = "v",
                          .collective = Collective::kAllReduce},
                         {.name = "reduce 0",
                          .resource = Resource::kCollective,
                          .size_bytes = 3000,
                          .waiting_for = {1},
                          .parameter = "w",
                          .collective = Collective::kAllReduce},
                         {.name = "optimizer",
                          .resource = Resource::kWorker,
                          .waiting_for = {0, 2, 3}}},
          .steps = {{.start_ns = {0, 0, 2'000'000, 2'000'000, 2'000'000},
                     .end_ns = {500'000, 2'000'000, 2'000'000, 2'000'000, 3'000'000}},
                    {.start_ns = {0, 0, 2'500'000, 2'500'000, 2'500'000},
                     .end_ns = {600'000, 2'500'000, 2'500'000, 2'500'000, 3'400'000}}},
          .buckets = RecordedBuckets{.rule = Buckets{.first_bytes = 500, .cap_bytes = 2000}}};
}

}  // namespace stepcast::fuzz
