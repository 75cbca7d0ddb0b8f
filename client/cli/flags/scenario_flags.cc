#include "client/cli/flags/scenario_flags.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/flags/job_flags.h"
#include "client/cli/flags/quantity.h"
#include "client/cli/input_files.h"
#include "client/cli/texts/characters.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

const std::vector<std::string> kServersFlags{"--servers",         "--order",
                                             "--priorities",      "--sync",
                                             "--summed",          "--multiplexing",
                                             "--window",          "--quantum",
                                             "--first-come",      "--turns",
                                             "--equal-shares",    "--server-partition",
                                             "--parsing-seconds", "--parsing-seconds-per-byte"};

// The first option that was typed of those that are meant; empty: none was.
template <typename IsMeant>
std::string FirstTyped(const CLI::App& app, IsMeant is_meant) {
  for (const CLI::Option* const option : app.get_options())
    if (option->count() > 0 && is_meant(*option)) return option->get_name();
  return "";
}

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

void ScenarioFlags::ReadMessage(const char* flag, const std::string& path,
                                google::protobuf::Message& message) {
  const absl::StatusOr<std::string> text = ReadTextInput(path, "JSON of the contract");
  const absl::Status status = text.ok() ? FromJson(*text, message) : text.status();
  if (!status.ok()) throw CLI::ValidationError(flag, std::string(status.message()));
}

void ScenarioFlags::DeclareFile(CLI::App& app) {
  app.add_option_function<std::string>(
         "--scenario",
         [this](const std::string& path) {
           ReadMessage("--scenario", path, scenario_);
           if (scenario_.workers() != 0)
             throw CLI::ValidationError("--scenario", "the file says workers: --workers does");
           asks_servers_ = scenario_.has_parameter_servers();
           asks_collectives_ = scenario_.has_all_reduce();
           names_kind_ = (asks_servers_ || asks_collectives_) && !scenario_.recorded_kind_only();
         },
         "The contract's Scenario as JSON, with what no flag says: groups of gradients, for "
         "instance; other flags replace what it says")
      ->type_name("FILE")
      ->group(kScenarioGroup);
}

void ScenarioFlags::Declare(CLI::App& app, Order order, Offsets offsets) {
  DeclareFile(app);
  DeclareChangeFlags(app, scenario_, told_);
  DeclareLinks(app);
  DeclareMultiplexing(app);
  DeclareWorkers(app, offsets);
  DeclarePipelineFlag(app, scenario_)->group(kScenarioGroup);
  DeclareCollectives(app);
  if (order == Order::kChosenByUser) DeclareOrder(app);
}

std::vector<int32_t> ScenarioFlags::CountsThatDivide(std::vector<int32_t> counts) const {
  const int64_t batch = scenario_.change().global_batch_size();
  const int64_t parts = std::max(scenario_.change().accumulate(), 1);
  const auto leaves = [&](int32_t count) { return batch % (parts * count) != 0; };
  if (batch > 0) counts.erase(std::remove_if(counts.begin(), counts.end(), leaves), counts.end());
  return counts;
}

void ScenarioFlags::DeclareLinks(CLI::App& app) {
  AddValueOption<int32_t>(
      app, "--servers", "N",
      "Parameter servers, also of a profile with collectives; another number than recorded places "
      "the parameters anew",
      [this](int32_t servers) {
        this->servers().set_servers(servers);
        names_kind_ = true;
      })
      ->group(kScenarioGroup);
  AddParsedOption(app, "--cluster", "NAME or FILE",
                  "The machines: a preset of `stepcast clusters`, dgx-a100 or 10gbe, or a file of "
                  "one's own. Its "
                  "figures stand where no\nother flag says it",
                  ClusterFromArgument,
                  [this](ClusterPreset cluster) { cluster_ = std::move(cluster); })
      ->group(kScenarioGroup);
  const auto parse_rate = [this](const std::string& text) {
    bandwidth_text_ = text;
    return ParseRate(text);
  };
  AddParsedOption(app, "--bandwidth", "RATE",
                  "Payload rate of each link in each direction: 1Gbit/s, 125MB/s", parse_rate,
                  [this](double rate) { scenario_.set_bandwidth_bytes_per_second(rate); })
      ->group(kScenarioGroup);
  app.add_flag_callback(
         "--bandwidth-measured", [this] { scenario_.set_bandwidth_is_measured(true); },
         "The rate of --bandwidth was measured over the job's own links, and is not nominal")
      ->group(kScenarioGroup);
  AddParsedOption(
      app, "--other-traffic", "SHARE",
      "Share of every link between nodes that other traffic takes: 0.25 or 25% (default 0)",
      ParseShare, [this](double share) { scenario_.set_other_traffic_fraction(share); })
      ->group(kScenarioGroup);
  AddValueOption<int32_t>(app, "--nodes-per-worker", "N",
                          "Nodes that the devices of each worker of several lie on (default: as "
                          "many as --cluster needs for them)",
                          [this](int32_t nodes) { scenario_.set_nodes_per_worker(nodes); })
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
  DeclareSharing(app);
}

void ScenarioFlags::DeclareWorkers(CLI::App& app, Offsets offsets) {
  const auto add_synchronization = [&](const char* name, const char* help,
                                       v1::ParameterServers::Synchronization value) {
    return app
        .add_flag_function(
            name, [this, value](int64_t) { servers().set_synchronization(value); }, help)
        ->group(kScenarioGroup);
  };
  add_synchronization("--sync", "A step begins when every worker has ended its last",
                      v1::ParameterServers::SYNCHRONOUS)
      ->excludes(add_synchronization("--summed",
                                     "Servers add up what all workers upload before they send it "
                                     "on, tensor by tensor, as BytePS does",
                                     v1::ParameterServers::SUMMED));
  AddParsedOption(
      app, "--server-partition", "BYTES",
      "Larger tensors travel to servers and back in parts of so much (BytePS: 4096000)",
      [](const std::string& text) { return ParseBytes(text); },
      [this](int64_t bytes) { servers().set_partition_bytes(bytes); })
      ->group(kScenarioGroup);
  const auto on_groups = [this](const std::vector<std::string>& texts) {
    scenario_.clear_worker_groups();
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

void ScenarioFlags::CheckKind(const CLI::App& app) const {
  if (!asks_collectives_ && !scenario_.has_nodes_per_worker()) return;
  if (asks_servers_ || streams_.has_value() || window_bytes_.has_value() ||
      quantum_bytes_.has_value()) {
    const std::string of_servers = FirstTyped(app, [](const CLI::Option& option) {
      return absl::c_linear_search(kServersFlags, option.get_name());
    });
    const std::string of_collectives = FirstTyped(app, [](const CLI::Option& option) {
      return option.get_group() == kAllReduceGroup || option.get_name() == "--nodes-per-worker";
    });
    throw CLI::ValidationError(of_collectives.empty() ? "--scenario" : of_collectives,
                               absl::StrCat("is of jobs with all-reduces, and ",
                                            of_servers.empty() ? "the scenario's file" : of_servers,
                                            " of those with parameter servers: which of both?"));
  }
  CheckFusion(app);
  if (app.count("--first-bucket") > 0 && scenario_.all_reduce().buckets().cap_bytes() == 0)
    throw CLI::ValidationError("--first-bucket", "needs --bucket-cap");
}

void ScenarioFlags::CheckPlaces(const CLI::App& app) const {
  const std::string inside = FirstTyped(
      app, [](const CLI::Option& option) { return option.get_name().starts_with("--intra-"); });
  if (!inside.empty() && WorkersPerNode() == 1)
    throw CLI::ValidationError(inside,
                               "is of links inside a node, which has one worker: "
                               "--workers-per-node says how many it has");
  if (app.count("--measured") > 0 && app.count("--bandwidth") > 0 && !scenario_.has_pipeline())
    throw CLI::ValidationError(
        "--bandwidth", "collectives take the times of --measured, at whatever rate they had");
}

void ScenarioFlags::DeclareOrder(CLI::App& app) {
  CLI::Option* order = AddChoiceOption(
      app, "--order", kOrders,
      "In which order transfers are served (default: recorded, where a real recording tells it, "
      "else graph)",
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

v1::Scenario ScenarioFlags::scenario() const {
  v1::Scenario scenario = Asked();
  // A request that asks for no communication goes without the field: its answer may be known.
  const bool says_kind = scenario.has_parameter_servers() || scenario.has_all_reduce();
  if (says_kind && !names_kind_) scenario.set_recorded_kind_only(true);
  return scenario;
}

v1::Scenario ScenarioFlags::Asked() const {
  v1::Scenario scenario = scenario_;
  if (cluster_.has_value()) cluster_->AddTo(scenario);
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

void RefuseZero(CLI::Option& workers) {
  workers.check([](const std::string& text) {
    int32_t count = 0;
    return absl::SimpleAtoi(text, &count) && count == 0 ? text + " is below 1" : std::string();
  });
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

int32_t ScenarioFlags::WorkersPerNode() const {
  if (asks_servers_) return 1;
  int32_t count = cluster_.has_value() ? cluster_->wire.workers_per_node() : 1;
  if (scenario_.all_reduce().has_workers_per_node())
    count = scenario_.all_reduce().workers_per_node();
  return std::max(count, 1);
}

std::vector<int32_t> ScenarioFlags::DefaultCounts() const {
  constexpr int32_t kMostWorkers = 16;
  constexpr int32_t kMostNodes = 8;
  const int32_t per_node = WorkersPerNode();
  const int32_t inside = std::min(per_node, kMostWorkers);
  std::vector<int32_t> counts(static_cast<size_t>(per_node > 1 ? inside : kMostWorkers));
  std::iota(counts.begin(), counts.end(), 1);
  constexpr int32_t kMostCount = 4096;  // the service's limit
  for (int32_t nodes = 2; per_node > 1 && nodes <= kMostNodes; ++nodes) {
    if (per_node <= kMostCount / nodes) counts.push_back(nodes * per_node);
  }
  return CountsThatDivide(std::move(counts));
}

// "cluster: dgx-a100: bandwidth 192GB/s (measured); all-reduces: workers-per-node 8, ...", without
// the figures that flags replace. A job with servers takes the bandwidth only.
std::string ScenarioFlags::ClusterText() const {
  const v1::AllReduce& job = scenario_.all_reduce();
  const std::pair<const char*, bool> replaced[] = {
      {"bandwidth", scenario_.has_bandwidth_bytes_per_second()},
      {"workers-per-node", job.has_workers_per_node()},
      {"intra-bandwidth", job.has_intra_node_bandwidth_bytes_per_second()},
      {"latency", job.has_latency_seconds()},
      {"intra-latency", job.has_intra_node_latency_seconds()},
      {"algorithm", job.algorithm() != v1::AllReduce::ALGORITHM_UNSPECIFIED},
      {"nics", true}};
  std::string bandwidth;
  std::string rest;
  for (const ClusterFigure& figure : cluster_->figures) {
    const bool in_force = (WorkersPerNode() > 1 || !figure.name.starts_with("intra-")) &&
                          absl::c_none_of(replaced, [&](const auto& field) {
                            return field.second && figure.name == field.first;
                          });
    if (!in_force) continue;
    const bool has_basis = figure.basis == "measured" || figure.basis == "nominal";
    const std::string text = absl::StrCat(figure.name, " ", figure.value,
                                          has_basis ? absl::StrCat(" (", figure.basis, ")") : "");
    if (figure.name == "bandwidth")
      bandwidth = text;
    else if (!asks_servers_)
      absl::StrAppend(&rest, rest.empty() ? "all-reduces: " : ", ", text);
  }
  return absl::StrCat("cluster: ", cluster_->name, ": ", bandwidth,
                      bandwidth.empty() || rest.empty() ? "" : "; ", rest, "\n");
}

void ScenarioFlags::Explain(const Session& session) const {
  if (session.output == OutputFormat::kJson) return;
  session.console.err << told_ << (cluster_.has_value() ? ClusterText() : "");
  if (bandwidth_text_.empty()) return;
  session.console.err << absl::StrFormat("bandwidth: %s is %.15g bytes/s\n", bandwidth_text_,
                                         scenario_.bandwidth_bytes_per_second());
}

}  // namespace stepcast::client
