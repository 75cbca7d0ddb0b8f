#include "core/base/version.h"

#include "stepcast_version_text.h"

namespace stepcast {

const char* ProgramVersion() { return STEPCAST_VERSION; }

}  // namespace stepcast
