// A file that says how large variables are: lines `NAME BYTES`, blank ones and those that begin
// with # apart.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace stepcast::client {

// BYTES with a unit or without, as everywhere in the program. INVALID_ARGUMENT, naming the line,
// for what is no such line, or a name that is there twice.
absl::StatusOr<std::map<std::string, int64_t>> ParseVariableSizes(std::string_view text);

}  // namespace stepcast::client
