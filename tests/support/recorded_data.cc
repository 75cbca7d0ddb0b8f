#include "tests/support/recorded_data.h"

#include <cstdlib>

namespace stepcast::testing {

std::filesystem::path RecordedDataFolder() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here changes the environment.
  const char* chosen = std::getenv("STEPCAST_SHARED_DATA");
  return chosen != nullptr ? std::filesystem::path(chosen)
                           : std::filesystem::path(STEPCAST_SOURCE_DIR) / ".." / "shared" / "data";
}

}  // namespace stepcast::testing
