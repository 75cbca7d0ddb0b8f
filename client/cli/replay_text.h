// How well a recording is explained, for people.
#pragma once

#include <string>

#include "client/local/replay_report.h"

namespace stepcast::client {

// Two lines at most.
std::string ReplayText(const ReplayReport& report);

}  // namespace stepcast::client
