#include "client/cli/texts/flag_names.h"

#include <algorithm>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace stepcast::client {

const std::vector<FieldFlag> kFieldFlags{
    {"worker_counts", "--workers"},
    {"series_points", "--over-time"},
    {"constraints.worker_counts", "--workers"},
    {"scenario", "--scenario"},
    {"scenario.workers", "--workers"},
    {"scenario.bandwidth_bytes_per_second", "--bandwidth"},
    {"scenario.bandwidth_is_measured", "--bandwidth-measured"},
    {"scenario.bandwidth_is_measured", "--cluster"},
    {"scenario.other_traffic_fraction", "--other-traffic"},
    {"scenario.cluster", "--cluster"},
    {"scenario.nodes_per_worker", "--nodes-per-worker"},
    {"scenario.pipeline", "--pipeline"},
    {"devices", "--devices"},
    {"memory_bytes", "--memory"},
    {"micro_batches", "--micro-batches"},
    {"examples_per_step", "--examples"},
    {"schedules", "--schedules"},
    {"max_layouts", "--max-layouts"},
    {"scenario.start_offsets_ns", "--offsets"},
    {"scenario.worker_groups", "--worker-group"},
    {"scenario.change.batch_size", "--batch-size"},
    {"scenario.change.batch_size", "--global-batch"},
    {"scenario.change.global_batch_size", "--global-batch"},
    {"scenario.change.fixed_fraction", "--batch-fixed"},
    {"scenario.change.second_profile", "--batch-recording"},
    {"scenario.change.second_inline_profile", "--batch-recording"},
    {"scenario.change.accumulate", "--accumulate"},
    {"scenario.change.compute_speed_factor", "--compute-speed"},
    {"scenario.change.gradient_bytes_factor", "--gradient-bytes"},
    {"scenario.parameter_servers.servers", "--servers"},
    {"scenario.parameter_servers.parsing_overhead", "--parsing-seconds"},
    {"scenario.parameter_servers.parsing_overhead", "--parsing-seconds-per-byte"},
    {"scenario.parameter_servers.parsing_overhead.seconds", "--parsing-seconds"},
    {"scenario.parameter_servers.parsing_overhead.seconds_per_byte", "--parsing-seconds-per-byte"},
    {"scenario.parameter_servers.synchronization", "--sync"},
    {"scenario.parameter_servers.synchronization", "--summed"},
    {"scenario.parameter_servers.partition_bytes", "--server-partition"},
    {"scenario.parameter_servers.whole_stream", "--multiplexing"},
    {"scenario.parameter_servers.whole_stream", "--window"},
    {"scenario.parameter_servers.window", "--multiplexing"},
    {"scenario.parameter_servers.window.bytes", "--window"},
    {"scenario.parameter_servers.window.quantum_bytes", "--quantum"},
    {"scenario.parameter_servers.round_robin", "--multiplexing"},
    {"scenario.parameter_servers.round_robin.window_bytes", "--window"},
    {"scenario.parameter_servers.round_robin.quantum_bytes", "--quantum"},
    {"scenario.parameter_servers.equal", "--equal-shares"},
    {"scenario.parameter_servers.first_come", "--first-come"},
    {"scenario.parameter_servers.turns", "--turns"},
    {"scenario.parameter_servers.transfer_order", "--order"},
    {"scenario.parameter_servers.transfer_priorities", "--priorities"},
    {"format.variable_bytes", "--variables"},
    {"scenario.parameter_servers", "--servers"},
    {"scenario.all_reduce", "--all-reduce"},
    {"scenario.all_reduce.algorithm", "--algorithm"},
    {"scenario.all_reduce.measured", "--measured"},
    {"scenario.all_reduce.workers_per_node", "--workers-per-node"},
    {"scenario.all_reduce.latency_seconds", "--latency"},
    {"scenario.all_reduce.intra_node_bandwidth_bytes_per_second", "--intra-bandwidth"},
    {"scenario.all_reduce.intra_node_latency_seconds", "--intra-latency"},
    {"scenario.all_reduce.reduction_seconds_per_byte", "--reduction-seconds-per-byte"},
    {"scenario.all_reduce.launch_seconds", "--launch"},
    {"scenario.all_reduce.buckets.cap_bytes", "--bucket-cap"},
    {"scenario.all_reduce.buckets.cap_bytes", "--bucket-cap-mb"},
    {"scenario.all_reduce.buckets.first_bytes", "--first-bucket"},
    {"scenario.all_reduce.unfused", "--bucket-cap"},
    {"scenario.all_reduce.horovod.fusion_bytes", "--horovod-fusion"},
    {"scenario.all_reduce.horovod.cycle_seconds", "--horovod-cycle"},
    {"scenario.all_reduce.horovod", "--horovod-fusion"},
    {"scenario.all_reduce.horovod", "--horovod-cycle"},
    {"scenario.all_reduce.byte_scheduler", "--byte-scheduler"},
    {"scenario.all_reduce.concurrent_collectives", "--concurrent"},
    {"scenario.all_reduce.partition_bytes", "--partition"},
    {"scenario.all_reduce.sharding", "--sharding"},
    {"scenario.all_reduce.fidelity", "--fidelity"},
    {"scenario.all_reduce.workers_per_rack", "--workers-per-rack"},
    {"scenario.all_reduce.rack_bandwidth_bytes_per_second", "--rack-bandwidth"},
    {"scenario.all_reduce.overlap_slowdown", "--overlap-slowdown"},
    {"scenario.all_reduce.collective_slowdown", "--collective-slowdown"},
    {"scenario.all_reduce.contention", "--contention"},
    {"scenario.all_reduce.threads", "--collective-threads"},
    {"options.steps_per_worker", "--steps"},
    {"options.warmup_steps", "--warmup"},
    {"options.replications", "--replications"},
    {"options.relative_precision", "--precision"},
    {"options.confidence_level", "--confidence"},
    {"options.step_variation", "--as-recorded"},
    {"options.model_error_fraction", "--model-error"},
    {"options.time_budget", "--time-budget"},
    {"options.seed", "--seed"},
    {"options.start", "--staggered"},
    {"options.start", "--simultaneous"},
    {"options.horizon", "--first-steps"},
    {"options.horizon", "--first-seconds"},
    {"options.horizon_steps", "--first-steps"},
    {"options.horizon_seconds", "--first-seconds"},
    {"objective", "--objective"},
    {"constraints.min_workers", "--min-workers"},
    {"constraints.max_workers", "--max-workers"},
    {"constraints.max_parameter_servers", "--max-servers"},
    {"constraints.deadline", "--deadline"},
    {"constraints.examples", "--examples"},
    {"constraints.examples", "--epochs"},
    {"constraints.examples", "--dataset"},
    {"constraints.budget", "--budget"},
    {"constraints.min_scaling_efficiency", "--min-efficiency"},
    {"prices", "--worker-hour"},
    {"prices.worker_hour", "--worker-hour"},
    {"prices.parameter_server_hour", "--server-hour"},
    {"prices.node_hour", "--node-hour"},
    {"prices.device_hour", "--device-hour"},
    {"prices.currency_code", "--currency"},
    {"plan.examples", "--examples"},
    {"plan.examples", "--epochs"},
    {"plan.examples", "--dataset"},
    {"plan.worker_hour", "--worker-hour"},
    {"plan.parameter_server_hour", "--server-hour"},
    {"plan.node_hour", "--node-hour"},
    {"plan.device_hour", "--device-hour"},
    {"plan.currency_code", "--currency"},
    {"plan.failures.worker_mean_time_between", "--worker-mtbf"},
    {"plan.failures.checkpoint_time", "--checkpoint-time"},
    {"plan.failures.restart_time", "--restart-time"},
    {"plan.failures.checkpoint_interval", "--checkpoint-every"},
    {"failures.worker_mean_time_between", "--worker-mtbf"},
    {"failures.checkpoint_time", "--checkpoint-time"},
    {"failures.restart_time", "--restart-time"},
    {"failures.checkpoint_interval", "--checkpoint-every"},
    {"current.workers", "--current-workers"},
    {"current.parameter_servers", "--current-servers"},
    {"current.rescale_seconds", "--rescale-time"},
    {"capacity.workers", "--workers"},
    {"capacity.devices", "--devices"},
    {"capacity.parameter_servers", "--parameter-servers"},
    {"max_partitions", "--max-partitions"},
    {"methods", "--method"},
    {"bucket_caps_bytes", "--cap"},
    {"first_bucket_bytes", "--first-cap"},
    {"contention", "--contention"},
    {"threads", "--threads"},
    {"nccl_channels", "--nccl-channels"},
    {"inference", "--inference"},
    {"fused_share", "--fused-share"},
    {"memory.budget_bytes", "--memory-budget"},
    {"memory.half_batch_share", "--half-batch-share"},
    {"memory.second_profile", "--half-batch-recording"},
    {"memory.second_inline_profile", "--half-batch-recording"},
    {"profile_id", "--id"},
    {"header.profile_id", "--id"},
    {"header.request_id", "--request-id"},
    {"request_id", "--request-id"},
    {"header.display_name", "--display-name"},
    {"header.labels", "--label"},
    {"header.overlap_slowdown", "--overlap-slowdown"},
    {"header.collective_slowdown", "--collective-slowdown"},
    {"format.batch_size", "--batch-size"},
    {"format.model", "--model"},
    {"format.model", "MODEL"},
    {"format.platform.bandwidth_bytes_per_second", "--bandwidth"},
    {"format.platform.window_bytes", "--window"},
    {"format.platform.parsing_overhead.seconds", "--parsing-seconds"},
    {"format.platform.parsing_overhead.seconds_per_byte", "--parsing-seconds-per-byte"},
    {"format.step_seconds", "--step-seconds"},
    {"format.data_parallel_group", "--data-parallel-group"},
    {"format.tensor_parallel", "--tensor-parallel"},
    {"format.step_time_variation", "--variation"},
    {"format.common_time_variation", "--common-variation"},
    {"format.steps", "--steps"},
    {"format.seed", "--seed"},
    {"format.device_flops_per_second", "--device-flops"},
    {"filter", "--filter"},
    {"page_size", "--page-size"},
    {"page_token", "--page-token"},
    {"etag", "--etag"},
    {"confidence_level", "--level"}};

namespace {

// The path with `format` for the name of an import's format: several have the same fields.
std::string WithFormat(std::string_view path) {
  constexpr std::string_view kFormats[] = {
      "header.layer_profile.", "header.model_zoo.", "header.run_metadata.", "header.timeline.",
      "header.pytorch.",       "header.chakra.",    "header.horovod."};
  for (const std::string_view format : kFormats) {
    if (path.substr(0, format.size()) == format)
      return absl::StrCat("format.", std::string(path.substr(format.size())));
  }
  return std::string(path);
}

// True if `path` is `above` or a field or an entry of it.
bool IsBelow(std::string_view path, std::string_view above) {
  return path.substr(0, above.size()) == above &&
         (path.size() == above.size() || path[above.size()] == '.' || path[above.size()] == '[');
}

// The flag that was typed for the field, if one was, and what of its path is below that.
struct Typed {
  std::string_view flag;
  std::string rest;
};
std::optional<Typed> FlagOf(std::string_view whole_path, const TypedFlags& typed) {
  const std::string path = WithFormat(whole_path);
  const FieldFlag* best = nullptr;
  for (const FieldFlag& known : kFieldFlags) {
    if (!IsBelow(path, known.path) || (best != nullptr && known.path.size() < best->path.size()))
      continue;
    if (std::find(typed.begin(), typed.end(), known.flag) != typed.end()) best = &known;
  }
  if (best == nullptr) return std::nullopt;
  return Typed{.flag = best->flag, .rest = path.substr(best->path.size())};
}

bool IsOfPath(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '[' ||
         c == ']';
}

}  // namespace

TypedFlags TypedIn(const CLI::App& app) {
  TypedFlags typed;
  for (const CLI::Option* option : app.parse_order()) typed.push_back(option->get_name());
  return typed;
}

std::string FieldText(std::string_view path, const TypedFlags& typed) {
  const std::optional<Typed> found = FlagOf(path, typed);
  if (!found.has_value()) return std::string(path);
  std::string text(found->flag);
  std::string_view rest = found->rest;
  if (const size_t close = rest.find(']'); !rest.empty() && rest.front() == '[') {
    // The key of a map is a name.
    const std::string key(rest.substr(1, close - 1));
    int64_t index = 0;
    absl::StrAppend(&text, ", ",
                    absl::SimpleAtoi(key, &index) ? absl::StrCat("number ", index + 1) : key);
    rest = close == std::string_view::npos ? std::string_view() : rest.substr(close + 1);
  }
  if (!rest.empty()) absl::StrAppend(&text, " (", std::string(rest.substr(1)), ")");
  return text;
}

std::string FlagToGive(std::string_view path) {
  const std::string field = WithFormat(path);
  const auto known = std::find_if(kFieldFlags.begin(), kFieldFlags.end(),
                                  [&](const FieldFlag& one) { return one.path == field; });
  return std::string(known == kFieldFlags.end() ? path : known->flag);
}

std::string DescriptionText(std::string_view description, const TypedFlags& typed) {
  std::string told(description);
  // "(--all-reduce; in a request, all_reduce)": the flag is enough for who types.
  const size_t of_requests = told.find("; in a request, ");
  if (!typed.empty() && of_requests != std::string::npos)
    told.erase(of_requests, told.find(')', of_requests) - of_requests);
  std::string text;
  bool quoted = false;
  for (size_t at = 0; at < told.size();) {
    if (told[at] == '"') quoted = !quoted;
    size_t end = at;
    while (!quoted && end < told.size() && IsOfPath(told[end])) ++end;
    const std::string word = told.substr(at, std::max<size_t>(end - at, 1));
    at += word.size();
    // Words that are not names of fields have neither underscore nor dot; a name may be of the part
    // at hand.
    std::string named;
    for (const char* part :
         {"", "scenario.", "scenario.change.", "scenario.all_reduce.",
          "scenario.parameter_servers.", "options.", "constraints.", "prices."}) {
      if (word.find_first_of("_.") == std::string::npos) break;
      const std::string path = absl::StrCat(part, word);
      const std::optional<Typed> found = FlagOf(path, typed);
      if (found.has_value() && found->rest.empty()) {
        named = found->flag;
        break;
      }
      // A field that no flag has set is one that a flag could set.
      if (named.empty() && !typed.empty() && FlagToGive(path) != path) named = FlagToGive(path);
    }
    text.append(named.empty() ? word : named);
  }
  return text;
}

std::string WithFlags(std::string_view message) { return DescriptionText(message, {"--"}); }

}  // namespace stepcast::client
