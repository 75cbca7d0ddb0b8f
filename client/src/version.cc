#include "stepcast/version.h"

#include "stepcast_version_text.h"

namespace stepcast::client {

std::string_view Version() { return STEPCAST_VERSION; }

}  // namespace stepcast::client
