#include "client/cli/allocation_table.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/measure_text.h"
#include "client/cli/table.h"

namespace stepcast::client {

namespace {

std::vector<std::string> RowOf(const JobAllocation& job) {
  if (!job.status.ok()) return {job.id, "-", "-", "-", "-", "-", "-"};
  return {job.id,
          absl::StrCat(job.workers),
          absl::StrCat(job.parameter_servers),
          absl::StrCat(job.interpolated ? "~" : "", NumberText(job.examples_per_second)),
          NumberText(job.speedup),
          NumberText(job.utility),
          job.duration ? DurationText(*job.duration) : "-"};
}

std::string MoreText(const OneMoreWorker& more) {
  if (more.changes.empty()) return "one more worker would be of no use\n";
  const auto change = [](std::string* out, const AllocationChange& one) {
    absl::StrAppend(out, one.id, " would have ", one.workers,
                    one.workers == 1 ? " worker" : " workers");
  };
  return absl::StrCat("one more worker would add ", NumberText(more.utility_gain),
                      " of utility: ", absl::StrJoin(more.changes, ", ", change), "\n");
}

}  // namespace

std::string AllocationText(const AllocateWorkersResponse& response) {
  using Align = Table::Align;
  Table table({{"job", Align::kLeft},
               {"workers"},
               {"servers"},
               {"examples/s"},
               {"speed-up"},
               {"utility"},
               {"time left"}});
  std::string errors;
  std::string warnings;
  for (const JobAllocation& job : response.allocations) {
    table.AddRow(RowOf(job));
    for (const std::string& warning : job.warnings)
      absl::StrAppend(&warnings, "warning (", job.id, "): ", warning, "\n");
    if (!job.status.ok())
      absl::StrAppend(&errors, "error (", job.id, "): ", job.status.message(), "\n");
  }
  if (!response.infeasible_reason.empty())
    return absl::StrCat("No allocation: ", response.infeasible_reason, "\n", errors);
  return absl::StrCat(table.Text(), "total: ", response.workers, " workers, ",
                      response.parameter_servers, " servers, utility ",
                      NumberText(response.total_utility), "\n", MoreText(response.one_more_worker),
                      warnings, errors);
}

}  // namespace stepcast::client
