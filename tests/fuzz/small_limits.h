// Limits that an input of a few kilobytes can reach.
#pragma once

#include "core/model/profile.h"

namespace stepcast::fuzz {

inline ProfileLimits SmallLimits() {
  return {.max_operations = 128,
          .max_steps = 16,
          .max_recorded_times = 1024,
          .max_dependencies = 512,
          .max_parameter_servers = 8,
          .max_name_bytes = 128,
          .max_text_bytes = 64,
          .max_labels = 8,
          .max_label_key_bytes = 16};
}

}  // namespace stepcast::fuzz
