// The version of this library.
#pragma once

#include <string_view>

namespace stepcast::client {

// "0.1.0" of a release, "0.1.0~git20261122045152.3647def9" of a commit on the way to it.
std::string_view Version();

}  // namespace stepcast::client
