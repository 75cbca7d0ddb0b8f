// The version of this library.
#pragma once

#include <string_view>

namespace stepcast::client {

// For instance "0.1.0".
std::string_view Version();

}  // namespace stepcast::client
