#include "stepcast/version.h"

namespace stepcast::client {

std::string_view Version() { return STEPCAST_VERSION; }

}  // namespace stepcast::client
