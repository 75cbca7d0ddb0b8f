#include "client/cli/scenario_flags.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/input_files.h"
#include "client/cli/input_reader.h"
#include "client/cli/parsed_option.h"
#include "client/cli/quantity.h"

namespace stepcast::client {

namespace {

constexpr char kScenarioGroup[] = "Scenario (default: as recorded)";

const Choices<v1::ParameterServers::TransferOrder> kOrders{
    {"graph", v1::ParameterServers::GRAPH},   {"recorded", v1::ParameterServers::RECORDED},
    {"random", v1::ParameterServers::RANDOM}, {"reverse", v1::ParameterServers::REVERSE},
    {"tic", v1::ParameterServers::TIC},       {"tac", v1::ParameterServers::TAC}};

absl::StatusOr<std::map<std::string, int32_t>> ReadPriorities(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadTextInput(path, "lines `name<TAB>rank`");
  if (!text.ok()) return text.status();
  auto priorities = ParsePriorities(*text);
  if (!priorities.ok())
    return absl::InvalidArgumentError(
        absl::StrCat(InputAt(path).Name(), ", ", std::string(priorities.status().message())));
  if (priorities->empty())
    return absl::InvalidArgumentError(absl::StrCat(InputAt(path).Name(), " names no transfer"));
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
absl::StatusOr<v1::WorkerGroup> ParseGroup(const std::string& text) {
  const absl::Status refusal = absl::InvalidArgumentError(absl::StrCat(
      "\"", text, "\" is not COUNT[:SPEED[:RATE]], for instance 4, 4:0.5 or 4:1:100Mbit/s"));
  v1::WorkerGroup group;
  int32_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [count_end, count_error] = std::from_chars(text.data(), end, count);
  if (count_error != std::errc() || (count_end != end && *count_end != ':')) return refusal;
  group.set_count(count);
  if (count_end == end) return group;
  double speed = 0;
  const auto [speed_end, speed_error] = std::from_chars(count_end + 1, end, speed);
  if (speed_error != std::errc() || (speed_end != end && *speed_end != ':')) return refusal;
  group.set_compute_speed_factor(speed);
  if (speed_end == end) return group;
  const absl::StatusOr<double> rate =
      ParseRate({speed_end + 1, static_cast<size_t>(end - speed_end - 1)});
  if (!rate.ok()) return rate.status();
  group.set_bandwidth_bytes_per_second(*rate);
  return group;
}

}  // namespace

void ScenarioFlags::Declare(CLI::App& app, Order order, Offsets offsets) {
  DeclareLinks(app);
  DeclareMultiplexing(app);
  DeclareWorkers(app, offsets);
  DeclareCollectives(app);
  if (order == Order::kChosenByUser) DeclareOrder(app);
}

void ScenarioFlags::DeclareLinks(CLI::App& app) {
  AddValueOption<int32_t>(
      app, "--servers", "N",
      "Parameter servers; another number than recorded places the parameters anew",
      [this](int32_t servers) { this->servers().set_servers(servers); })
      ->group(kScenarioGroup);
  const auto parse_rate = [this](const std::string& text) {
    bandwidth_text_ = text;
    return ParseRate(text);
  };
  AddParsedOption(
      app, "--bandwidth", "RATE",
      "Payload rate of each link in each direction: 1Gbit/s, 125MB/s, or bytes per second",
      parse_rate, [this](double rate) { scenario_.set_bandwidth_bytes_per_second(rate); })
      ->group(kScenarioGroup);
  AddValueOption<double>(
      app, "--parsing-seconds-per-byte", "S",
      "What a receiver computes per byte of a tensor; replaces the profile's overhead, also "
      "--parsing-seconds",
      [this](double seconds) {
        servers().mutable_parsing_overhead()->set_seconds_per_byte(seconds);
      })
      ->group(kScenarioGroup);
  AddValueOption<double>(
      app, "--parsing-seconds", "S",
      "What a receiver computes per tensor; replaces the profile's overhead, also "
      "--parsing-seconds-per-byte",
      [this](double seconds) { servers().mutable_parsing_overhead()->set_seconds(seconds); })
      ->group(kScenarioGroup);
  app.add_flag_function(
         "--first-come", [this](int64_t) { servers().mutable_first_come(); },
         "Links serve chunks whole, in order of arrival, instead of sharing equally")
      ->group(kScenarioGroup);
  AddParsedOption(
      app, "--turns", "BYTES",
      "Links serve one worker at a time, so much in a turn, late-comers first: 65160 is what Linux "
      "sends at once",
      [](const std::string& text) { return ParseBytes(text); },
      [this](int64_t bytes) { servers().mutable_turns()->set_bytes(bytes); })
      ->excludes("--first-come")
      ->group(kScenarioGroup);
}

void ScenarioFlags::DeclareMultiplexing(CLI::App& app) {
  const auto parse_bytes = [](const std::string& text) { return ParseBytes(text); };
  CLI::Option* how = AddChoiceOption(
      app, "--multiplexing",
      Choices<Streams>{{"window", Streams::kWindow},
                       {"whole-stream", Streams::kWhole},
                       {"round-robin", Streams::kRoundRobin}},
      "How streams share one connection (default: by --window, or the profile's, where there is "
      "one, else whole)",
      [this](Streams value) { streams_ = value; });
  CLI::Option* window =
      AddParsedOption(app, "--window", "BYTES",
                      "Streams send so much first, the rest later: 65536, 4MiB (round-robin: 64KiB "
                      "where the profile has none)",
                      parse_bytes, [this](int64_t bytes) { window_bytes_ = bytes; });
  CLI::Option* quantum =
      AddParsedOption(app, "--quantum", "BYTES",
                      "What a stream sends in each later service (round-robin: 1MiB; window: all "
                      "the rest, about 1MiB is gRPC 1.51)",
                      parse_bytes, [this](int64_t bytes) { quantum_bytes_ = bytes; });
  for (CLI::Option* option : {how, window, quantum}) option->group(kScenarioGroup);
  app.parse_complete_callback([this] {
    CheckStreams();
    CheckKind();
  });
}

void ScenarioFlags::DeclareWorkers(CLI::App& app, Offsets offsets) {
  app.add_flag_function(
         "--sync",
         [this](int64_t) { servers().set_synchronization(v1::ParameterServers::SYNCHRONOUS); },
         "A step begins when every worker has ended its last")
      ->group(kScenarioGroup);
  const auto on_groups = [this](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      absl::StatusOr<v1::WorkerGroup> group = ParseGroup(text);
      if (!group.ok())
        throw CLI::ValidationError("--worker-group", std::string(group.status().message()));
      *scenario_.add_worker_groups() = *std::move(group);
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
  AddParsedOption(app, "--offsets", "TIME,...",
                  "By how much each worker starts late, one a worker: 0,5ms,0.1s", ParseOffsets,
                  [this](const std::vector<int64_t>& value) {
                    scenario_.mutable_start_offsets_ns()->Assign(value.begin(), value.end());
                  })
      ->group(kScenarioGroup);
}

void ScenarioFlags::DeclareCollectives(CLI::App& app) {
  constexpr char kGroup[] = "All-reduce (default: as recorded)";
  const auto parse_bytes = [](const std::string& text) { return ParseBytes(text); };
  const auto parse_seconds = [](const std::string& text) -> absl::StatusOr<double> {
    const auto time = ParseDuration(text);
    if (!time.ok()) return time.status();
    return static_cast<double>(time->count()) * 1e-9;
  };
  std::vector<CLI::Option*> options;
  options.push_back(app.add_flag_function(
      "--all-reduce", [this](int64_t) { collectives(); },
      "Workers meet in collectives; also of a profile of parameter servers"));
  options.push_back(AddChoiceOption(
      app, "--algorithm",
      Choices<v1::AllReduce::Algorithm>{{"ring", v1::AllReduce::RING},
                                        {"hierarchical", v1::AllReduce::HIERARCHICAL},
                                        {"halving-doubling", v1::AllReduce::HALVING_DOUBLING},
                                        {"tree", v1::AllReduce::TREE},
                                        {"gloo", v1::AllReduce::GLOO},
                                        {"nccl", v1::AllReduce::NCCL}},
      "How a collective travels (default: ring)",
      [this](v1::AllReduce::Algorithm value) { collectives().set_algorithm(value); }));
  options.push_back(AddValueOption<int32_t>(
      app, "--workers-per-node", "N", "Workers that share a node and its link (default 1)",
      [this](int32_t count) { collectives().set_workers_per_node(count); }));
  options.push_back(
      AddParsedOption(app, "--latency", "TIME", "Of a message between nodes: 20us", parse_seconds,
                      [this](double seconds) { collectives().set_latency_seconds(seconds); }));
  options.push_back(AddParsedOption(
      app, "--intra-bandwidth", "RATE", "Payload rate of a link inside a node: 300GB/s",
      [](const std::string& text) { return ParseRate(text); },
      [this](double rate) { collectives().set_intra_node_bandwidth_bytes_per_second(rate); }));
  options.push_back(AddParsedOption(
      app, "--intra-latency", "TIME", "Of a message inside a node", parse_seconds,
      [this](double seconds) { collectives().set_intra_node_latency_seconds(seconds); }));
  options.push_back(AddValueOption<double>(
      app, "--reduction-seconds-per-byte", "S", "What adding a received byte takes (default 0)",
      [this](double seconds) { collectives().set_reduction_seconds_per_byte(seconds); }));
  options.push_back(AddParsedOption(
      app, "--launch", "TIME", "From when a collective could begin to when it does", parse_seconds,
      [this](double seconds) { collectives().set_launch_seconds(seconds); }));
  options.push_back(AddParsedOption(
      app, "--bucket-cap", "BYTES",
      "Fuse gradients in buckets as PyTorch's DDP does: 25MiB, its own default", parse_bytes,
      [this](int64_t bytes) { collectives().mutable_buckets()->set_cap_bytes(bytes); }));
  options.push_back(AddParsedOption(
      app, "--first-bucket", "BYTES", "The limit of the first bucket (default 1MiB)", parse_bytes,
      [this](int64_t bytes) { collectives().mutable_buckets()->set_first_bytes(bytes); }));
  options.push_back(AddParsedOption(
      app, "--horovod-fusion", "BYTES",
      "Fuse in cycles as Horovod does, in buffers of so much (its own default: 128MiB)",
      parse_bytes,
      [this](int64_t bytes) { collectives().mutable_horovod()->set_fusion_bytes(bytes); }));
  options.push_back(AddParsedOption(
      app, "--horovod-cycle", "TIME",
      "The same, and from the begin of one cycle to the next (its own default: 1ms)", parse_seconds,
      [this](double seconds) { collectives().mutable_horovod()->set_cycle_seconds(seconds); }));
  options.push_back(AddParsedOption(
      app, "--byte-scheduler", "BYTES",
      "Send first what the next forward pass uses first, so many bytes let in at once, as "
      "ByteScheduler does (its own default: 16MB, with --partition 4MB)",
      parse_bytes,
      [this](int64_t bytes) { collectives().mutable_byte_scheduler()->set_credit_bytes(bytes); }));
  options.push_back(AddValueOption<int32_t>(
      app, "--concurrent", "N",
      "Collectives that run at once, with --algorithm gloo or measured ones (default 1, of a "
      "recording of several workers as recorded; PyTorch's gloo: 2)",
      [this](int32_t count) { collectives().set_concurrent_collectives(count); }));
  options.push_back(AddParsedOption(
      app, "--partition", "BYTES", "Cut what is larger into pieces of so much", parse_bytes,
      [this](int64_t bytes) { collectives().set_partition_bytes(bytes); }));
  options.push_back(AddChoiceOption(
      app, "--sharding",
      Choices<v1::AllReduce::Sharding>{{"optimizer", v1::AllReduce::OPTIMIZER},
                                       {"gradients", v1::AllReduce::GRADIENTS},
                                       {"full", v1::AllReduce::FULL}},
      "What workers keep shares of: ZeRO-1, ZeRO-2, FSDP",
      [this](v1::AllReduce::Sharding value) { collectives().set_sharding(value); }));
  options.push_back(AddChoiceOption(
      app, "--fidelity",
      Choices<v1::AllReduce::Fidelity>{{"collapsed", v1::AllReduce::COLLAPSED},
                                       {"expanded", v1::AllReduce::EXPANDED}},
      "A collective is one event, or every chunk of its ring (default: collapsed)",
      [this](v1::AllReduce::Fidelity value) { collectives().set_fidelity(value); }));
  options.push_back(AddValueOption<int32_t>(
      app, "--workers-per-rack", "N",
      "Workers that share a rack's link to the spine, with --fidelity expanded",
      [this](int32_t count) { collectives().set_workers_per_rack(count); }));
  options.push_back(AddParsedOption(
      app, "--rack-bandwidth", "RATE", "Payload rate of a rack's link to the spine: 40Gbit/s",
      [](const std::string& text) { return ParseRate(text); },
      [this](double rate) { collectives().set_rack_bandwidth_bytes_per_second(rate); }));
  options.push_back(AddValueOption<double>(
      app, "--overlap-slowdown", "FACTOR",
      "What computation takes longer by while a collective runs (default 1)",
      [this](double factor) { collectives().set_overlap_slowdown(factor); }));
  options.push_back(AddValueOption<double>(
      app, "--collective-slowdown", "FACTOR",
      "What a collective takes longer by while some worker computes (default 1)",
      [this](double factor) { collectives().set_collective_slowdown(factor); }));
  for (CLI::Option* option : options) option->group(kGroup);
}

void ScenarioFlags::CheckKind() const {
  if (!asks_collectives_) return;
  const bool streams =
      streams_.has_value() || window_bytes_.has_value() || quantum_bytes_.has_value();
  if (asks_servers_ || streams)
    throw CLI::ValidationError("--all-reduce", "and flags of parameter servers: which of both?");
  if (scenario_.all_reduce().has_buckets() && scenario_.all_reduce().buckets().cap_bytes() == 0)
    throw CLI::ValidationError("--first-bucket", "needs --bucket-cap");
}

void ScenarioFlags::DeclareOrder(CLI::App& app) {
  CLI::Option* order = AddChoiceOption(
      app, "--order", kOrders, "In which order transfers are served",
      [this](v1::ParameterServers::TransferOrder value) { servers().set_transfer_order(value); });
  CLI::Option* priorities = AddParsedOption(
      app, "--priorities", "FILE",
      "Serve transfers by rank, lowest first: a file of lines `name<TAB>rank`; -: standard input",
      ReadPriorities, [this](const std::map<std::string, int32_t>& value) {
        servers().mutable_transfer_priorities()->clear();
        servers().mutable_transfer_priorities()->insert(value.begin(), value.end());
      });
  order->excludes(priorities);
  order->group(kScenarioGroup);
  priorities->group(kScenarioGroup);
}

void ScenarioFlags::CheckStreams() const {
  const bool are_whole =
      streams_ == Streams::kWhole || (!streams_.has_value() && window_bytes_ == 0);
  if (are_whole && window_bytes_.value_or(0) != 0)
    throw CLI::ValidationError("--window", "whole streams have none");
  if (are_whole && quantum_bytes_.has_value())
    throw CLI::ValidationError("--quantum", "whole streams have none");
}

v1::Scenario ScenarioFlags::scenario() const {
  v1::Scenario scenario = scenario_;
  if (!streams_.has_value() && !window_bytes_.has_value() && !quantum_bytes_.has_value())
    return scenario;
  v1::ParameterServers& servers = *scenario.mutable_parameter_servers();
  if (streams_ == Streams::kRoundRobin) {
    v1::ParameterServers::RoundRobin& robin = *servers.mutable_round_robin();
    if (window_bytes_.has_value()) robin.set_window_bytes(*window_bytes_);
    if (quantum_bytes_.has_value()) robin.set_quantum_bytes(*quantum_bytes_);
  } else if (streams_ == Streams::kWhole || (!streams_.has_value() && window_bytes_ == 0)) {
    servers.mutable_whole_stream();
  } else {
    v1::ParameterServers::Window& window = *servers.mutable_window();
    if (window_bytes_.has_value()) window.set_bytes(*window_bytes_);
    if (quantum_bytes_.has_value()) window.set_quantum_bytes(*quantum_bytes_);
  }
  return scenario;
}

v1::Scenario ScenarioFlags::With(int32_t workers) const {
  v1::Scenario with = scenario();
  with.set_workers(workers);
  return with;
}

v1::Scenario ScenarioFlags::WithoutOrder(int32_t workers) const {
  v1::Scenario without = With(workers);
  if (!without.has_parameter_servers()) return without;
  without.mutable_parameter_servers()->clear_transfer_order();
  without.mutable_parameter_servers()->clear_transfer_priorities();
  return without;
}

std::optional<int64_t> ScenarioFlags::GroupedWorkers() const {
  if (scenario_.worker_groups().empty()) return std::nullopt;
  int64_t sum = 0;
  for (const v1::WorkerGroup& group : scenario_.worker_groups()) sum += group.count();
  return sum;
}

void ScenarioFlags::Explain(const Session& session) const {
  if (!scenario_.has_bandwidth_bytes_per_second() || session.output == OutputFormat::kJson) return;
  std::array<char, 64> rate{};
  std::snprintf(rate.data(), rate.size(), "%.15g", scenario_.bandwidth_bytes_per_second());
  session.console.err << "bandwidth: " << bandwidth_text_ << " is " << rate.data() << " bytes/s\n";
}

}  // namespace stepcast::client
