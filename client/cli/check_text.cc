#include "client/cli/check_text.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/measure_text.h"
#include "client/cli/table.h"

namespace stepcast::client {

namespace {

std::string Seconds(double seconds) {
  return DurationText(std::chrono::nanoseconds(std::llround(seconds * 1e9)));
}

std::string ClocksText(const ClockReport& clocks) {
  if (clocks.impossible_orders == 0) return "";
  std::string text =
      absl::StrCat("clocks: ", clocks.impossible_orders, " of ", clocks.orders,
                   " recorded orders are impossible, by up to ", Seconds(clocks.worst_seconds));
  if (clocks.server_ahead_seconds != 0) {
    absl::StrAppend(&text, "; the server's clock is taken to be ",
                    Seconds(std::abs(clocks.server_ahead_seconds)),
                    clocks.server_ahead_seconds > 0 ? " ahead" : " behind");
  }
  absl::StrAppend(&text, "; ", clocks.clamped_orders, " clamped");
  if (clocks.clamped_orders > 0)
    absl::StrAppend(&text, ", by up to ", Seconds(clocks.worst_clamped_seconds));
  return text + "\n";
}

std::string WindowText(const LinkReport& link) {
  if (link.window_identified) {
    return absl::StrCat("a window of ", BytesText(link.window_bytes), " explains the ends best; ",
                        BytesText(link.window_lower_bytes), " to ",
                        BytesText(link.window_upper_bytes), " do about as well");
  }
  return absl::StrCat("not identifiable: no tensor is larger than ",
                      BytesText(link.largest_transfer_bytes),
                      ", and whole streams explain the ends as well as any window",
                      link.window_lower_bytes < link.largest_transfer_bytes
                          ? absl::StrCat(" from ", BytesText(link.window_lower_bytes), " on")
                          : "");
}

std::vector<std::string> Row(const std::string& name, const EndErrorReport& errors) {
  return {name, absl::StrFormat("%.2f%%", 100 * errors.average),
          absl::StrFormat("%.2f%%", 100 * errors.median),
          absl::StrFormat("%.2f%%", 100 * errors.p95),
          absl::StrFormat("%.2f%%", 100 * errors.maximum)};
}

std::string NameOf(const DisciplineReport& discipline) {
  if (discipline.window_bytes == 0 || discipline.name == "PROFILE") return discipline.plain_name;
  return absl::StrCat(discipline.plain_name, " (", BytesText(discipline.window_bytes), ")");
}

// Smaller differences than these, as shares, are no reason to do anything.
constexpr double kStepWorthExplaining = 0.01;
constexpr double kBandwidthWorthSaying = 0.02;
constexpr double kEndsWorthSaying = 0.02;

std::string LowerName(const LinkReport& link) { return absl::AsciiStrToLower(link.direction); }

const DisciplineReport* Find(const LinkReport& link, const std::string& name) {
  const auto found =
      std::find_if(link.disciplines.begin(), link.disciplines.end(),
                   [&](const DisciplineReport& tried) { return tried.name == name; });
  return found == link.disciplines.end() ? nullptr : &*found;
}

// The flags of predict and the others that stand for it; empty: there are none.
std::string FlagsOf(const DisciplineReport& discipline) {
  const std::string window = absl::StrCat(" --window ", discipline.window_bytes);
  const std::string quantum = absl::StrCat(" --quantum ", discipline.quantum_bytes);
  if (discipline.name == "WHOLE_STREAM") return "--multiplexing whole-stream";
  if (discipline.name == "ROUND_ROBIN") return "--multiplexing round-robin";
  if (discipline.name == "WINDOW") return "--multiplexing window" + window;
  if (discipline.name == "BOUNDED_WINDOW") return "--multiplexing window" + window + quantum;
  if (discipline.name == "EQUAL_QUANTA") return "--multiplexing round-robin" + window + quantum;
  if (discipline.name == "RECORDED_ORDER") return "--multiplexing whole-stream --order recorded";
  return "";
}

void Do(std::vector<std::string>& to_do, const std::string& flags, const std::string& why) {
  const std::string line = absl::StrCat("give predict and the others ", flags, ": ", why);
  if (std::find(to_do.begin(), to_do.end(), line) == to_do.end()) to_do.push_back(line);
}

std::string ExplainedText(const ReplayReport& replay, std::vector<std::string>& to_do) {
  if (replay.recorded_step_seconds <= 0)
    return "explained: the recorded steps take no time, so there is nothing to explain\n";
  const double change = replay.replayed_step_seconds / replay.recorded_step_seconds - 1;
  const double explained = std::min(replay.recorded_step_seconds, replay.replayed_step_seconds) /
                           std::max(replay.recorded_step_seconds, replay.replayed_step_seconds);
  if (replay.fitted_transfer_seconds > 0 && change < -kStepWorthExplaining) {
    Do(to_do, absl::StrFormat("--parsing-seconds %.3g", replay.fitted_transfer_seconds),
       absl::StrFormat("a cost of %.3g us a transfer would explain the rest of the step",
                       1e6 * replay.fitted_transfer_seconds));
  }
  if (change > kStepWorthExplaining) {
    to_do.push_back(
        "look at the recording: it is faster than the model, so computations overlapped in it, or "
        "its bandwidth was higher than the profile says");
  }
  return absl::StrFormat(
      "explained: %.1f%% of one worker's step, which was recorded with %.4g ms and takes %.4g ms "
      "in the model (%+.1f%%)\n",
      100 * explained, 1e3 * replay.recorded_step_seconds, 1e3 * replay.replayed_step_seconds,
      100 * change);
}

std::string LinkSummary(const LinkReport& link, std::vector<std::string>& to_do) {
  const std::string name = LowerName(link);
  if (!link.unavailable_reason.empty())
    return absl::StrCat(name, ": ", link.unavailable_reason, "\n");
  const double megabytes = 1e-6 * link.bandwidth_bytes_per_second;
  std::string text = absl::StrFormat("%s: %.4g MB/s of payload", name, megabytes);
  if (std::abs(link.bandwidth_bytes_per_second / link.stated_bytes_per_second - 1) <
      kBandwidthWorthSaying) {
    text += ", as the profile says";
  } else {
    absl::StrAppendFormat(&text, ", where the profile says %.4g",
                          1e-6 * link.stated_bytes_per_second);
    Do(to_do, absl::StrFormat("--bandwidth %.4gMB/s", megabytes),
       absl::StrCat("the recording's ", name, " was as fast as that"));
  }
  const DisciplineReport* const nearest = Find(link, link.nearest);
  const DisciplineReport* const own = Find(link, "PROFILE");
  if (nearest == nullptr || own == nullptr) return text + "\n";
  // The profile's own way is not worse worth saying, and needs nothing to be done.
  const bool is_own = own->errors.median <= nearest->errors.median + kEndsWorthSaying;
  const DisciplineReport& best = is_own ? *own : *nearest;
  const std::string shared = is_own ? "shared as the profile says" : "shared by " + NameOf(best);
  absl::StrAppendFormat(&text, "; %s, its streams end as recorded to %.2f%% (median)", shared,
                        100 * best.errors.median);
  if (!is_own) {
    absl::StrAppendFormat(&text, ", as the profile says to %.2f%%", 100 * own->errors.median);
    Do(to_do, FlagsOf(best), absl::StrCat("so the ", name, "'s streams shared it"));
  }
  return text + "\n";
}

std::string LinkText(const LinkReport& link) {
  const std::string name = LowerName(link);
  if (!link.unavailable_reason.empty())
    return absl::StrCat(name, ": ", link.unavailable_reason, "\n");
  const double megabytes = 1e-6;
  std::string text = absl::StrFormat(
      "%s: %.4g MB/s of payload (%.4g to %.4g), the profile says %.4g; an idle link takes %s (%s "
      "to %s) to start\n",
      name, megabytes * link.bandwidth_bytes_per_second, megabytes * link.bandwidth_interval.lower,
      megabytes * link.bandwidth_interval.upper, megabytes * link.stated_bytes_per_second,
      Seconds(link.start_seconds), Seconds(link.start_interval.lower),
      Seconds(link.start_interval.upper));
  absl::StrAppend(&text, "  window: ", WindowText(link),
                  "\n  error of end times, as a share of the time since the phase began:\n");
  Table table({{"  streams", Table::Align::kLeft}, {"average"}, {"median"}, {"95th"}, {"maximum"}});
  for (const DisciplineReport& discipline : link.disciplines) {
    const bool is_nearest = discipline.name == link.nearest;
    table.AddRow(Row((is_nearest ? "* " : "  ") + NameOf(discipline), discipline.errors));
    if (is_nearest) table.AddRow(Row("    and an idle link's start", link.with_start));
  }
  return text + table.Text();
}

}  // namespace

std::string CheckSummary(const ReplayReport& replay, const RecordingReport& recording) {
  std::vector<std::string> to_do;
  std::string text = ExplainedText(replay, to_do);
  for (const LinkReport& link : recording.links) text += LinkSummary(link, to_do);
  text += ClocksText(recording.clocks);
  if (to_do.empty()) to_do.push_back("nothing: the model explains the recording as it is");
  for (const std::string& line : to_do) absl::StrAppend(&text, "to do: ", line, "\n");
  return text;
}

std::string CheckDetails(const RecordingReport& recording) {
  std::string text;
  for (const LinkReport& link : recording.links) text += LinkText(link);
  return text;
}

}  // namespace stepcast::client
