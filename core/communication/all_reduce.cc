#include "core/communication/all_reduce.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "core/communication/full_sharding.h"
#include "core/communication/parameter_servers.h"
#include "core/communication/step_overlap.h"
#include "core/communication/step_plan.h"
#include "core/model/job_change.h"

namespace stepcast {

namespace {

// A parameter's upload, update and download become one collective, which stands where the upload
// did.
StepPlan WithoutServers(const Profile& profile, const StepPlan& plan) {
  PlanRewriter rewriter(plan);
  for (size_t i = 0; i < plan.size(); ++i) {
    const Resource resource = profile.operations()[i].resource;
    if (resource == Resource::kDownlink || resource == Resource::kParameterServer) continue;
    rewriter.Became(static_cast<int32_t>(i), rewriter.Append(plan[i]));
  }
  return std::move(rewriter).Finish();
}

// The number of gradients in each bucket.
std::vector<int32_t> BucketsOf(const StepPlan& plan, const Fusion& fusion) {
  if (const auto* given = std::get_if<GradientGroups>(&fusion)) {
    std::vector<int32_t> counts;
    for (const GradientGroup& group : given->groups)
      counts.push_back(static_cast<int32_t>(group.operations.size()));
    return counts;
  }
  std::vector<int64_t> bytes;
  for (const int32_t gradient : AllReducesOf(plan)) bytes.push_back(plan[Index(gradient)].bytes);
  return GradientsByBucket(bytes, fusion);
}

// Gives every gradient the threads of its group.
void AssignThreads(const Fusion& fusion, StepPlan& plan) {
  const auto* given = std::get_if<GradientGroups>(&fusion);
  if (given == nullptr) return;
  const std::vector<int32_t> gradients = AllReducesOf(plan);
  auto next = gradients.begin();
  for (const GradientGroup& group : given->groups) {
    for (size_t i = 0; i < group.operations.size(); ++i)
      plan[Index(*next++)].threads = group.threads.value_or(0);
  }
}

// A bucket waits for what its members wait for, stands where the last of them stood, and what
// waited for a member waits for it.
StepPlan Fused(const StepPlan& plan, const Fusion& fusion) {
  if (std::holds_alternative<std::monostate>(fusion) || std::holds_alternative<Horovod>(fusion) ||
      std::holds_alternative<ByteScheduler>(fusion))
    return plan;
  const std::vector<int32_t> gradients = AllReducesOf(plan);
  std::vector<std::vector<int32_t>> members_of(plan.size());  // by last member
  size_t next = 0;
  for (const int32_t count : BucketsOf(plan, fusion)) {
    const auto first = gradients.begin() + static_cast<std::ptrdiff_t>(next);
    next += Index(count);
    members_of[Index(gradients[next - 1])].assign(first, first + count);
  }
  PlanRewriter rewriter(plan);
  for (size_t i = 0; i < plan.size(); ++i) {
    if (!plan[i].is_gradient) {
      rewriter.Became(static_cast<int32_t>(i), rewriter.Append(plan[i]));
      continue;
    }
    if (members_of[i].empty()) continue;  // its bucket comes later
    PlannedOperation bucket{.source = plan[i].source,
                            .kind = Collective::kAllReduce,
                            .is_gradient = true,
                            .threads = plan[i].threads};
    for (const int32_t member : members_of[i]) {
      const PlannedOperation& gradient = plan[Index(member)];
      bucket.bytes += gradient.bytes;
      bucket.members.push_back(gradient.source);
      bucket.waiting_for.insert(bucket.waiting_for.end(), gradient.waiting_for.begin(),
                                gradient.waiting_for.end());
    }
    const int32_t now = rewriter.Append(std::move(bucket));
    for (const int32_t member : members_of[i]) rewriter.Became(member, now);
  }
  return std::move(rewriter).Finish();
}

// ZeRO-1 and -2: what waited for a gradient's sum waits for the worker's share of it, and what that
// updates is gathered when those that waited for it have ended, at the end of the step.
StepPlan WithShardedOptimizer(const Profile& profile, const StepPlan& plan) {
  std::vector<std::vector<int32_t>> updates(plan.size());  // by all-reduce
  for (size_t i = 0; i < plan.size(); ++i) {
    for (const int32_t before : plan[i].waiting_for)
      if (plan[Index(before)].is_gradient)
        updates[Index(before)].push_back(static_cast<int32_t>(i));
  }
  PlanRewriter rewriter(plan);
  for (size_t i = 0; i < plan.size(); ++i) {
    PlannedOperation operation = plan[i];
    if (operation.is_gradient) operation.kind = Collective::kReduceScatter;
    rewriter.Became(static_cast<int32_t>(i), rewriter.Append(std::move(operation)));
  }
  for (const int32_t gradient : AllReducesOf(plan)) {
    PlannedOperation gather = plan[Index(gradient)];
    gather.kind = Collective::kAllGather;
    gather.bytes = ParameterBytesOf(profile, gather.bytes);
    gather.waiting_for = updates[Index(gradient)];
    gather.waiting_for.push_back(gradient);
    rewriter.Append(std::move(gather));
  }
  return std::move(rewriter).Finish();
}

StepPlan Partitioned(const StepPlan& plan, int64_t partition_bytes) {
  if (partition_bytes == 0) return plan;
  PlanRewriter rewriter(plan);
  for (size_t i = 0; i < plan.size(); ++i) {
    int64_t left = plan[i].bytes;
    do {
      PlannedOperation piece = plan[i];
      if (piece.kind != Collective::kUnspecified) piece.bytes = std::min(left, partition_bytes);
      left -= partition_bytes;
      rewriter.Became(static_cast<int32_t>(i), rewriter.Append(std::move(piece)));
    } while (left > 0 && plan[i].kind != Collective::kUnspecified);
  }
  return std::move(rewriter).Finish();
}

// The number of operations that can run in some order: all, unless some wait for each other.
size_t OrderedCount(const StepPlan& plan) {
  std::vector<std::vector<int32_t>> dependents(plan.size());
  std::vector<size_t> pending(plan.size());
  std::vector<int32_t> ready;
  for (size_t i = 0; i < plan.size(); ++i) {
    pending[i] = plan[i].waiting_for.size();
    if (pending[i] == 0) ready.push_back(static_cast<int32_t>(i));
    for (const int32_t before : plan[i].waiting_for)
      dependents[Index(before)].push_back(static_cast<int32_t>(i));
  }
  size_t ordered = 0;
  for (; ordered < ready.size(); ++ordered) {
    for (const int32_t next : dependents[Index(ready[ordered])]) {
      if (--pending[Index(next)] == 0) ready.push_back(next);
    }
  }
  return ordered;
}

// Collectives begin in graph order: one that must wait for a later one never would.
absl::Status CheckOrder(const Profile& profile, StepPlan plan) {
  int32_t last = -1;
  for (size_t i = 0; i < plan.size(); ++i) {
    if (plan[i].kind == Collective::kUnspecified) continue;
    if (last >= 0) plan[i].waiting_for.push_back(last);
    last = static_cast<int32_t>(i);
    SortUnique(plan[i].waiting_for);
  }
  if (OrderedCount(plan) == plan.size()) return absl::OkStatus();
  std::string names;
  for (const PlannedOperation& operation : plan) {
    if (operation.members.size() < 2) continue;
    names =
        absl::StrCat("; the first bucket of several is of ",
                     Quoted(profile.operations()[Index(operation.members.front())].name), " to ",
                     Quoted(profile.operations()[Index(operation.members.back())].name));
    break;
  }
  return FaultsError(
      "SCENARIO_INVALID",
      {{.field = "all_reduce",
        .description = absl::StrCat("collectives run in graph order, and in these buckets one "
                                    "waits for itself or for a later one",
                                    names)}});
}

// `joint_lanes`: as many collectives can be under way at once.
absl::StatusOr<Program> ProgramOf(const Profile& profile, const StepPlan& plan, int32_t joint_lanes,
                                  StopCheck stop) {
  PacedStopCheck pace(stop);
  int32_t streams = 1;
  for (const PlannedOperation& operation : plan) streams = std::max(streams, operation.stream + 1);
  std::vector<LaneSpec> lanes;
  lanes.reserve(Index(streams) + Index(joint_lanes));
  for (int32_t i = 0; i < streams; ++i) lanes.push_back({.role = LaneRole::kCompute, .index = i});
  for (int32_t i = 0; i < joint_lanes; ++i) lanes.push_back({.role = LaneRole::kJoint, .index = i});
  ProgramDraft draft;
  draft.lanes = Lanes(std::move(lanes));
  draft.step_count = static_cast<int32_t>(profile.steps().size());
  draft.durations.reserve(Index(draft.step_count) * plan.size());
  for (size_t i = 0; i < plan.size(); ++i) {
    const PlannedOperation& operation = plan[i];
    if (!pace.GoesOn(static_cast<int64_t>(1 + operation.waiting_for.size()))) return pace.status();
    const bool computes = operation.kind == Collective::kUnspecified;
    draft.lane.push_back(computes ? operation.stream : streams);
    draft.source.push_back(operation.source);
    draft.size_bytes.push_back(operation.bytes);
    draft.work.emplace_back();
    for (const int32_t before : operation.waiting_for)
      draft.dependencies.push_back({.before = before, .after = static_cast<OpIndex>(i)});
  }
  for (size_t at = 0; at < profile.steps().size(); ++at) {
    const RecordedStep& step = profile.steps()[at];
    for (const PlannedOperation& operation : plan) {
      if (!pace.GoesOn(1)) return pace.status();
      draft.durations.push_back(
          operation.kind == Collective::kUnspecified ? DurationOf(operation, step, at) : Span{});
    }
  }
  return Program::Make(std::move(draft), stop);
}

}  // namespace

std::vector<int32_t> GradientsByBucket(const std::vector<int64_t>& gradient_bytes,
                                       const Fusion& fusion) {
  const auto* recorded = std::get_if<RecordedBuckets>(&fusion);
  const auto* rule = std::get_if<Buckets>(&fusion);
  std::vector<int32_t> counts;
  int64_t filled = 0;
  int32_t count = 0;
  for (const int64_t bytes : gradient_bytes) {
    filled += bytes;
    ++count;
    const int64_t limit =
        recorded != nullptr
            ? recorded->sizes_bytes[std::min(counts.size(), recorded->sizes_bytes.size() - 1)]
        : rule != nullptr ? (counts.empty() ? rule->first_bytes : rule->cap_bytes)
                          : 0;
    if (filled < limit) continue;
    counts.push_back(std::exchange(count, 0));
    filled = 0;
  }
  if (count > 0) counts.push_back(count);
  return counts;
}

namespace {

absl::StatusOr<StepPlan> PlanFor(const Profile& profile, AllReduce job, int32_t workers) {
  if (auto* const rule = std::get_if<Buckets>(&job.fusion))
    *rule = AsSent(*rule, profile.content().buckets);
  StepPlan plan = PlanOf(profile);
  if (!profile.has_collectives()) plan = WithoutServers(profile, plan);
  AssignThreads(job.fusion, plan);
  if (job.sharding != Sharding::kNone) plan = WithSharedUpdates(profile, std::move(plan), workers);
  if (job.sharding == Sharding::kFull) {
    if (absl::Status status = CheckOrder(profile, plan); !status.ok()) return status;
    absl::StatusOr<StepPlan> sharded =
        WithShardedParameters(profile, plan, BucketsOf(plan, job.fusion));
    if (!sharded.ok()) return sharded.status();
    plan = *std::move(sharded);
  } else {
    plan = Fused(plan, job.fusion);
    if (job.sharding != Sharding::kNone) plan = WithShardedOptimizer(profile, plan);
  }
  if (std::holds_alternative<ByteScheduler>(job.fusion)) {
    if (absl::Status status = CheckOrder(profile, plan); !status.ok()) return status;
    absl::StatusOr<StepPlan> crossing = WithoutStepBarrier(profile, plan);
    if (!crossing.ok()) return crossing.status();
    return Partitioned(*crossing, job.partition_bytes);
  }
  plan = Partitioned(plan, job.partition_bytes);
  // In cycles, what is ready goes, whatever stands before it.
  if (std::holds_alternative<Horovod>(job.fusion)) return plan;
  if (absl::Status status = CheckOrder(profile, plan); !status.ok()) return status;
  return plan;
}

// `begins` and `ends`, by operation: of an expanded program, else empty.
std::vector<PlannedCollective> CollectivesOf(StepPlan plan, const std::vector<OpIndex>& begins,
                                             const std::vector<OpIndex>& ends) {
  std::vector<PlannedCollective> collectives;
  for (size_t i = 0; i < plan.size(); ++i) {
    if (plan[i].kind == Collective::kUnspecified) continue;
    collectives.push_back({.op = begins.empty() ? static_cast<OpIndex>(i) : begins[i],
                           .last_op = ends.empty() ? -1 : ends[i],
                           .kind = plan[i].kind,
                           .is_gradient = plan[i].is_gradient,
                           .bytes = plan[i].bytes,
                           .members = std::move(plan[i].members),
                           .threads = plan[i].threads,
                           .rank = plan[i].rank});
  }
  return collectives;
}

}  // namespace

absl::Status CheckCollectives(const Profile& profile, const Scenario& scenario) {
  if (scenario.has_servers()) return CheckServers(profile, scenario);
  const absl::StatusOr<StepPlan> plan = PlanFor(profile, scenario.all_reduce(), scenario.workers);
  if (!plan.ok()) return plan.status();
  if (scenario.all_reduce().fidelity == Fidelity::kCollapsed) return absl::OkStatus();
  return CheckExpanded(profile, *plan, scenario);
}

absl::StatusOr<CollectiveProgram> BuildCollectiveProgram(const Profile& profile,
                                                         const Scenario& scenario, StopCheck stop) {
  const AllReduce& job = scenario.all_reduce();
  absl::StatusOr<StepPlan> made = PlanFor(profile, job, scenario.workers);
  if (!made.ok()) return made.status();
  StepPlan& plan = *made;
  if (absl::Status status = stop(); !status.ok()) return status;
  if (job.fidelity == Fidelity::kExpanded) {
    if (absl::Status status = CheckExpanded(profile, plan, scenario); !status.ok()) return status;
    absl::StatusOr<ExpandedProgram> expanded = ExpandedProgramOf(profile, plan, scenario, stop);
    if (!expanded.ok()) return expanded.status();
    return CollectiveProgram{
        .program = std::move(expanded->program),
        .ring = std::move(expanded->ring),
        .collectives = CollectivesOf(std::move(plan), expanded->begins, expanded->ends)};
  }
  const auto collectives = static_cast<int32_t>(
      std::count_if(plan.begin(), plan.end(), [](const PlannedOperation& operation) {
        return operation.kind != Collective::kUnspecified;
      }));
  absl::StatusOr<Program> program = ProgramOf(
      profile, plan,
      std::holds_alternative<Horovod>(job.fusion) ? collectives : job.concurrent_collectives, stop);
  if (!program.ok()) return program.status();
  return CollectiveProgram{.program = *std::move(program),
                           .ring = {},
                           .collectives = CollectivesOf(std::move(plan), {}, {})};
}

bool HaveSameCollectiveProgram(const Scenario& a, const Scenario& b) {
  const AllReduce& of_a = a.all_reduce();
  const AllReduce& of_b = b.all_reduce();
  return of_a.fusion == of_b.fusion && of_a.partition_bytes == of_b.partition_bytes &&
         of_a.sharding == of_b.sharding && of_a.fidelity == of_b.fidelity &&
         (of_a.sharding == Sharding::kNone || a.workers == b.workers) &&  // or shares differ
         of_a.concurrent_collectives == of_b.concurrent_collectives &&
         of_a.contention.has_value() == of_b.contention.has_value() &&  // or nothing is prepared
         (of_a.fidelity == Fidelity::kCollapsed || HaveSameExpansion(a, b));
}

}  // namespace stepcast
