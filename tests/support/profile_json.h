// Profiles as the test data keep them: JSON with the field names of the contract.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/model/profile.h"

namespace stepcast::testing {

// The content of a JSON file. Throws std::runtime_error, naming the path, if it is not there or is
// not JSON: that fails the test that asked.
nlohmann::json ReadJsonFile(const std::string& path);

// A profile in JSON, unchecked. A key that is missing or null leaves the draft's default; an
// unknown resource becomes kUnspecified, so that the validation sees it; a value of a wrong type
// throws nlohmann::json::exception. Integers may be numbers or, as in proto JSON, strings.
ProfileDraft ProfileFromJson(const nlohmann::json& json);

}  // namespace stepcast::testing
