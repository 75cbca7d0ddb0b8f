// The size limits of a profile. Each is named in the error that reports it and is a flag of the
// server.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stepcast {

struct ProfileLimits {
  int64_t max_operations = 1'000'000;
  int64_t max_steps = 10'000;
  int64_t max_recorded_times = 50'000'000;  // operations x steps
  int64_t max_dependencies = 10'000'000;    // all waiting_for together
  int64_t max_parameter_servers = 256;
  int64_t max_batch_size = 1'000'000'000;
  int64_t max_transfer_bytes = int64_t{1} << 44;  // 16 TiB; of a collective, too
  int32_t max_streams = 64;                       // of a worker
  int64_t max_step_ns = 86'400'000'000'000;       // one day
  size_t max_name_bytes = 512;                    // an operation's or a parameter's
  size_t max_text_bytes = 256;                    // display_name, model, framework, a label's value
  size_t max_labels = 64;
  size_t max_label_key_bytes = 63;
};

}  // namespace stepcast
