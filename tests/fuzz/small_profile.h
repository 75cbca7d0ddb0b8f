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

// The same as two workers recorded it, the second one slower and with a clock 5 s ahead.
inline ProfileDraft SmallRecordedDraft() {
  ProfileDraft draft = SmallCollectivesDraft();
  draft.display_name = "small recording";
  JobRecording& recording = draft.recording.emplace();
  recording.collectives = {{.kind = Collective::kAllReduce, .size_bytes = 1000},
                           {.kind = Collective::kAllReduce, .size_bytes = 3000}};
  recording.workers = {
      {.name = "rank 0",
       .step_begins_ns = {0, 10'000'000},
       .step_ends_ns = {9'000'000, 19'000'000},
       .runs = {{2'000'000, 5'000'000},
                {5'000'000, 8'000'000},
                {12'500'000, 15'600'000},
                {15'600'000, 18'100'000}}},
      {.name = "rank 1",
       .steps = {{.start_ns = {0, 0, 4'000'000, 4'000'000, 4'000'000},
                  .end_ns = {500'000, 4'000'000, 4'000'000, 4'000'000, 5'000'000}},
                 {.start_ns = {0, 0, 4'500'000, 4'500'000, 4'500'000},
                  .end_ns = {600'000, 4'500'000, 4'500'000, 4'500'000, 5'400'000}}},
       .step_begins_ns = {5'000'000'000, 5'010'000'000},
       .step_ends_ns = {5'009'000'000, 5'019'000'000},
       .runs = {{5'004'000'000, 5'005'000'000},
                {5'005'000'000, 5'008'000'000},
                {5'014'500'000, 5'015'600'000},
                {5'015'600'000, 5'018'100'000}}}};
  return draft;
}

}  // namespace stepcast::fuzz
