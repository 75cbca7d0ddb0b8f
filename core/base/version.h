// The version of the programs, which names the commit they are built from.
#pragma once

namespace stepcast {

// "0.1.0~git20261122045152.3647def9" before the release 0.1.0, "0.1.0" at it, "0.1.0+git..." after;
// built without git, the last release or the next one alone. As the packages' version.
const char* ProgramVersion();

}  // namespace stepcast
