// Recordings that others made. They are no part of the tree: tests that use them skip, saying so,
// where they are absent.
#pragma once

#include <filesystem>

namespace stepcast::testing {

// The folder in which they are: that which the environment variable STEPCAST_SHARED_DATA names,
// or `shared/data` beside the tree.
std::filesystem::path RecordedDataFolder();

}  // namespace stepcast::testing
