#include "core/advise/tensor_route.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/index.h"
#include "core/base/time.h"
#include "core/communication/all_reduce.h"
#include "core/communication/collective_time.h"
#include "core/model/scenario_edits.h"

namespace stepcast {

namespace {

using Made = WrittenOperation::Made;

// A profile whose step is a short computation and, behind it, the parts of one tensor, each as
// `part` makes it.
absl::StatusOr<Profile> PartsAlone(ProfileDraft draft, int64_t bytes, int32_t partitions,
                                   Operation part) {
  draft.batch_size = 1;
  draft.operations.push_back({.name = "begin", .resource = Resource::kWorker});
  part.waiting_for = {0};
  for (int32_t i = 0; i < partitions; ++i) {
    Operation& operation = draft.operations.emplace_back(part);
    operation.name = absl::StrCat("part/", i);
    operation.size_bytes = bytes * (i + 1) / partitions - bytes * i / partitions;
    if (operation.resource != Resource::kUplink) continue;
    operation.parameter = operation.name;
    operation.parameter_server = i % draft.parameter_servers;
  }
  RecordedStep& step = draft.steps.emplace_back();
  step.start_ns.assign(draft.operations.size(), 0);
  step.end_ns.assign(draft.operations.size(), 1);
  return Profile::Create(std::move(draft));
}

// Every gradient is all-reduced.
class CollectiveRoute final : public TensorRoute {
 public:
  CollectiveRoute(const Profile& profile, const Scenario& scenario, const AllReduce& job)
      : operations_(profile.operations()),
        platform_(profile.platform()),
        scenario_(scenario),
        job_(job) {}

  bool KeepsLoneTensors() const override { return false; }
  std::vector<int32_t> CarriersOf() const override {
    std::vector<int32_t> carriers(operations_.size(), -1);
    for (size_t i = 0; i < operations_.size(); ++i)
      if (IsGradient(operations_[i])) carriers[i] = static_cast<int32_t>(i);
    return carriers;
  }
  std::string ParameterOf(const std::vector<int32_t>& gradients) const override {
    return gradients.size() > 1 ? "" : operations_[Index(gradients.front())].parameter;
  }
  std::string PartOf(const std::string&, int32_t) const override { return ""; }

  void Place(const std::vector<WrittenOperation>&, ProfileDraft&) const override {}
  Scenario ScenarioOf(const Strategy&, const std::vector<WrittenOperation>&,
                      const ProfileDraft&) const override {
    return WithFusion(scenario_, Fusion{}, 0);
  }
  absl::Status Check(const AppliedStrategy& written) const override {
    return CheckCollectives(written.profile, written.scenario);
  }

  std::vector<double> ReadySeconds(
      const std::vector<CollectiveTiming>& collectives) const override {
    std::map<std::string_view, double> by_name;
    for (const CollectiveTiming& collective : collectives) {
      for (const std::string& name : collective.operations)
        by_name[name] = collective.ready_seconds;
    }
    std::vector<double> ready(operations_.size(), 0);
    for (size_t i = 0; i < operations_.size(); ++i) {
      const auto found = by_name.find(operations_[i].name);
      if (found != by_name.end()) ready[i] = found->second;
    }
    return ready;
  }
  std::optional<double> SecondsOf(int64_t bytes, int32_t partitions) const override {
    if (job_.concurrent_collectives > 1 && scenario_.workers > 1) return std::nullopt;
    if (!times_.has_value()) times_.emplace(scenario_);
    const auto seconds_of = [&](int64_t of) {
      return ToSeconds(times_->TimeOf(Collective::kAllReduce, of));
    };
    const int64_t part = bytes / partitions;
    return seconds_of(part) * (partitions - 1) + seconds_of(bytes - part * (partitions - 1));
  }
  absl::StatusOr<AppliedStrategy> LonePartsOf(int64_t bytes, int32_t partitions) const override {
    absl::StatusOr<Profile> profile =
        PartsAlone({.platform = platform_}, bytes, partitions,
                   {.resource = Resource::kCollective, .collective = Collective::kAllReduce});
    if (!profile.ok()) return profile.status();
    return AppliedStrategy{.profile = *std::move(profile),
                           .scenario = WithFusion(scenario_, Fusion{}, 0)};
  }
  bool IsChain() const override { return !job_.contention && job_.collective_slowdown == 1; }

  const char* noun() const override { return "collectives"; }
  const char* why_no_bound() const override { return ""; }

 private:
  const std::vector<Operation>& operations_;
  const Platform& platform_;
  const Scenario& scenario_;
  const AllReduce& job_;
  mutable std::optional<CollectiveTimes> times_;
};

// Every gradient is uploaded, and its parameter is updated and downloaded.
class ServerRoute final : public TensorRoute {
 public:
  ServerRoute(const Profile& profile, const Scenario& scenario)
      : profile_(profile), operations_(profile.operations()), scenario_(scenario) {}

  bool KeepsLoneTensors() const override { return true; }

  // An update is one that waits, directly or not, for its parameter's upload; a download of a
  // parameter that is not uploaded stays as it is.
  std::vector<int32_t> CarriersOf() const override {
    std::vector<int32_t> carriers(operations_.size(), -1);
    std::unordered_map<std::string_view, int32_t> uploads;
    std::vector<std::vector<int32_t>> dependents(operations_.size());
    std::vector<int32_t> left;
    for (size_t i = 0; i < operations_.size(); ++i) {
      const auto at = static_cast<int32_t>(i);
      for (const int32_t before : operations_[i].waiting_for)
        dependents[Index(before)].push_back(at);
      if (operations_[i].resource != Resource::kUplink) continue;
      uploads.emplace(operations_[i].parameter, at);
      carriers[i] = at;
      left.push_back(at);
    }
    // Its server's work follows an upload without anything of a worker in between.
    while (!left.empty()) {
      const int32_t before = left.back();
      left.pop_back();
      for (const int32_t after : dependents[Index(before)]) {
        const Operation& operation = operations_[Index(after)];
        if (carriers[Index(after)] >= 0 || operation.resource != Resource::kParameterServer ||
            operation.parameter != operations_[Index(carriers[Index(before)])].parameter)
          continue;
        carriers[Index(after)] = carriers[Index(before)];
        left.push_back(after);
      }
    }
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (operations_[i].resource != Resource::kDownlink) continue;
      const auto found = uploads.find(operations_[i].parameter);
      if (found != uploads.end()) carriers[i] = found->second;
    }
    return carriers;
  }
  std::string ParameterOf(const std::vector<int32_t>& gradients) const override {
    return operations_[Index(gradients.back())].parameter;
  }
  std::string PartOf(const std::string& parameter, int32_t part) const override {
    return absl::StrCat(parameter, "#", part + 1);
  }

  // On another number of servers than recorded everything is placed by its parameter
  // (PlaceParameters).
  void Place(const std::vector<WrittenOperation>& sources, ProfileDraft& draft) const override {
    std::vector<int64_t> load(Index(draft.parameter_servers), 0);
    std::unordered_map<std::string_view, int64_t> bytes;
    for (const Operation& operation : draft.operations) {
      if (!IsTransfer(operation.resource)) continue;
      int64_t& most = bytes[operation.parameter];
      most = std::max(most, operation.size_bytes);
    }
    for (size_t i = 0; i < draft.operations.size(); ++i) {
      const Operation& operation = draft.operations[i];
      if (sources[i].made == Made::kAsIs && operation.resource == Resource::kUplink)
        load[Index(operation.parameter_server)] += bytes[operation.parameter];
    }
    std::unordered_map<std::string_view, int32_t> placed;
    for (size_t i = 0; i < draft.operations.size(); ++i) {
      Operation& operation = draft.operations[i];
      if (sources[i].made == Made::kAsIs || operation.resource == Resource::kWorker) continue;
      const auto [at, is_new] = placed.try_emplace(operation.parameter, 0);
      if (is_new) {
        const auto least = std::min_element(load.begin(), load.end());
        at->second = static_cast<int32_t>(least - load.begin());
        *least += bytes[operation.parameter];
      }
      operation.parameter_server = at->second;
    }
  }

  Scenario ScenarioOf(const Strategy& strategy, const std::vector<WrittenOperation>& sources,
                      const ProfileDraft& draft) const override {
    Scenario scenario = scenario_;
    scenario.servers().partition_bytes = 0;  // parts are the strategy's
    if (strategy.by_layer) {
      scenario.servers().transfer_order = TransferOrder::kExplicit;
      scenario.servers().transfer_priorities = RanksByLayer(draft);
      return scenario;
    }
    const std::map<std::string, int32_t>& asked = scenario_.servers().transfer_priorities;
    std::map<std::string, int32_t>& ranks = scenario.servers().transfer_priorities;
    ranks.clear();
    for (size_t i = 0; i < draft.operations.size() && !asked.empty(); ++i) {
      for (const int32_t old : sources[i].operations) {
        const auto found = asked.find(operations_[Index(old)].name);
        if (found == asked.end()) continue;
        const auto [at, is_new] = ranks.try_emplace(draft.operations[i].name, found->second);
        if (!is_new) at->second = std::min(at->second, found->second);
      }
    }
    return scenario;
  }
  absl::Status Check(const AppliedStrategy&) const override { return absl::OkStatus(); }

  // A replay does not say it of uploads: when the recorded computations that each waits for had
  // ended.
  std::vector<double> ReadySeconds(const std::vector<CollectiveTiming>&) const override {
    std::vector<double> ready(operations_.size(), 0);
    const auto steps = static_cast<double>(profile_.steps().size());
    for (const RecordedStep& step : profile_.steps()) {
      const int64_t begin = *std::min_element(step.start_ns.begin(), step.start_ns.end());
      for (size_t i = 0; i < operations_.size(); ++i) {
        if (!IsGradient(operations_[i])) continue;
        int64_t end = begin;
        for (const int32_t before : operations_[i].waiting_for)
          end = std::max(end, step.end_ns[Index(before)]);
        ready[i] += static_cast<double>(end - begin) * 1e-9 / steps;
      }
    }
    return ready;
  }
  std::optional<double> SecondsOf(int64_t, int32_t) const override { return std::nullopt; }
  // Each worker sends the parts to the servers in turn.
  absl::StatusOr<AppliedStrategy> LonePartsOf(int64_t bytes, int32_t partitions) const override {
    Scenario scenario = scenario_;
    ParameterServers& job = scenario.servers();
    job.transfer_order = TransferOrder::kGraph;
    job.transfer_priorities.clear();
    job.partition_bytes = 0;
    absl::StatusOr<Profile> profile =
        PartsAlone({.platform = profile_.platform(), .parameter_servers = job.servers}, bytes,
                   partitions, {.resource = Resource::kUplink});
    if (!profile.ok()) return profile.status();
    return AppliedStrategy{.profile = *std::move(profile), .scenario = std::move(scenario)};
  }
  // Downloads are not on it.
  bool IsChain() const override { return false; }

  const char* noun() const override { return "tensors"; }
  const char* why_no_bound() const override {
    return "none is known of tensors that go to parameter servers together";
  }

 private:
  // The ranks of every transfer that names its parameter.
  static std::map<std::string, int32_t> RanksByLayer(const ProfileDraft& draft) {
    std::unordered_map<std::string_view, int32_t> rank_of;
    const auto add = [&](const Operation& operation) {
      rank_of.try_emplace(operation.parameter, static_cast<int32_t>(rank_of.size()));
    };
    for (const Operation& operation : draft.operations) {
      if (operation.resource == Resource::kDownlink && operation.waiting_for.empty())
        add(operation);
    }
    for (size_t i = draft.operations.size(); i > 0; --i) {
      if (draft.operations[i - 1].resource == Resource::kUplink) add(draft.operations[i - 1]);
    }
    std::map<std::string, int32_t> ranks;
    for (const Operation& operation : draft.operations) {
      const auto found = rank_of.find(operation.parameter);
      if (IsTransfer(operation.resource) && found != rank_of.end())
        ranks.emplace(operation.name, found->second);
    }
    return ranks;
  }

  const Profile& profile_;
  const std::vector<Operation>& operations_;
  const Scenario& scenario_;
};

}  // namespace

std::unique_ptr<const TensorRoute> TensorRoute::Of(const Profile& profile,
                                                   const Scenario& scenario) {
  if (const auto* job = std::get_if<AllReduce>(&scenario.communication); job != nullptr)
    return std::make_unique<CollectiveRoute>(profile, scenario, *job);
  return std::make_unique<ServerRoute>(profile, scenario);
}

}  // namespace stepcast
