#include "core/predict/run_memory.h"

#include <cstring>
#include <optional>
#include <type_traits>
#include <variant>

#include "core/predict/throughput.h"

namespace stepcast {

namespace {

// Every value is preceded by its length or has a fixed one, so that no two lists of values have the
// same bytes.
class Bytes {
 public:
  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void Add(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes_.append(raw, sizeof(T));
  }
  void Add(std::string_view text) {
    Add(static_cast<uint64_t>(text.size()));
    bytes_.append(text);
  }
  void Add(const std::optional<double>& value) {
    Add(value.has_value());
    if (value.has_value()) Add(*value);
  }
  void Add(const ParsingOverhead& overhead) {
    const auto& [seconds_per_byte, seconds] = overhead;
    Add(seconds_per_byte);
    Add(seconds);
  }
  void Add(const WorkerGroup& group) {
    const auto& [count, compute_speed_factor, bandwidth] = group;
    Add(count);
    Add(compute_speed_factor);
    Add(bandwidth);
  }
  std::string Take() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

void AddCommunication(const ParameterServers& job, Bytes& bytes) {
  const auto& [servers, parsing, synchronization, multiplexing, sharing, order, priorities,
               partition_bytes, compute_speed] = job;
  bytes.Add(servers);
  bytes.Add(parsing);
  bytes.Add(synchronization);
  bytes.Add(static_cast<uint64_t>(multiplexing.index()));
  if (const auto* window = std::get_if<Window>(&multiplexing)) {
    bytes.Add(window->bytes);
    bytes.Add(window->quantum_bytes);
  } else if (const auto* robin = std::get_if<RoundRobin>(&multiplexing)) {
    bytes.Add(robin->window_bytes);
    bytes.Add(robin->quantum_bytes);
  }
  bytes.Add(static_cast<uint64_t>(sharing.index()));
  if (const auto* turns = std::get_if<Turns>(&sharing)) bytes.Add(turns->bytes);
  bytes.Add(order);
  bytes.Add(partition_bytes);
  bytes.Add(compute_speed);
  bytes.Add(static_cast<uint64_t>(priorities.size()));
  for (const auto& [name, rank] : priorities) {
    bytes.Add(std::string_view(name));
    bytes.Add(rank);
  }
}

void AddFusion(const Fusion& fusion, Bytes& bytes) {
  bytes.Add(static_cast<uint64_t>(fusion.index()));
  const auto add_rule = [&](const Buckets& buckets) {
    const auto& [first, cap] = buckets;
    bytes.Add(first);
    bytes.Add(cap);
  };
  if (const auto* recorded = std::get_if<RecordedBuckets>(&fusion)) {
    const auto& [sizes, rule, sent_share] = *recorded;
    bytes.Add(sent_share);
    bytes.Add(static_cast<uint64_t>(sizes.size()));
    for (const int64_t size : sizes) bytes.Add(size);
    bytes.Add(rule.has_value());
    if (rule.has_value()) add_rule(*rule);
  } else if (const auto* buckets = std::get_if<Buckets>(&fusion)) {
    add_rule(*buckets);
  } else if (const auto* horovod = std::get_if<Horovod>(&fusion)) {
    const auto& [fusion_bytes, cycle] = *horovod;
    bytes.Add(fusion_bytes);
    bytes.Add(cycle);
  } else if (const auto* scheduler = std::get_if<ByteScheduler>(&fusion)) {
    const auto& [credit_bytes] = *scheduler;
    bytes.Add(credit_bytes);
  } else if (const auto* given = std::get_if<GradientGroups>(&fusion)) {
    bytes.Add(static_cast<uint64_t>(given->groups.size()));
    for (const GradientGroup& group : given->groups) {
      const auto& [operations, threads] = group;
      bytes.Add(static_cast<uint64_t>(operations.size()));
      for (const std::string& name : operations) bytes.Add(std::string_view(name));
      bytes.Add(threads.value_or(0));
    }
  }
}

void AddContention(const std::optional<Contention>& contention, Bytes& bytes) {
  bytes.Add(contention.has_value());
  if (!contention.has_value()) return;
  const auto& [alpha1, alpha2, overlapped, alone, gamma4] = *contention;
  bytes.Add(alpha1);
  bytes.Add(alpha2);
  for (const TransferRate& rate : {overlapped, alone}) {
    const auto& [gamma1, gamma2, gamma3] = rate;
    bytes.Add(gamma1);
    bytes.Add(gamma2);
    bytes.Add(gamma3);
  }
  bytes.Add(gamma4);
}

void AddCommunication(const AllReduce& job, Bytes& bytes) {
  const auto& [algorithm, latency, workers_per_node, intra_bandwidth, intra_latency, reduction,
               launch, fusion, measured, concurrent, partition, sharding, overlap_slowdown,
               collective_slowdown, nccl, fidelity, workers_per_rack, rack_bandwidth, contention,
               threads, thread_channels] = job;
  bytes.Add(algorithm);
  bytes.Add(latency);
  bytes.Add(workers_per_node);
  bytes.Add(intra_bandwidth);
  bytes.Add(intra_latency);
  bytes.Add(reduction);
  bytes.Add(launch);
  AddFusion(fusion, bytes);
  bytes.Add(static_cast<uint64_t>(measured.size()));
  for (const MeasuredCollective& point : measured) {
    const auto& [kind, workers, size, seconds] = point;
    bytes.Add(kind);
    bytes.Add(workers);
    bytes.Add(size);
    bytes.Add(seconds);
  }
  bytes.Add(concurrent);
  bytes.Add(partition);
  bytes.Add(sharding);
  bytes.Add(overlap_slowdown);
  bytes.Add(collective_slowdown);
  bytes.Add(fidelity);
  bytes.Add(workers_per_rack);
  bytes.Add(rack_bandwidth);
  AddContention(contention, bytes);
  bytes.Add(threads);
  bytes.Add(thread_channels);
  const auto& [architecture, path, channels, channel_bandwidth, amd] = nccl;
  bytes.Add(architecture);
  bytes.Add(path);
  bytes.Add(channels);
  bytes.Add(channel_bandwidth);
  bytes.Add(amd);
}

void AddPipeline(const Pipeline& pipeline, Bytes& bytes) {
  const auto& [layout, cuts, receives, transport, links, bandwidth, latency, reduction, barrier,
               has_network_links, shares_links, element_bytes, nodes] = pipeline;
  const auto& [schedule, variant, devices, chunks, micro_batches, group] = layout;
  bytes.Add(schedule);
  bytes.Add(variant);
  bytes.Add(devices);
  bytes.Add(chunks);
  bytes.Add(micro_batches);
  bytes.Add(group);
  bytes.Add(static_cast<uint64_t>(cuts.size()));
  for (const std::string& cut : cuts) bytes.Add(std::string_view(cut));
  bytes.Add(receives);
  bytes.Add(transport);
  bytes.Add(links);
  bytes.Add(bandwidth);
  bytes.Add(latency);
  bytes.Add(reduction);
  bytes.Add(barrier);
  bytes.Add(has_network_links);
  bytes.Add(shares_links);
  bytes.Add(element_bytes);
  bytes.Add(nodes);
}

void AddScenario(const Scenario& scenario, Bytes& bytes) {
  const auto& [workers, bandwidth, communication, offsets, groups, pipeline, assumed, change,
               nodes] = scenario;
  static_cast<void>(change);  // the profile's digest has it
  static_cast<void>(nodes);   // they cost money, and no time
  bytes.Add(static_cast<bool>(pipeline));
  if (pipeline) AddPipeline(*pipeline, bytes);
  // Only these of what is assumed make a run more.
  bytes.Add(assumed.Has(Assumed::kLinkRate));
  bytes.Add(assumed.Has(Assumed::kLinkSharing));
  bytes.Add(workers);
  bytes.Add(bandwidth);
  bytes.Add(static_cast<uint64_t>(communication.index()));
  std::visit([&](const auto& job) { AddCommunication(job, bytes); }, communication);
  bytes.Add(static_cast<uint64_t>(offsets.size()));
  for (const int64_t offset : offsets) bytes.Add(offset);
  bytes.Add(static_cast<uint64_t>(groups.size()));
  for (const WorkerGroup& group : groups) bytes.Add(group);
}

void AddOptions(const SimulationOptions& options, Bytes& bytes) {
  const auto& [steps, automatic_steps, warmup, automatic_warmup, seed, replications,
               automatic_replications, precision, budget, start, horizon, horizon_steps,
               horizon_seconds, level, step_variation, model_error] = options;
  bytes.Add(steps);
  bytes.Add(automatic_steps);  // it widens the time in which workers start
  bytes.Add(warmup);
  bytes.Add(automatic_warmup);
  bytes.Add(seed);
  static_cast<void>(replications);
  static_cast<void>(automatic_replications);
  static_cast<void>(precision);
  static_cast<void>(budget);
  bytes.Add(start);
  bytes.Add(horizon);
  bytes.Add(horizon_steps);
  bytes.Add(horizon_seconds);
  static_cast<void>(level);
  bytes.Add(step_variation);
  static_cast<void>(model_error);
}

}  // namespace

std::string RunKeyPrefix(std::string_view profile_digest, const Scenario& scenario,
                         const SimulationOptions& options) {
  Bytes bytes;
  bytes.Add(std::string_view(kEngineVersion));
  bytes.Add(profile_digest);
  AddScenario(scenario, bytes);
  AddOptions(options, bytes);
  return std::move(bytes).Take();
}

std::string RunKeyOf(std::string_view prefix, int32_t replication) {
  Bytes bytes;
  bytes.Add(prefix);
  bytes.Add(replication);
  return std::move(bytes).Take();
}

std::string RunKeyOfKind(std::string_view key, std::string_view kind) {
  Bytes bytes;
  bytes.Add(key);
  bytes.Add(kind);
  return std::move(bytes).Take();
}

absl::StatusOr<std::shared_ptr<const RunSummary>> KnownRuns::Once(
    const std::string& key, absl::FunctionRef<absl::StatusOr<RunSummary>()> make,
    bool was_asked) const {
  if (memory != nullptr) {
    auto kept = was_asked ? memory->FindAgain(key) : memory->Find(key);
    if (kept != nullptr) return kept;
  }
  absl::StatusOr<RunSummary> made = make();
  if (!made.ok()) return made.status();
  auto run = std::make_shared<const RunSummary>(*std::move(made));
  if (counter != nullptr) counter->Add(run->simulated_operations);
  if (memory != nullptr) memory->Keep(key, run);
  return run;
}

}  // namespace stepcast
