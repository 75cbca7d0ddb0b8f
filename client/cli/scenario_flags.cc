#include "client/cli/scenario_flags.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/parsed_option.h"
#include "client/cli/priority_file.h"
#include "client/cli/quantity.h"

#include "stepcast/profile_encoding.h"

namespace stepcast::client {

namespace {

constexpr char kScenarioGroup[] = "Scenario (default: as recorded)";

absl::StatusOr<TransferOrder> ParseOrder(const std::string& text) {
  constexpr std::array<std::pair<const char*, TransferOrder>, 6> kOrders{
      {{"graph", TransferOrder::kGraph},
       {"recorded", TransferOrder::kRecorded},
       {"random", TransferOrder::kRandom},
       {"reverse", TransferOrder::kReverse},
       {"tic", TransferOrder::kTic},
       {"tac", TransferOrder::kTac}}};
  for (const auto& [name, order] : kOrders) {
    if (text == name) return order;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is none of graph, recorded, random, reverse, tic, tac"));
}

absl::StatusOr<Multiplexing> ParseMultiplexing(const std::string& text) {
  if (text == "window") return Multiplexing::kWindow;
  if (text == "whole-stream") return Multiplexing::kWholeStream;
  if (text == "round-robin") return Multiplexing::kRoundRobin;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is none of window, whole-stream, round-robin"));
}

absl::StatusOr<std::map<std::string, int32_t>> ReadPriorities(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status();
  auto priorities = ParsePriorities(*text);
  if (!priorities.ok())
    return absl::InvalidArgumentError(
        absl::StrCat(path, ", ", std::string(priorities.status().message())));
  if (priorities->empty())
    return absl::InvalidArgumentError(absl::StrCat(path, " names no transfer"));
  return priorities;
}

absl::StatusOr<std::vector<int64_t>> ParseOffsets(const std::string& text) {
  std::vector<int64_t> offsets;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const auto offset = ParseDuration(std::string_view(text).substr(at, comma - at));
    if (!offset.ok()) return offset.status();
    offsets.push_back(offset->count());
    at = comma + 1;
  }
  return offsets;
}

// COUNT[:SPEED[:RATE]].
absl::StatusOr<WorkerGroup> ParseGroup(const std::string& text) {
  const absl::Status refusal = absl::InvalidArgumentError(absl::StrCat(
      "\"", text, "\" is not COUNT[:SPEED[:RATE]], for instance 4, 4:0.5 or 4:1:100Mbit/s"));
  WorkerGroup group;
  const char* const end = text.data() + text.size();
  const auto [count_end, count_error] = std::from_chars(text.data(), end, group.count);
  if (count_error != std::errc() || (count_end != end && *count_end != ':')) return refusal;
  if (count_end == end) return group;
  const auto [speed_end, speed_error] =
      std::from_chars(count_end + 1, end, group.compute_speed_factor.emplace());
  if (speed_error != std::errc() || (speed_end != end && *speed_end != ':')) return refusal;
  if (speed_end == end) return group;
  const absl::StatusOr<double> rate =
      ParseRate({speed_end + 1, static_cast<size_t>(end - speed_end - 1)});
  if (!rate.ok()) return rate.status();
  group.bandwidth_bytes_per_second = *rate;
  return group;
}

ParsingOverhead& Overhead(Scenario& scenario) {
  return scenario.parsing_overhead ? *scenario.parsing_overhead
                                   : scenario.parsing_overhead.emplace();
}

}  // namespace

void ScenarioFlags::Declare(CLI::App& app, Order order, Offsets offsets) {
  DeclareLinks(app);
  DeclareMultiplexing(app);
  DeclareWorkers(app, offsets);
  if (order == Order::kChosenByUser) DeclareOrder(app);
}

void ScenarioFlags::DeclareLinks(CLI::App& app) {
  app.add_option("--servers", scenario_.parameter_servers,
                 "Parameter servers; another number than recorded places the parameters anew")
      ->type_name("N")
      ->group(kScenarioGroup);
  const auto parse_rate = [this](const std::string& text) {
    bandwidth_text_ = text;
    return ParseRate(text);
  };
  AddParsedOption(
      app, "--bandwidth", "RATE",
      "Payload rate of each link in each direction: 1Gbit/s, 125MB/s, or bytes per second",
      parse_rate, [this](double rate) { scenario_.bandwidth_bytes_per_second = rate; })
      ->group(kScenarioGroup);
  app.add_option_function<double>(
         "--parsing-seconds-per-byte",
         [this](double seconds) { Overhead(scenario_).seconds_per_byte = seconds; },
         "What a receiver computes per byte of a tensor; replaces the profile's overhead, also "
         "--parsing-seconds")
      ->type_name("S")
      ->group(kScenarioGroup);
  app.add_option_function<double>(
         "--parsing-seconds", [this](double seconds) { Overhead(scenario_).seconds = seconds; },
         "What a receiver computes per tensor; replaces the profile's overhead, also "
         "--parsing-seconds-per-byte")
      ->type_name("S")
      ->group(kScenarioGroup);
  app.add_flag_function(
         "--first-come", [this](int64_t) { scenario_.link_sharing = LinkSharing::kFirstCome; },
         "Links serve chunks whole, in order of arrival, instead of sharing equally")
      ->group(kScenarioGroup);
  AddParsedOption(
      app, "--turns", "BYTES",
      "Links serve one worker at a time, so much in a turn, late-comers first: 65160 is what Linux "
      "sends at once",
      [](const std::string& text) { return ParseBytes(text); },
      [this](int64_t bytes) {
        scenario_.link_sharing = LinkSharing::kTurns;
        scenario_.turn_bytes = bytes;
      })
      ->excludes("--first-come")
      ->group(kScenarioGroup);
}

void ScenarioFlags::DeclareMultiplexing(CLI::App& app) {
  const auto parse_bytes = [](const std::string& text) { return ParseBytes(text); };
  CLI::Option* how = AddParsedOption(
      app, "--multiplexing", "window|whole-stream|round-robin",
      "How streams share one connection (default: by --window, or the profile's, where there is "
      "one, else whole)",
      ParseMultiplexing, [this](Multiplexing value) { scenario_.multiplexing = value; });
  CLI::Option* window =
      AddParsedOption(app, "--window", "BYTES",
                      "Streams send so much first, the rest later: 65536, 4MiB (round-robin: 64KiB "
                      "where the profile has none)",
                      parse_bytes, [this](int64_t bytes) { scenario_.window_bytes = bytes; });
  CLI::Option* quantum =
      AddParsedOption(app, "--quantum", "BYTES",
                      "What a stream sends in each later service (round-robin: 1MiB; window: all "
                      "the rest, about 1MiB is gRPC 1.51)",
                      parse_bytes, [this](int64_t bytes) { scenario_.quantum_bytes = bytes; });
  for (CLI::Option* option : {how, window, quantum}) option->group(kScenarioGroup);
}

void ScenarioFlags::DeclareWorkers(CLI::App& app, Offsets offsets) {
  app.add_flag_function(
         "--sync", [this](int64_t) { scenario_.synchronization = Synchronization::kSynchronous; },
         "A step begins when every worker has ended its last")
      ->group(kScenarioGroup);
  const auto on_groups = [this](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      const absl::StatusOr<WorkerGroup> group = ParseGroup(text);
      if (!group.ok())
        throw CLI::ValidationError("--worker-group", std::string(group.status().message()));
      scenario_.worker_groups.push_back(*group);
    }
  };
  app.add_option_function<std::vector<std::string>>(
         "--worker-group", on_groups,
         "Workers that are alike, and how fast they and their links are; repeat it until all "
         "workers are counted")
      ->type_name("COUNT[:SPEED[:RATE]]")
      ->allow_extra_args(false)
      ->group(kScenarioGroup);
  if (offsets == Offsets::kForbidden) return;
  AddParsedOption(
      app, "--offsets", "TIME,...", "By how much each worker starts late, one a worker: 0,5ms,0.1s",
      ParseOffsets,
      [this](std::vector<int64_t> value) { scenario_.start_offsets_ns = std::move(value); })
      ->group(kScenarioGroup);
}

void ScenarioFlags::DeclareOrder(CLI::App& app) {
  CLI::Option* order =
      AddParsedOption(app, "--order", "graph|recorded|random|reverse|tic|tac",
                      "In which order transfers are served", ParseOrder,
                      [this](TransferOrder value) { scenario_.transfer_order = value; });
  CLI::Option* priorities =
      AddParsedOption(app, "--priorities", "FILE",
                      "Serve transfers by rank, lowest first: a file of lines `name<TAB>rank`",
                      ReadPriorities, [this](std::map<std::string, int32_t> value) {
                        scenario_.transfer_priorities = std::move(value);
                      });
  order->excludes(priorities);
  order->group(kScenarioGroup);
  priorities->group(kScenarioGroup);
}

void ScenarioFlags::Explain(const Session& session) const {
  if (!scenario_.bandwidth_bytes_per_second || session.output == OutputFormat::kJson) return;
  std::array<char, 64> rate{};
  std::snprintf(rate.data(), rate.size(), "%.15g", *scenario_.bandwidth_bytes_per_second);
  session.console.err << "bandwidth: " << bandwidth_text_ << " is " << rate.data() << " bytes/s\n";
}

}  // namespace stepcast::client
