// The flags that say how workers communicate: the fields of AllReduce, and how the links and
// streams of connections to parameter servers are shared.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/flags/quantity.h"
#include "client/cli/flags/scenario_flags.h"
#include "client/cli/input_files.h"
#include "client/cli/texts/characters.h"

#include "core/importing/benchmarks/collective_benchmark.h"
#include "server/convert/scenario_convert.h"

namespace stepcast::client {

// The flags that say how workers meet in collectives: the fields of AllReduce.

namespace {

// The bucket cap without which nothing is fused.
constexpr char kNoBuckets[] = "none";

absl::StatusOr<std::vector<MeasuredCollective>> ReadMeasured(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadTextInput(path, "what nccl-tests print");
  if (!text.ok()) return text.status();
  auto points = ReadCollectiveBenchmark(*text, {});
  if (!points.ok())
    return absl::InvalidArgumentError(
        absl::StrCat(InputAt(path).Name(), ": ", std::string(points.status().message())));
  return points;
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

void ScenarioFlags::DeclareCollectives(CLI::App& app) {
  std::vector<CLI::Option*> options;
  DeclareCollectiveTimes(app, options);
  DeclareFusion(app, options);
  DeclareSlowdowns(app, options);
  for (CLI::Option* option : options) option->group(kAllReduceGroup);
}

void ScenarioFlags::DeclareCollectiveTimes(CLI::App& app, std::vector<CLI::Option*>& options) {
  const auto parse_seconds = [](const std::string& text) { return ParseSeconds(text); };
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
}

void ScenarioFlags::DeclareFusion(CLI::App& app, std::vector<CLI::Option*>& options) {
  const auto parse_bytes = [](const std::string& text) { return ParseBytes(text); };
  const auto parse_seconds = [](const std::string& text) { return ParseSeconds(text); };
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
      "The limit of the first bucket, of --bucket-cap (default 1MiB; since 2024 an explicit "
      "bucket_cap_mb is that of the first bucket, too)",
      parse_bytes,
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
}

void ScenarioFlags::DeclareSlowdowns(CLI::App& app, std::vector<CLI::Option*>& options) {
  const auto parse_bytes = [](const std::string& text) { return ParseBytes(text); };
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
}

void ScenarioFlags::CheckFusion(const CLI::App& app) {
  constexpr std::pair<const char*, int> kFlags[] = {
      {"--bucket-cap", 0},     {"--bucket-cap-mb", 0}, {"--first-bucket", 0},
      {"--horovod-fusion", 1}, {"--horovod-cycle", 1}, {"--byte-scheduler", 2}};
  const std::pair<const char*, int>* first = nullptr;
  for (const auto& flag : kFlags) {
    if (app.count(flag.first) == 0) continue;
    if (first == nullptr) first = &flag;
    if (flag.second != first->second)
      throw CLI::ValidationError(
          flag.first, absl::StrCat("excludes ", first->first, ": gradients are fused in one way"));
  }
}

// The flags of connections to parameter servers: how links and streams are shared.

void ScenarioFlags::DeclareSharing(CLI::App& app) {
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

void ScenarioFlags::CheckStreams() const {
  const bool are_whole =
      streams_ == Streams::kWhole || (!streams_.has_value() && window_bytes_ == 0);
  if (are_whole && window_bytes_.value_or(0) != 0)
    throw CLI::ValidationError("--window", "whole streams have none");
  if (are_whole && quantum_bytes_.has_value())
    throw CLI::ValidationError("--quantum", "whole streams have none");
}

}  // namespace stepcast::client
