#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "client/cli/texts/answer_texts.h"
#include "client/cli/texts/json_text.h"
#include "client/cli/texts/table.h"

#include "server/local/recording_report.h"
#include "stepcast/json.h"

namespace stepcast::client {

namespace {

using nlohmann::ordered_json;

std::string ClocksText(const server::ClockReport& clocks) {
  if (clocks.impossible_orders == 0) return "";
  std::string text =
      absl::StrCat("clocks: ", clocks.impossible_orders, " of ", clocks.orders,
                   " recorded orders are impossible, by up to ", SecondsText(clocks.worst_seconds));
  if (clocks.server_ahead_seconds != 0) {
    absl::StrAppend(&text, "; the server's clock is taken to be ",
                    SecondsText(std::abs(clocks.server_ahead_seconds)),
                    clocks.server_ahead_seconds > 0 ? " ahead" : " behind");
  }
  absl::StrAppend(&text, "; ", clocks.clamped_orders, " clamped");
  if (clocks.clamped_orders > 0)
    absl::StrAppend(&text, ", by up to ", SecondsText(clocks.worst_clamped_seconds));
  return text + "\n";
}

std::string WindowText(const server::LinkReport& link) {
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

std::vector<std::string> ErrorsRow(const std::string& name, const server::EndErrorReport& errors) {
  return {name, absl::StrFormat("%.2f%%", 100 * errors.average),
          absl::StrFormat("%.2f%%", 100 * errors.median),
          absl::StrFormat("%.2f%%", 100 * errors.p95),
          absl::StrFormat("%.2f%%", 100 * errors.maximum)};
}

std::string SharingName(const server::DisciplineReport& discipline) {
  if (discipline.window_bytes == 0 || discipline.name == "PROFILE") return discipline.plain_name;
  return absl::StrCat(discipline.plain_name, " (", BytesText(discipline.window_bytes), ")");
}

// Smaller differences than these, as shares, are no reason to do anything.
constexpr double kStepWorthExplaining = 0.01;
constexpr double kBandwidthWorthSaying = 0.02;
constexpr double kEndsWorthSaying = 0.02;
constexpr double kHostWorthSaying = 0.1;

std::string LowerName(const server::LinkReport& link) {
  return absl::AsciiStrToLower(link.direction);
}

const server::DisciplineReport* FindDiscipline(const server::LinkReport& link,
                                               const std::string& name) {
  const auto found =
      std::find_if(link.disciplines.begin(), link.disciplines.end(),
                   [&](const server::DisciplineReport& tried) { return tried.name == name; });
  return found == link.disciplines.end() ? nullptr : &*found;
}

// The flags of predict and the others that stand for it; empty: there are none.
std::string FlagsOf(const server::DisciplineReport& discipline) {
  const std::string window = absl::StrCat(" --window ", discipline.window_bytes, "B");
  const std::string quantum = absl::StrCat(" --quantum ", discipline.quantum_bytes, "B");
  if (discipline.name == "WHOLE_STREAM") return "--multiplexing whole-stream";
  if (discipline.name == "ROUND_ROBIN") return "--multiplexing round-robin";
  if (discipline.name == "WINDOW") return "--multiplexing window" + window;
  if (discipline.name == "BOUNDED_WINDOW") return "--multiplexing window" + window + quantum;
  if (discipline.name == "EQUAL_QUANTA") return "--multiplexing round-robin" + window + quantum;
  if (discipline.name == "RECORDED_ORDER") return "--multiplexing whole-stream --order recorded";
  return "";
}

void Advise(std::vector<std::string>& to_do, const std::string& flags, const std::string& why) {
  const std::string line = absl::StrCat("give predict and the others ", flags, ": ", why);
  if (std::find(to_do.begin(), to_do.end(), line) == to_do.end()) to_do.push_back(line);
}

std::string ExplainedText(const server::ReplayReport& replay, std::vector<std::string>& to_do) {
  if (replay.recorded_step_seconds <= 0)
    return "explained: the recorded steps take no time, so there is nothing to explain\n";
  const double change = replay.replayed_step_seconds / replay.recorded_step_seconds - 1;
  const double explained = std::min(replay.recorded_step_seconds, replay.replayed_step_seconds) /
                           std::max(replay.recorded_step_seconds, replay.replayed_step_seconds);
  if (replay.fitted_transfer_seconds > 0 && change < -kStepWorthExplaining) {
    Advise(to_do, absl::StrFormat("--parsing-seconds %.3g", replay.fitted_transfer_seconds),
           absl::StrFormat("a cost of %.3g us a transfer would explain the rest of the step",
                           1e6 * replay.fitted_transfer_seconds));
  }
  if (replay.fitted_transfer_seconds <= 0 && change < -kStepWorthExplaining) {
    to_do.push_back(absl::StrFormat(
        "look at the recording: in %.3g ms of its step nothing of the profile runs, which the "
        "model leaves out, so that predictions are so much too fast",
        1e3 * (replay.recorded_step_seconds - replay.replayed_step_seconds)));
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

std::string LinkSummary(const server::LinkReport& link, std::vector<std::string>& to_do) {
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
    Advise(to_do, absl::StrFormat("--bandwidth %.4gMB/s", megabytes),
           absl::StrCat("the recording's ", name, " was as fast as that"));
  }
  const server::DisciplineReport* const nearest = FindDiscipline(link, link.nearest);
  const server::DisciplineReport* const own = FindDiscipline(link, "PROFILE");
  if (nearest == nullptr || own == nullptr) return text + "\n";
  // The profile's own way is not worse worth saying, and needs nothing to be done.
  const bool is_own = own->errors.median <= nearest->errors.median + kEndsWorthSaying;
  const server::DisciplineReport& best = is_own ? *own : *nearest;
  const std::string shared =
      is_own ? "shared as the profile says" : "shared by " + SharingName(best);
  absl::StrAppendFormat(&text, "; %s, its streams end as recorded to %.2f%% (median)", shared,
                        100 * best.errors.median);
  if (!is_own) {
    absl::StrAppendFormat(&text, ", as the profile says to %.2f%%", 100 * own->errors.median);
    Advise(to_do, FlagsOf(best), absl::StrCat("so the ", name, "'s streams shared it"));
  }
  return text + "\n";
}

// So many buckets are listed.
constexpr size_t kMostBuckets = 12;

std::string BucketsText(const std::vector<server::BucketReport>& buckets) {
  std::string text = absl::StrCat(buckets.size(), ": ");
  const char* separator = "";
  for (size_t i = 0; i < std::min(buckets.size(), kMostBuckets); ++i) {
    absl::StrAppend(&text, separator, BytesText(buckets[i].size_bytes), " at ",
                    SecondsText(buckets[i].ready_seconds));
    separator = ", ";
  }
  if (buckets.size() > kMostBuckets)
    absl::StrAppend(&text, " and ", buckets.size() - kMostBuckets, " more");
  return text;
}

std::string LimitText(const server::LimitReport& limit) {
  if (limit.most_bytes == 0) return absl::StrCat(BytesText(limit.least_bytes), " or more");
  return absl::StrCat(BytesText(limit.least_bytes), " to ", BytesText(limit.most_bytes));
}

std::string RuleText(const server::BucketRuleReport& rule) {
  using Verdict = server::BucketRuleReport::Verdict;
  const std::string limits = absl::StrCat("a first bucket of ", LimitText(rule.first),
                                          " and a cap of ", LimitText(rule.cap));
  switch (rule.verdict) {
    case Verdict::kNoBuckets:
      return "none";
    case Verdict::kByDefault:
      return "DistributedDataParallel's by default, 1 MiB first and then 25 MiB; so does " + limits;
    case Verdict::kOtherLimits:
      return "DistributedDataParallel's with " + limits;
    case Verdict::kNotByRule:
      return "not DistributedDataParallel's: no limits make these buckets of these gradients";
    case Verdict::kUnknown:
      return "not known, since the gradients within the buckets were not recorded "
             "(PyTorch: record_shapes=True, no hook that compresses): other buckets cannot be "
             "asked for";
  }
  return "";
}

// Lines of a job whose workers meet in collectives.
std::string AllReduceText(const server::AllReduceReport& report, std::vector<std::string>& to_do) {
  using Verdict = server::BucketRuleReport::Verdict;
  const server::StepShares& shares = report.shares;
  std::string text = absl::StrFormat(
      "step: %.1f%% computation, %s%.1f%% collectives alone, %.1f%% nothing recorded\n",
      100 * shares.computation,
      report.knows_host
          ? absl::StrFormat("%.1f%% in which the device waits for the host, ", 100 * shares.host)
          : "",
      100 * shares.communication, 100 * shares.gaps);
  if (report.buckets.empty()) return text + "buckets: there is no all-reduce\n";
  const bool has_buckets = report.rule.verdict != Verdict::kNoBuckets;
  if (has_buckets) {
    absl::StrAppend(&text, "buckets: ", BucketsText(report.buckets),
                    ", ready so long after the step began\nrule: ", RuleText(report.rule), "\n");
  } else {
    int64_t bytes = 0;
    for (const server::BucketReport& each : report.buckets) bytes += each.size_bytes;
    absl::StrAppend(&text, "buckets: none, ", report.buckets.size(), " all-reduces of ",
                    BytesText(bytes),
                    report.assumes_defaults
                        ? ", which predictions send in DistributedDataParallel's default ones\n"
                        : " are sent one by one\n");
  }
  if (!report.default_buckets.empty() && report.rule.verdict != Verdict::kByDefault) {
    absl::StrAppend(&text,
                    "by default, 1 MiB first and then 25 MiB, DistributedDataParallel sends ",
                    BucketsText(report.default_buckets),
                    has_buckets ? "" : ", ready so long after the step began", "\n");
  }
  if (shares.host > kHostWorthSaying) {
    to_do.push_back(
        absl::StrFormat("make the host faster (data loading, Python, launches): the device waits "
                        "for it for %.1f%% of a step, which no network makes shorter",
                        100 * shares.host));
  }
  if (!has_buckets && report.default_buckets.empty() && report.buckets.size() > 1) {
    Advise(to_do, "--horovod-cycle 1ms",
           "so Horovod fuses by default what is ready, where the profile has gradients one by one");
  } else if (!has_buckets && !report.assumes_defaults &&
             report.default_buckets.size() < report.buckets.size()) {
    Advise(to_do, "--bucket-cap 25MiB",
           "so DistributedDataParallel sends these gradients, where the profile has no buckets");
  }
  return text;
}

std::string LinkText(const server::LinkReport& link) {
  const std::string name = LowerName(link);
  if (!link.unavailable_reason.empty())
    return absl::StrCat(name, ": ", link.unavailable_reason, "\n");
  const double megabytes = 1e-6;
  std::string text = absl::StrFormat(
      "%s: %.4g MB/s of payload (%.4g to %.4g), the profile says %.4g; an idle link takes %s (%s "
      "to %s) to start\n",
      name, megabytes * link.bandwidth_bytes_per_second, megabytes * link.bandwidth_interval.lower,
      megabytes * link.bandwidth_interval.upper, megabytes * link.stated_bytes_per_second,
      SecondsText(link.start_seconds), SecondsText(link.start_interval.lower),
      SecondsText(link.start_interval.upper));
  absl::StrAppend(&text, "  window: ", WindowText(link),
                  "\n  error of end times, as a share of the time since the phase began:\n");
  Table table({{"  streams", Table::Align::kLeft}, {"average"}, {"median"}, {"95th"}, {"maximum"}});
  for (const server::DisciplineReport& discipline : link.disciplines) {
    const bool is_nearest = discipline.name == link.nearest;
    table.AddRow(
        ErrorsRow((is_nearest ? "* " : "  ") + SharingName(discipline), discipline.errors));
    if (is_nearest) table.AddRow(ErrorsRow("    and an idle link's start", link.with_start));
  }
  return text + table.Text();
}

std::string OrdersText(const server::RecordedOrderReport& orders) {
  const std::vector<double>& efficiencies = orders.efficiencies;
  if (efficiencies.size() < 2) return "";
  const auto [least, most] = std::minmax_element(efficiencies.begin(), efficiencies.end());
  std::string text = absl::StrFormat(
      "orders: %d different ones of the downloads in %d steps; scheduling efficiency %.3f to %.3f",
      orders.unique_orders, efficiencies.size(), *least, *most);
  if (orders.r_squared.has_value()) {
    absl::StrAppendFormat(&text, ", which explains %.0f%% of how their lengths differ",
                          100 * *orders.r_squared);
  }
  return text + "\n";
}

std::string OrderTable(const server::RecordedOrderReport& orders) {
  Table table({{"recorded step"}, {"length"}, {"scheduling efficiency"}});
  for (size_t step = 0; step < orders.efficiencies.size(); ++step) {
    table.AddRow({absl::StrCat(step), SecondsText(orders.step_seconds[step]),
                  absl::StrFormat("%.4f", orders.efficiencies[step])});
  }
  return table.Text();
}

ordered_json JsonOf(const server::RecordedOrderReport& orders) {
  ordered_json object{{"uniqueOrders", orders.unique_orders}};
  if (orders.r_squared.has_value()) object["rSquared"] = NumberJson(*orders.r_squared);
  for (size_t step = 0; step < orders.efficiencies.size(); ++step) {
    object["steps"].push_back({{"seconds", NumberJson(orders.step_seconds[step])},
                               {"schedulingEfficiency", NumberJson(orders.efficiencies[step])}});
  }
  return object;
}

ordered_json JsonOf(const server::EndErrorReport& errors) {
  return {{"average", NumberJson(errors.average)},
          {"median", NumberJson(errors.median)},
          {"p95", NumberJson(errors.p95)},
          {"maximum", NumberJson(errors.maximum)}};
}

ordered_json JsonOf(const server::IntervalReport& interval) {
  return {{"lower", NumberJson(interval.lower)},
          {"upper", NumberJson(interval.upper)},
          {"level", NumberJson(interval.level)}};
}

ordered_json JsonOf(const server::DisciplineReport& discipline) {
  return {{"discipline", discipline.name},
          {"bandwidthBytesPerSecond", NumberJson(discipline.bandwidth_bytes_per_second)},
          {"windowBytes", CountJson(discipline.window_bytes)},
          {"quantumBytes", CountJson(discipline.quantum_bytes)},
          {"endTimeError", JsonOf(discipline.errors)}};
}

ordered_json JsonOf(const server::LinkReport& link) {
  ordered_json object{{"direction", link.direction},
                      {"unavailableReason", link.unavailable_reason}};
  if (!link.unavailable_reason.empty()) return object;
  object["bandwidthBytesPerSecond"] = NumberJson(link.bandwidth_bytes_per_second);
  object["bandwidthInterval"] = JsonOf(link.bandwidth_interval);
  object["statedBytesPerSecond"] = NumberJson(link.stated_bytes_per_second);
  object["startSeconds"] = NumberJson(link.start_seconds);
  object["startInterval"] = JsonOf(link.start_interval);
  object["busyPeriods"] = link.busy_periods;
  object["outlierPeriods"] = link.outlier_periods;
  object["windowIdentified"] = link.window_identified;
  object["windowBytes"] = CountJson(link.window_bytes);
  object["windowLowerBytes"] = CountJson(link.window_lower_bytes);
  object["windowUpperBytes"] = CountJson(link.window_upper_bytes);
  object["largestTransferBytes"] = CountJson(link.largest_transfer_bytes);
  object["disciplines"] = ordered_json::array();
  for (const server::DisciplineReport& discipline : link.disciplines)
    object["disciplines"].push_back(JsonOf(discipline));
  object["nearest"] = link.nearest;
  object["nearestWithStart"] = JsonOf(link.with_start);
  return object;
}

ordered_json JsonOf(const server::ClockReport& clocks) {
  return {{"orders", CountJson(clocks.orders)},
          {"impossibleOrders", CountJson(clocks.impossible_orders)},
          {"worstSeconds", NumberJson(clocks.worst_seconds)},
          {"serverAheadSeconds", NumberJson(clocks.server_ahead_seconds)},
          {"clampedOrders", CountJson(clocks.clamped_orders)},
          {"worstClampedSeconds", NumberJson(clocks.worst_clamped_seconds)}};
}

ordered_json JsonOf(const server::ReplayReport& replay) {
  return {{"recordedStepSeconds", NumberJson(replay.recorded_step_seconds)},
          {"replayedStepSeconds", NumberJson(replay.replayed_step_seconds)},
          {"fittedTransferSeconds", NumberJson(replay.fitted_transfer_seconds)}};
}

const char* NameOf(server::BucketRuleReport::Verdict verdict) {
  using Verdict = server::BucketRuleReport::Verdict;
  switch (verdict) {
    case Verdict::kNoBuckets:
      return "NO_BUCKETS";
    case Verdict::kByDefault:
      return "BY_DEFAULT";
    case Verdict::kOtherLimits:
      return "OTHER_LIMITS";
    case Verdict::kNotByRule:
      return "NOT_BY_RULE";
    case Verdict::kUnknown:
      return "UNKNOWN";
  }
  return "VERDICT_UNSPECIFIED";
}

ordered_json JsonOf(const server::LimitReport& limit) {
  return {{"leastBytes", CountJson(limit.least_bytes)}, {"mostBytes", CountJson(limit.most_bytes)}};
}

ordered_json JsonOf(const server::BucketRuleReport& rule) {
  using Verdict = server::BucketRuleReport::Verdict;
  ordered_json object{{"verdict", NameOf(rule.verdict)}};
  if (rule.verdict != Verdict::kByDefault && rule.verdict != Verdict::kOtherLimits) return object;
  object["first"] = JsonOf(rule.first);
  object["cap"] = JsonOf(rule.cap);
  return object;
}

ordered_json JsonOf(const std::vector<server::BucketReport>& buckets) {
  ordered_json list = ordered_json::array();
  for (const server::BucketReport& bucket : buckets) {
    list.push_back({{"sizeBytes", CountJson(bucket.size_bytes)},
                    {"gradients", CountJson(bucket.gradients)},
                    {"readySeconds", NumberJson(bucket.ready_seconds)}});
  }
  return list;
}

ordered_json JsonOf(const server::AllReduceReport& report) {
  ordered_json shares{{"computation", NumberJson(report.shares.computation)}};
  if (report.knows_host) shares["host"] = NumberJson(report.shares.host);
  shares["communication"] = NumberJson(report.shares.communication);
  shares["gaps"] = NumberJson(report.shares.gaps);
  return {{"shares", shares},
          {"buckets", JsonOf(report.buckets)},
          {"rule", JsonOf(report.rule)},
          {"defaultBuckets", JsonOf(report.default_buckets)},
          {"otherCollectives", CountJson(report.other_collectives)}};
}

}  // namespace

std::string CheckSummary(const server::RecordingReport& recording) {
  std::vector<std::string> to_do;
  std::string text = ExplainedText(recording.replay, to_do);
  if (recording.all_reduce) text += AllReduceText(*recording.all_reduce, to_do);
  for (const server::LinkReport& link : recording.links) text += LinkSummary(link, to_do);
  text += ClocksText(recording.clocks);
  if (recording.orders) text += OrdersText(*recording.orders);
  if (to_do.empty()) to_do.push_back("nothing: the model explains the recording as it is");
  for (const std::string& line : to_do) absl::StrAppend(&text, "to do: ", line, "\n");
  return text;
}

std::string CheckDetails(const server::RecordingReport& recording) {
  std::string text;
  for (const server::LinkReport& link : recording.links) text += LinkText(link);
  if (recording.orders) text += OrderTable(*recording.orders);
  return text;
}

std::string CheckJson(const v1::Profile& profile, const server::RecordingReport& recording) {
  ordered_json object{{"replay", JsonOf(recording.replay)}};
  if (recording.all_reduce) {
    object["allReduce"] = JsonOf(*recording.all_reduce);
  } else {
    object["clocks"] = JsonOf(recording.clocks);
    object["links"] = ordered_json::array();
    for (const server::LinkReport& link : recording.links) object["links"].push_back(JsonOf(link));
    if (recording.orders) object["orders"] = JsonOf(*recording.orders);
  }
  std::string text = JsonText(object);
  text.pop_back();
  // A profile's JSON may be long, so it is not parsed; it always has fields and ends with "\n}\n".
  std::string json = ToJson(profile);
  json.resize(json.rfind('}'));
  while (!json.empty() && json.back() == '\n') json.pop_back();
  return absl::StrCat(json, ",\n \"recording\": ", absl::StrReplaceAll(text, {{"\n", "\n "}}),
                      "\n}\n");
}

}  // namespace stepcast::client
