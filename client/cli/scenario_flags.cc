#include "client/cli/scenario_flags.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/characters.h"
#include "client/cli/input_files.h"
#include "client/cli/input_reader.h"
#include "client/cli/job_flags.h"
#include "client/cli/parsed_option.h"
#include "client/cli/quantity.h"

#include "core/importing/collective_benchmark.h"
#include "server/convert/scenario_convert.h"
#include "stepcast/json.h"

namespace stepcast::client {

namespace {

// The bucket cap without which nothing is fused.
constexpr char kNoBuckets[] = "none";
constexpr char kScenarioGroup[] = "Scenario (default: as recorded)";
constexpr char kAllReduceGroup[] = "All-reduce (default: as recorded)";
const std::vector<std::string> kServersFlags{"--servers",         "--order",
                                             "--priorities",      "--sync",
                                             "--summed",          "--multiplexing",
                                             "--window",          "--quantum",
                                             "--first-come",      "--turns",
                                             "--equal-shares",    "--server-partition",
                                             "--parsing-seconds", "--parsing-seconds-per-byte"};

std::vector<std::string> FlagsOfGroup(const CLI::App& app, const std::string& group) {
  std::vector<std::string> flags;
  for (const CLI::Option* const option : app.get_options())
    if (option->get_group() == group) flags.push_back(option->get_name());
  return flags;
}

// The first of the flags that was typed; empty: none was.
std::string FirstTyped(const CLI::App& app, const std::vector<std::string>& flags) {
  for (const std::string& flag : flags) {
    const CLI::Option* const option = app.get_option_no_throw(flag);
    if (option != nullptr && option->count() > 0) return flag;
  }
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

absl::StatusOr<std::vector<MeasuredCollective>> ReadMeasured(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadTextInput(path, "what nccl-tests print");
  if (!text.ok()) return text.status();
  auto points = ReadCollectiveBenchmark(*text, {});
  if (!points.ok())
    return absl::InvalidArgumentError(
        absl::StrCat(InputAt(path).Name(), ": ", std::string(points.status().message())));
  return points;
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

absl::Status NoBuckets(const std::string& text) {
  return absl::InvalidArgumentError(absl::StrCat(
      InQuotes(text), " holds no gradient: --bucket-cap none leaves gradients unfused"));
}

// PyTorch's own name for it has the unit in the name, MiB.
absl::StatusOr<int64_t> ParseBucketCap(const std::string& text) {
  absl::StatusOr<int64_t> bytes = ParseBytes(text);
  if (bytes.ok() && *bytes == 0) return NoBuckets(text);
  if (bytes.ok() || text.empty() || text.find_first_not_of("0123456789.") != std::string::npos)
    return bytes;
  return absl::InvalidArgumentError(
      absl::StrCat(InQuotes(text), " has no unit: ", text, " bytes or ", text, " MiB? Write ", text,
                   "MiB, or --bucket-cap-mb ", text, " as PyTorch does; ", text, "B are bytes"));
}

absl::StatusOr<int64_t> ParseBucketCapMb(const std::string& text) {
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string::npos)
    return absl::InvalidArgumentError(
        absl::StrCat(InQuotes(text), " is not a number of MiB: write for instance 25"));
  double mebibytes = 0;
  if (!absl::SimpleAtod(text, &mebibytes) || !(mebibytes <= 1e9))
    return ParseBytes(text + "MiB");  // which says what is wrong
  // PyTorch drops what is left of a byte, too.
  const auto bytes = static_cast<int64_t>(mebibytes * (1 << 20));
  return bytes == 0 ? absl::StatusOr<int64_t>(NoBuckets(text)) : bytes;
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
  DeclareChangeFlags(app, scenario_);
  DeclareLinks(app);
  DeclareMultiplexing(app);
  DeclareWorkers(app, offsets);
  DeclarePipelineFlag(app, scenario_)->group(kScenarioGroup);
  DeclareCollectives(app);
  if (order == Order::kChosenByUser) DeclareOrder(app);
}

std::vector<int32_t> ScenarioFlags::CountsThatDivide(std::vector<int32_t> counts) const {
  const int64_t batch = scenario_.change().global_batch_size();
  if (batch > 0)
    counts.erase(std::remove_if(counts.begin(), counts.end(),
                                [&](int32_t count) { return batch % count != 0; }),
                 counts.end());
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
      "Links serve one worker at a time, so much in a turn, late-comers first: 65160B is what "
      "Linux sends at once (the default where a real recording tells the order of transfers; with "
      "several servers at least a 512th of a step)",
      [](const std::string& text) { return ParseBytes(text); },
      [this](int64_t bytes) { servers().mutable_turns()->set_bytes(bytes); })
      ->excludes("--first-come")
      ->group(kScenarioGroup);
  app.add_flag_function(
         "--equal-shares", [this](int64_t) { servers().mutable_equal(); },
         "Workers share links equally (the default otherwise)")
      ->excludes("--first-come")
      ->excludes("--turns")
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
                      "Streams send so much first, the rest later: 64KiB, 4MiB (round-robin: 64KiB "
                      "where the profile has none)",
                      parse_bytes, [this](int64_t bytes) { window_bytes_ = bytes; });
  CLI::Option* quantum =
      AddParsedOption(app, "--quantum", "BYTES",
                      "What a stream sends in each later service (round-robin: 1MiB; window: all "
                      "the rest, about 1MiB is gRPC 1.51)",
                      parse_bytes, [this](int64_t bytes) { quantum_bytes_ = bytes; });
  for (CLI::Option* option : {how, window, quantum}) option->group(kScenarioGroup);
  app.parse_complete_callback([this, &app] {
    CheckStreams();
    CheckKind(app);
    CheckPlaces(app);
  });
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

void ScenarioFlags::DeclareCollectives(CLI::App& app) {
  const auto parse_bytes = [](const std::string& text) { return ParseBytes(text); };
  const auto parse_seconds = [](const std::string& text) { return ParseSeconds(text); };
  std::vector<CLI::Option*> options;
  options.push_back(app.add_flag_function(
      "--all-reduce",
      [this](int64_t) {
        collectives();
        names_kind_ = true;
      },
      "Workers meet in collectives; also of a profile of parameter servers"));
  options.push_back(AddChoiceOption(
      app, "--algorithm", CollectiveAlgorithms(),
      "Pattern in which a collective travels (default: ring)",
      [this](v1::AllReduce::Algorithm value) { collectives().set_algorithm(value); }));
  options.push_back(AddParsedOption(app, "--measured", "FILE",
                                    "Collectives take the times that a benchmark of them measured, "
                                    "as nccl-tests, OSU's or Intel's "
                                    "MPI benchmarks print them or in a table, and in between what "
                                    "a line between two points says; "
                                    "-: standard input",
                                    ReadMeasured,
                                    [this](const std::vector<MeasuredCollective>& points) {
                                      collectives().set_algorithm(v1::AllReduce::MEASURED);
                                      collectives().clear_measured();
                                      for (const MeasuredCollective& point : points)
                                        *collectives().add_measured() = server::ToWire(point);
                                    })
                        ->excludes("--algorithm"));
  options.push_back(AddValueOption<int32_t>(
      app, "--workers-per-node", "N",
      "Workers that share a node and its link (default 1); more need --intra-bandwidth",
      [this](int32_t count) { collectives().set_workers_per_node(count); }));
  options.push_back(
      AddParsedOption(app, "--latency", "TIME",
                      "Latency of a message between nodes (default: 25us, typical of Ethernet)",
                      parse_seconds,
                      [this](double seconds) { collectives().set_latency_seconds(seconds); })
          ->excludes("--measured"));
  options.push_back(AddParsedOption(
      app, "--intra-bandwidth", "RATE", "Payload rate of a link inside a node: 300GB/s",
      [](const std::string& text) { return ParseRate(text); },
      [this](double rate) { collectives().set_intra_node_bandwidth_bytes_per_second(rate); }));
  options.push_back(AddParsedOption(
      app, "--intra-latency", "TIME",
      "Latency of a message inside a node (default: 3.4us, of NCCL's model of NVLink)",
      parse_seconds,
      [this](double seconds) { collectives().set_intra_node_latency_seconds(seconds); }));
  options.push_back(AddValueOption<double>(
      app, "--reduction-seconds-per-byte", "S", "Time to add a received byte (default 0)",
      [this](double seconds) { collectives().set_reduction_seconds_per_byte(seconds); }));
  options.push_back(
      AddParsedOption(app, "--launch", "TIME", "Launch delay of each collective", parse_seconds,
                      [this](double seconds) { collectives().set_launch_seconds(seconds); }));
  const auto set_cap = [this](std::optional<int64_t> bytes) {
    if (bytes.has_value()) {
      collectives().mutable_buckets()->set_cap_bytes(*bytes);
    } else {
      collectives().mutable_unfused();
    }
  };
  options.push_back(AddParsedOption(
      app, "--bucket-cap", "BYTES",
      "Fuse gradients in buckets as PyTorch's DDP does: 25MiB, its own default and that of its "
      "recordings without buckets; none: do not fuse",
      [](const std::string& text) -> absl::StatusOr<std::optional<int64_t>> {
        if (text == kNoBuckets) return std::nullopt;
        return ParseBucketCap(text);
      },
      set_cap));
  options.push_back(AddParsedOption(app, "--bucket-cap-mb", "MIB",
                                    "The same as PyTorch's bucket_cap_mb: 25, in MiB",
                                    ParseBucketCapMb, set_cap)
                        ->excludes("--bucket-cap"));
  options.push_back(AddParsedOption(
      app, "--first-bucket", "BYTES",
      "The limit of the first bucket (default 1MiB), of --bucket-cap", parse_bytes,
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
                                       {"full", v1::AllReduce::FULL},
                                       {"zero1", v1::AllReduce::OPTIMIZER},
                                       {"zero2", v1::AllReduce::GRADIENTS},
                                       {"zero3", v1::AllReduce::FULL},
                                       {"fsdp", v1::AllReduce::FULL}},
      "Sharding of the model's state: of the optimizer's (ZeRO-1), of gradients, too (ZeRO-2), of "
      "all (ZeRO-3, FSDP)",
      [this](v1::AllReduce::Sharding value) { collectives().set_sharding(value); }));
  options.push_back(AddChoiceOption(
      app, "--fidelity",
      Choices<v1::AllReduce::Fidelity>{{"collapsed", v1::AllReduce::COLLAPSED},
                                       {"expanded", v1::AllReduce::EXPANDED}},
      "A collective is one event, or every chunk of its ring (default: collapsed)",
      [this](v1::AllReduce::Fidelity value) { collectives().set_fidelity(value); }));
  options.push_back(AddValueOption<int32_t>(
      app, "--workers-per-rack", "N", "Workers of a rack, which share its link to the spine",
      [this](int32_t count) { collectives().set_workers_per_rack(count); }));
  options.push_back(AddParsedOption(
      app, "--rack-bandwidth", "RATE", "Payload rate of a rack's link to the spine: 40Gbit/s",
      [](const std::string& text) { return ParseRate(text); },
      [this](double rate) { collectives().set_rack_bandwidth_bytes_per_second(rate); }));
  options.push_back(AddValueOption<double>(
      app, "--overlap-slowdown", "FACTOR",
      "Slow-down factor of computation during collectives (default 1)",
      [this](double factor) { collectives().set_overlap_slowdown(factor); }));
  options.push_back(AddValueOption<double>(
      app, "--collective-slowdown", "FACTOR",
      "Slow-down factor of a collective while some worker computes (default 1)",
      [this](double factor) { collectives().set_collective_slowdown(factor); }));
  options.push_back(
      app.add_option_function<std::string>(
             "--contention",
             [this](const std::string& path) {
               ReadMessage("--contention", path, *collectives().mutable_contention());
             },
             "How collectives and computation slow each other: a file with the contract's "
             "AllReduce.Contention as JSON, as profile fit-contention saves it")
          ->type_name("FILE"));
  options.push_back(AddValueOption<int32_t>(
      app, "--collective-threads", "N",
      "With --contention: threads of every collective; needed but in tune, where NCCL's rule gives "
      "them",
      [this](int32_t threads) { collectives().set_threads(threads); }));
  for (CLI::Option* option : options) option->group(kAllReduceGroup);
}

void ScenarioFlags::CheckKind(const CLI::App& app) const {
  if (!asks_collectives_) return;
  const bool streams =
      streams_.has_value() || window_bytes_.has_value() || quantum_bytes_.has_value();
  if (asks_servers_ || streams) {
    const std::string of_servers = FirstTyped(app, kServersFlags);
    throw CLI::ValidationError(FirstTyped(app, FlagsOfGroup(app, kAllReduceGroup)),
                               absl::StrCat("is of jobs with all-reduces, and ",
                                            of_servers.empty() ? "the scenario's file" : of_servers,
                                            " of those with parameter servers: which of both?"));
  }
  if (scenario_.all_reduce().has_buckets() && scenario_.all_reduce().buckets().cap_bytes() == 0)
    throw CLI::ValidationError("--first-bucket", "needs --bucket-cap");
}

void ScenarioFlags::CheckPlaces(const CLI::App& app) const {
  const std::string inside = FirstTyped(app, {"--intra-bandwidth", "--intra-latency"});
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

void ScenarioFlags::CheckStreams() const {
  const bool are_whole =
      streams_ == Streams::kWhole || (!streams_.has_value() && window_bytes_ == 0);
  if (are_whole && window_bytes_.value_or(0) != 0)
    throw CLI::ValidationError("--window", "whole streams have none");
  if (are_whole && quantum_bytes_.has_value())
    throw CLI::ValidationError("--quantum", "whole streams have none");
}

v1::Scenario ScenarioFlags::scenario() const {
  v1::Scenario scenario = Asked();
  // What asks for no communication is the same request without it, whose answer may be known.
  const bool says_kind = scenario.has_parameter_servers() || scenario.has_all_reduce();
  if (says_kind && !names_kind_) scenario.set_recorded_kind_only(true);
  return scenario;
}

v1::Scenario ScenarioFlags::Asked() const {
  v1::Scenario scenario = scenario_;
  if (cluster_.has_value()) *scenario.mutable_cluster() = cluster_->wire;
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

// "cluster: dgx-a100: 8 workers-per-node, 192GB/s bandwidth (measured), ...", but for the figures
// that flags have taken the place of.
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
  std::vector<std::string> figures;
  for (const ClusterFigure& figure : cluster_->figures) {
    const bool in_force =
        (!asks_servers_ || figure.name == "bandwidth") &&
        std::none_of(std::begin(replaced), std::end(replaced),
                     [&](const auto& field) { return field.second && figure.name == field.first; });
    if (!in_force) continue;
    const bool has_basis = figure.basis == "measured" || figure.basis == "nominal";
    figures.push_back(absl::StrCat(figure.name, " ", figure.value,
                                   has_basis ? absl::StrCat(" (", figure.basis, ")") : ""));
  }
  return absl::StrCat("cluster: ", cluster_->name, ": ", absl::StrJoin(figures, ", "), "\n");
}

void ScenarioFlags::Explain(const Session& session) const {
  if (cluster_.has_value() && session.output != OutputFormat::kJson)
    session.console.err << ClusterText();
  if (bandwidth_text_.empty() || session.output == OutputFormat::kJson) return;
  std::array<char, 64> rate{};
  std::snprintf(rate.data(), rate.size(), "%.15g", scenario_.bandwidth_bytes_per_second());
  session.console.err << "bandwidth: " << bandwidth_text_ << " is " << rate.data() << " bytes/s\n";
}

}  // namespace stepcast::client
