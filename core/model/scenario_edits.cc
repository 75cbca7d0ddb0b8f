#include "core/model/scenario_edits.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"

namespace stepcast {

namespace {

// The rates with every number of threads, of links twice as fast.
void Double(TransferRate& rate) {
  rate.gamma1 *= 2;
  rate.gamma2 *= 2;
}

constexpr char kOneWorker[] = "one worker uses no link";

}  // namespace

Scenario WithLinkRates(Scenario scenario, LinkPlace place, double factor) {
  auto* const job = std::get_if<AllReduce>(&scenario.communication);
  if (place == LinkPlace::kInsideNodes) {
    job->intra_node_bandwidth_bytes_per_second *= factor;
    return scenario;
  }
  if (job != nullptr) {
    job->rack_bandwidth_bytes_per_second *= factor;
    job->nccl.channel_bandwidth_bytes_per_second *= factor;
  }
  scenario.bandwidth_bytes_per_second *= factor;
  for (WorkerGroup& group : scenario.worker_groups) {
    if (group.bandwidth_bytes_per_second.has_value()) *group.bandwidth_bytes_per_second *= factor;
  }
  return scenario;
}

std::string NotMeasuredText(const Scenario& scenario) {
  std::vector<double> rates;
  int32_t without_own = scenario.workers;
  for (const WorkerGroup& group : scenario.worker_groups) {
    if (!group.bandwidth_bytes_per_second.has_value()) continue;
    rates.push_back(*group.bandwidth_bytes_per_second);
    without_own -= group.count;
  }
  // A server's link has the scenario's rate, whatever those of its workers.
  if (scenario.has_servers() || without_own > 0)
    rates.push_back(scenario.bandwidth_bytes_per_second);
  if (!scenario.has_servers() && scenario.all_reduce().workers_per_rack > 0)
    rates.push_back(scenario.all_reduce().rack_bandwidth_bytes_per_second);
  const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
  if (*least == *most)
    return absl::StrFormat(
        "the links' rate, %.0f bytes/s, is not a measured one, and sockets often reach a fraction "
        "of the nominal rate",
        *least);
  return absl::StrFormat(
      "the links' rates, %.0f to %.0f bytes/s, are not measured ones, and sockets often reach a "
      "fraction of nominal rates",
      *least, *most);
}

Scenario WithFusion(Scenario scenario, Fusion fusion) {
  std::get<AllReduce>(scenario.communication).fusion = std::move(fusion);
  return scenario;
}

Scenario WithFusion(Scenario scenario, Fusion fusion, int64_t partition_bytes) {
  std::get<AllReduce>(scenario.communication).partition_bytes = partition_bytes;
  return WithFusion(std::move(scenario), std::move(fusion));
}

Scenario Uncontended(Scenario scenario) {
  auto& job = std::get<AllReduce>(scenario.communication);
  job.contention.reset();
  job.threads = 0;
  job.thread_channels = 0;
  job.overlap_slowdown = 1;
  job.collective_slowdown = 1;
  return scenario;
}

Scenario AsIfAlone(Scenario scenario) {
  Contention& contention = *std::get<AllReduce>(scenario.communication).contention;
  contention.alpha1 = 1;
  contention.alpha2 = 0;
  contention.overlapped = contention.alone;
  return scenario;
}

std::vector<FusionObstacle> FusionObstaclesOf(const Scenario& scenario) {
  if (scenario.has_servers()) return {FusionObstacle::kServers};
  std::vector<FusionObstacle> obstacles;
  if (scenario.all_reduce().sharding != Sharding::kNone)
    obstacles.push_back(FusionObstacle::kSharding);
  if (scenario.all_reduce().fidelity != Fidelity::kCollapsed)
    obstacles.push_back(FusionObstacle::kExpanded);
  return obstacles;
}

Scenario AsTransferred(Scenario scenario, double added_seconds) {
  if (!scenario.has_servers()) return scenario;
  scenario.servers().parsing_overhead.seconds += added_seconds;
  scenario.servers().transfer_order = TransferOrder::kRecorded;
  return scenario;
}

std::string MakeLinksTwiceAsFast(Scenario& scenario) {
  if (auto* const job = std::get_if<AllReduce>(&scenario.communication); job != nullptr) {
    if (scenario.workers == 1) return kOneWorker;
    if (job->algorithm == CollectiveAlgorithm::kMeasured) {
      for (MeasuredCollective& point : job->measured) point.seconds /= 2;
      return "";
    }
    if (job->contention.has_value()) {
      Double(job->contention->overlapped);
      Double(job->contention->alone);
    }
    scenario = WithLinkRates(std::move(scenario), LinkPlace::kInsideNodes, 2);
  }
  scenario = WithLinkRates(std::move(scenario), LinkPlace::kBetweenNodes, 2);
  return "";
}

std::string RemoveLatency(Scenario& scenario) {
  auto* const job = std::get_if<AllReduce>(&scenario.communication);
  if (job == nullptr) return "links to parameter servers have none";
  if (job->algorithm == CollectiveAlgorithm::kMeasured)
    return "collectives take the times that were measured, their latency in them";
  if (job->latency_seconds == 0 && job->intra_node_latency_seconds == 0)
    return "the scenario has none";
  if (scenario.workers == 1) return kOneWorker;
  job->latency_seconds = 0;
  job->intra_node_latency_seconds = 0;
  return "";
}

std::string MakeServersTwiceAsFast(const Profile& profile, Scenario& scenario) {
  if (!scenario.has_servers()) return "there are no parameter servers";
  const std::vector<Operation>& operations = profile.operations();
  const bool computes = std::any_of(operations.begin(), operations.end(), [](const auto& each) {
    return each.resource == Resource::kParameterServer;
  });
  if (!computes && scenario.servers().parsing_overhead == ParsingOverhead{})
    return "parameter servers compute nothing";
  scenario.servers().compute_speed_factor *= 2;
  return "";
}

bool AsksForCollectives(const Profile& profile, const ScenarioDraft& draft) {
  return std::holds_alternative<AllReduceDraft>(draft.communication) ||
         (std::holds_alternative<std::monostate>(draft.communication) &&
          (profile.has_collectives() || draft.pipeline.has_value()));
}

std::optional<int32_t> WorkersByLists(const ScenarioDraft& draft) {
  int64_t workers = static_cast<int64_t>(draft.start_offsets_ns.size());
  if (!draft.worker_groups.empty()) {
    workers = 0;
    for (const WorkerGroup& group : draft.worker_groups) workers += group.count;
  }
  if (workers == 0) return std::nullopt;
  return static_cast<int32_t>(std::clamp<int64_t>(workers, INT32_MIN, INT32_MAX));
}

std::string WhyNotAccumulated(const Profile& profile, const ScenarioDraft& draft) {
  if (draft.pipeline.has_value()) return ", and a pipeline, whose micro_batches add up already";
  if (!AsksForCollectives(profile, draft))
    return ", and workers that send gradients to parameter servers, of which nothing tells when "
           "they would add up: it is for jobs with all-reduces";
  const auto* const job = std::get_if<AllReduceDraft>(&draft.communication);
  const Sharding sharding = job == nullptr ? Sharding::kNone : job->sharding.value_or(Sharding{});
  if (sharding == Sharding::kGradients || sharding == Sharding::kFull)
    return ", and sharded gradients, which are sent in each micro-batch: that is not modelled; "
           "with sharding OPTIMIZER they are sent once";
  return "";
}

bool Scenario::CanShare(int64_t examples, int32_t count) const {
  if (!pipeline.has_value()) return examples % count == 0;
  return pipeline->layout.micro_batches % count == 0 &&
         LayoutFaults(SharedAmong(count).pipeline->layout).empty();
}

Scenario Scenario::SharedAmong(int32_t count) const {
  Scenario scenario = *this;
  scenario.workers = count;
  if (scenario.pipeline.has_value()) scenario.pipeline->layout.micro_batches /= count;
  return scenario;
}

}  // namespace stepcast
