#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/texts/answer_texts.h"
#include "client/cli/texts/table.h"

namespace stepcast::client {

namespace {

constexpr double kNanosecond = 1e-9;

// "+3.25 s", "-812 ns", "0 ns".
std::string SignedText(double seconds) {
  if (seconds == 0) return "0 ns";
  return absl::StrCat(seconds < 0 ? "-" : "+", SecondsText(std::abs(seconds)));
}

std::string BoundText(bool has_bound, int64_t ns) {
  return has_bound ? SignedText(static_cast<double>(ns) * kNanosecond) : "unbounded";
}

// The bounds of an offset, from the offset itself: the interval is far narrower than the offset is
// large.
template <typename Report>
std::string BoundsText(const Report& node) {
  const auto apart = [&](bool has_bound, int64_t bound) {
    return BoundText(has_bound, bound - node.clock_offset_ns());
  };
  return absl::StrCat(apart(node.has_least_clock_offset_ns(), node.least_clock_offset_ns()), " .. ",
                      apart(node.has_most_clock_offset_ns(), node.most_clock_offset_ns()));
}

// In millionths; less than a nanosecond a second is none.
std::string DriftText(double drift) {
  return NumberText(std::round(drift / kNanosecond) * 1e-3 + 0.0);
}

// "36.10 us/s (30.00 .. 41.50)", "- (12.00 .. 200)" where the exchanges would have it be more than
// any clock's.
template <typename Report>
std::string DriftText(const Report& node) {
  std::string text =
      node.has_clock_drift() ? absl::StrCat(DriftText(node.clock_drift()), " us/s") : "-";
  if (node.has_least_clock_drift() && node.has_most_clock_drift()) {
    absl::StrAppend(&text, " (", DriftText(node.least_clock_drift()), " .. ",
                    DriftText(node.most_clock_drift()), ")");
  }
  return text;
}

// "0.6% shorter".
std::string BesideText(double replayed, double recorded) {
  const double share = recorded > 0 ? replayed / recorded - 1 : 0;
  return absl::StrCat(PercentText(std::abs(share)), share > 0 ? " longer" : " shorter");
}

}  // namespace

std::string RecordingText(const v1::RecordingReport& report) {
  Table table({{"recorded on", Table::Align::kLeft},
               {"clock"},
               {"give or take"},
               {"drift"},
               {"step recorded"},
               {"replayed"}});
  for (const v1::RecordedWorkerReport& worker : report.workers()) {
    const bool is_first = &worker == &report.workers(0);
    table.AddRow(
        {worker.name(), SignedText(static_cast<double>(worker.clock_offset_ns()) * kNanosecond),
         is_first ? "" : BoundsText(worker), is_first ? "" : DriftText(worker),
         SecondsText(worker.recorded_step_seconds()), SecondsText(worker.replayed_step_seconds())});
  }
  for (const v1::RecordedServerReport& server : report.servers()) {
    table.AddRow({server.name(),
                  SignedText(static_cast<double>(server.clock_offset_ns()) * kNanosecond),
                  BoundsText(server), DriftText(server), "", ""});
  }
  std::string text = table.Text();
  const std::string steps =
      report.steps() == 1 ? "one step" : absl::StrCat("each of ", report.steps(), " steps");
  absl::StrAppend(
      &text, "matched: ",
      report.servers_size() > 0 ? absl::StrCat("the transfers in ", steps)
                                : absl::StrCat(report.collectives(), " collectives in ", steps),
      " of ", report.workers_size(),
      report.job_workers() > report.workers_size()
          ? absl::StrCat(" of the job's ", report.job_workers())
          : "",
      " workers",
      report.servers_size() > 0 ? absl::StrCat(" with ", report.servers_size(), " parameter server",
                                               report.servers_size() == 1 ? "" : "s")
                                : "",
      "\n");
  absl::StrAppend(&text, "replay: a step takes ", SecondsText(report.replayed_step_seconds()), ", ",
                  BesideText(report.replayed_step_seconds(), report.recorded_step_seconds()),
                  " than the recorded ", SecondsText(report.recorded_step_seconds()));
  if (report.has_unaligned_step_seconds()) {
    absl::StrAppend(&text, "; with the clocks as they were read ",
                    SecondsText(report.unaligned_step_seconds()), ", ",
                    BesideText(report.unaligned_step_seconds(), report.recorded_step_seconds()));
  }
  absl::StrAppend(&text, "\nof it workers wait for others: ", SecondsText(report.waiting_seconds()),
                  "; not replayed: ", SignedText(report.between_steps_seconds()),
                  " between steps, ", SignedText(report.unexplained_seconds()), " unexplained\n");
  if (report.job_workers() > report.workers_size()) {
    absl::StrAppend(
        &text, "a sample: how long they wait for workers that were not recorded is not known",
        report.has_beyond_shortest_seconds()
            ? absl::StrCat("; collectives took ", SecondsText(report.beyond_shortest_seconds()),
                           " of a step more than the shortest of their kind and size")
            : "",
        "\n");
  }
  return text;
}

}  // namespace stepcast::client
