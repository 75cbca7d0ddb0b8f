// What a file looks like that could not be read as what it was given for.
#pragma once

#include <string>

namespace stepcast::client {

// A sentence for people: what the file at `path` looks like, and which can be read; empty where it
// may be a profile, or cannot be read at all.
std::string NoProfileHint(const std::string& path);

}  // namespace stepcast::client
