#include "server/app/config_file.h"

#include <yaml-cpp/yaml.h>

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/quoted.h"
#include "server/app/small_file.h"

namespace stepcast::server {

namespace {

constexpr char kReason[] = "CONFIG_INVALID";

// As editors count lines.
std::string PlaceOf(const std::string& path, const YAML::Mark& mark) {
  return absl::StrCat(path, ":", mark.line + 1);
}

absl::StatusOr<std::vector<GivenSetting>> Settings(const std::string& path,
                                                   const YAML::Node& root) {
  std::vector<GivenSetting> settings;
  std::vector<Fault> faults;
  std::map<std::string, std::string> places;  // name -> where it was first
  for (const auto& entry : root) {
    const std::string place = PlaceOf(path, entry.first.Mark());
    if (!entry.first.IsScalar()) {
      faults.push_back({.field = place, .description = "a key must be the name of a setting"});
      continue;
    }
    const std::string& name = entry.first.Scalar();
    if (const auto [first, is_new] = places.emplace(name, place); !is_new) {
      faults.push_back(
          {.field = place,
           .description = absl::StrCat(Quoted(name), " is there already, at ", first->second)});
    } else if (!entry.second.IsScalar()) {
      faults.push_back({.field = place,
                        .description = absl::StrCat(Quoted(name), " must have one plain value")});
    } else {
      settings.push_back({.name = name, .value = entry.second.Scalar(), .source = place});
    }
  }
  if (!faults.empty()) return FaultsError(kReason, std::move(faults));
  return settings;
}

}  // namespace

absl::StatusOr<std::vector<GivenSetting>> ReadConfigFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadSmallFile(path, kMaxConfigBytes);
  if (!text.ok())
    return FaultsError(kReason,
                       {{.field = path, .description = std::string(text.status().message())}});
  // The library reports what is not YAML by an exception.
  try {
    const YAML::Node root = YAML::Load(*text);
    if (root.IsNull()) return std::vector<GivenSetting>();
    if (!root.IsMap())
      return FaultsError(kReason, {{.field = PlaceOf(path, root.Mark()),
                                    .description = "must be a map from settings to values"}});
    return Settings(path, root);
  } catch (const YAML::Exception& exception) {
    return FaultsError(kReason,
                       {{.field = PlaceOf(path, exception.mark), .description = exception.msg}});
  }
}

}  // namespace stepcast::server
