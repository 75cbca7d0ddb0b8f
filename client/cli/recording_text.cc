#include "client/cli/recording_text.h"

#include <chrono>
#include <cmath>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/measure_text.h"
#include "client/cli/table.h"

namespace stepcast::client {

namespace {

std::string ClocksText(const ClockReport& clocks) {
  if (clocks.impossible_orders == 0) return "";
  std::string text = absl::StrCat("clocks: ", clocks.impossible_orders, " of ", clocks.orders, " recorded orders are impossible, by up to ",
                                  SecondsText(clocks.worst_seconds));
  if (clocks.server_ahead_seconds != 0) {
    absl::StrAppend(&text, "; the server's clock is taken to be ", SecondsText(std::abs(clocks.server_ahead_seconds)),
                    clocks.server_ahead_seconds > 0 ? " ahead" : " behind");
  }
  absl::StrAppend(&text, "; ", clocks.clamped_orders, " clamped");
  if (clocks.clamped_orders > 0) absl::StrAppend(&text, ", by up to ", SecondsText(clocks.worst_clamped_seconds));
  return text + "\n";
}

std::string WindowText(const LinkReport& link) {
  if (link.window_identified) {
    return absl::StrCat("a window of ", BytesText(link.window_bytes), " explains the ends best; ", BytesText(link.window_lower_bytes), " to ",
                        BytesText(link.window_upper_bytes), " do about as well");
  }
  return absl::StrCat("not identifiable: no tensor is larger than ", BytesText(link.largest_transfer_bytes),
                      ", and whole streams explain the ends as well as any window",
                      link.window_lower_bytes < link.largest_transfer_bytes ? absl::StrCat(" from ", BytesText(link.window_lower_bytes), " on") : "");
}

std::vector<std::string> Row(const std::string& name, const EndErrorReport& errors) {
  return {name, absl::StrFormat("%.2f%%", 100 * errors.average), absl::StrFormat("%.2f%%", 100 * errors.median),
          absl::StrFormat("%.2f%%", 100 * errors.p95), absl::StrFormat("%.2f%%", 100 * errors.maximum)};
}

std::string NameOf(const DisciplineReport& discipline) {
  if (discipline.window_bytes == 0 || discipline.name == "PROFILE") return discipline.plain_name;
  return absl::StrCat(discipline.plain_name, " (", BytesText(discipline.window_bytes), ")");
}

std::string LinkText(const LinkReport& link) {
  const std::string name = absl::AsciiStrToLower(link.direction);
  if (!link.unavailable_reason.empty()) return absl::StrCat(name, ": ", link.unavailable_reason, "\n");
  const double megabytes = 1e-6;
  std::string text = absl::StrFormat("%s: %.4g MB/s of payload (%.4g to %.4g), the profile says %.4g; an idle link takes %s (%s to %s) to start\n",
                                     name, megabytes * link.bandwidth_bytes_per_second, megabytes * link.bandwidth_interval.lower,
                                     megabytes * link.bandwidth_interval.upper, megabytes * link.stated_bytes_per_second,
                                     SecondsText(link.start_seconds), SecondsText(link.start_interval.lower), SecondsText(link.start_interval.upper));
  absl::StrAppend(&text, "  window: ", WindowText(link), "\n  error of end times, as a share of the time since the phase began:\n");
  Table table({{"  streams", Table::Align::kLeft}, {"average"}, {"median"}, {"95th"}, {"maximum"}});
  for (const DisciplineReport& discipline : link.disciplines) {
    const bool is_nearest = discipline.name == link.nearest;
    table.AddRow(Row((is_nearest ? "* " : "  ") + NameOf(discipline), discipline.errors));
    if (is_nearest) table.AddRow(Row("    and an idle link's start", link.with_start));
  }
  return text + table.Text();
}

}  // namespace

std::string RecordingText(const RecordingReport& report) {
  std::string text = ClocksText(report.clocks);
  for (const LinkReport& link : report.links) text += LinkText(link);
  return text;
}

}  // namespace stepcast::client
