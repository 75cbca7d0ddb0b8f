// A setting that somebody gave, and where.
#pragma once

#include <string>

namespace stepcast::server {

struct GivenSetting {
  std::string name;    // of the flag, without its dashes
  std::string value;   // as it was written
  std::string source;  // "/etc/stepcast.yaml:3", "STEPCAST_THREADS" or "--threads"

  friend bool operator==(const GivenSetting&, const GivenSetting&) = default;
};

}  // namespace stepcast::server
