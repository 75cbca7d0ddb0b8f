#include "client/cli/profile_table.h"

#include "absl/strings/str_cat.h"
#include "client/cli/measure_text.h"
#include "client/cli/table.h"
#include "client/cli/time_text.h"

namespace stepcast::client {

namespace {

using Align = Table::Align;

std::string LabelsText(const Profile& profile) {
  std::string text;
  for (const auto& [key, value] : profile.labels)
    absl::StrAppend(&text, text.empty() ? "" : " ", key, "=", value);
  return text.empty() ? "-" : text;
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

// How many operations there are on a kind of resource, and how many bytes they move.
std::string KindText(const Profile& profile, Resource resource) {
  int64_t count = 0;
  int64_t bytes = 0;
  for (const Operation& operation : profile.operations) {
    if (operation.resource != resource) continue;
    ++count;
    bytes += operation.size_bytes;
  }
  return bytes > 0 ? absl::StrCat(count, ", ", BytesText(bytes)) : absl::StrCat(count);
}

}  // namespace

std::string ProfileTable(const std::vector<Profile>& profiles) {
  Table table({{"name", Align::kLeft},
               {"model", Align::kLeft},
               {"batch"},
               {"servers"},
               {"operations"},
               {"steps"},
               {"size"},
               {"created", Align::kLeft},
               {"labels", Align::kLeft}});
  for (const Profile& profile : profiles) {
    table.AddRow({profile.name, OrDash(profile.model), absl::StrCat(profile.batch_size),
                  absl::StrCat(profile.parameter_servers), absl::StrCat(profile.operation_count),
                  absl::StrCat(profile.step_count), BytesText(profile.size_bytes),
                  TimeText(profile.create_time), LabelsText(profile)});
  }
  return table.Text();
}

std::string ProfileText(const Profile& profile) {
  Table table({{"profile", Align::kLeft}, {OrDash(profile.name), Align::kLeft}});
  table.AddRow({"display name", OrDash(profile.display_name)});
  table.AddRow({"model", OrDash(profile.model)});
  table.AddRow({"framework", OrDash(profile.framework)});
  table.AddRow({"labels", LabelsText(profile)});
  table.AddRow({"batch size", absl::StrCat(profile.batch_size)});
  table.AddRow({"parameter servers", absl::StrCat(profile.parameter_servers)});
  table.AddRow({"operations", absl::StrCat(profile.operation_count)});
  if (!profile.operations.empty()) {
    table.AddRow({"  downloads", KindText(profile, Resource::kDownlink)});
    table.AddRow({"  worker's", KindText(profile, Resource::kWorker)});
    table.AddRow({"  uploads", KindText(profile, Resource::kUplink)});
    table.AddRow({"  servers'", KindText(profile, Resource::kParameterServer)});
    table.AddRow({"bandwidth", absl::StrCat(NumberText(profile.platform.bandwidth_bytes_per_second),
                                            " bytes/s")});
  }
  table.AddRow({"steps", absl::StrCat(profile.step_count)});
  table.AddRow({"size", BytesText(profile.size_bytes)});
  table.AddRow({"created", TimeText(profile.create_time)});
  if (!profile.owner.empty()) table.AddRow({"owner", profile.owner});
  table.AddRow({"digest", OrDash(profile.digest)});
  table.AddRow({"etag", OrDash(profile.etag)});
  return table.Text();
}

}  // namespace stepcast::client
