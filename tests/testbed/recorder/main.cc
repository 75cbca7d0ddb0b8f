// Writes a profile as TensorFlow would have recorded it: proto JSON from standard input,
// RunMetadata to standard output.
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/model/profile.h"
#include "tests/support/profile_json.h"
#include "tests/support/run_metadata_writer.h"

int main() {
  using namespace stepcast;  // NOLINT(google-build-using-namespace): a program of one function
  try {
    const absl::StatusOr<Profile> profile =
        Profile::Create(testing::ProfileFromJson(nlohmann::json::parse(std::cin)));
    const absl::StatusOr<std::string> recording =
        profile.ok() ? testing::WriteRunMetadata(*profile, {.nanoseconds = true})
                     : profile.status();
    if (!recording.ok()) {
      std::cerr << recording.status() << "\n";
      return 1;
    }
    std::cout << *recording << std::flush;
    return std::cout.good() ? 0 : 1;
  } catch (const std::exception& fault) {
    std::cerr << fault.what() << "\n";
    return 1;
  }
}
