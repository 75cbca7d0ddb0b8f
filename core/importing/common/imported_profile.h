// The result of an import.
#pragma once

#include <string>
#include <vector>

#include "core/model/profile.h"

namespace stepcast {

struct ImportedProfile {
  Profile profile;
  std::vector<std::string> notes;  // findings, omissions and assumptions, a sentence each
};

}  // namespace stepcast
