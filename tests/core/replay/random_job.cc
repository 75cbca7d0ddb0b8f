#include "tests/core/replay/random_job.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/index.h"
#include "core/base/random.h"
#include "core/base/stop_check.h"

namespace stepcast::testing {

namespace {

class RandomJobMaker {
 public:
  explicit RandomJobMaker(uint64_t seed) : random_({seed, 191}), round_(Chance(50)) {}

  RandomJob Make() {
    RandomJob made;
    const bool joins = Chance(50);
    const int32_t workers = Chance(10) ? 1 : Pick(2, 5);
    const int32_t steps = Chance(50) ? 1 : 3;
    const int32_t size = Pick(3, 10);
    concurrent_ = joins && Chance(30) ? 2 : 1;
    DrawShape(size, joins);
    for (int32_t i = Chance(50) ? 1 : 2; i > 0; --i)
      made.job.programs.push_back(MakeProgram(steps));
    for (int32_t w = 0; w < workers; ++w) {
      made.job.program_of_worker.push_back(
          Pick(0, static_cast<int32_t>(made.job.programs.size()) - 1));
      made.job.compute_speeds.push_back(Chance(50) ? 1 : 0.7);
      made.options.start_offsets.push_back(Chance(70) ? Span{} : Time(9));
    }
    made.job.networks.emplace_back();
    if (!joins) AddMeetings(workers, size, made.job);
    for (const OpIndex op : joint_) {
      made.job.joint.ops.push_back(op);
      made.job.joint.lengths.push_back(Time(6));
    }
    made.job.joint.concurrent = concurrent_;
    if (Chance(30)) made.job.drawing = StepDrawing::kReplay;
    made.options.steps_per_worker = Pick(1, 4);
    made.options.seed = random_.Below(1000);
    return made;
  }

 private:
  int32_t Pick(int32_t least, int32_t most) {
    return least + static_cast<int32_t>(random_.Below(static_cast<uint64_t>(most - least) + 1));
  }
  bool Chance(int32_t percent) { return Pick(1, 100) <= percent; }
  Span Time(int32_t most) {
    return round_ ? Microseconds(Pick(0, most))
                  : Span{static_cast<int64_t>(random_.Below(static_cast<uint64_t>(most) * 2520))};
  }

  // Lanes and dependencies are those of all programs.
  void DrawShape(int32_t size, bool joins) {
    std::vector<LaneSpec> specs{{.role = LaneRole::kCompute, .index = 0},
                                {.role = LaneRole::kCompute, .index = 1},
                                {.role = LaneRole::kHost},
                                {.role = LaneRole::kHub}};
    if (joins) {
      for (int32_t slot = 0; slot < concurrent_; ++slot)
        specs.push_back({.role = LaneRole::kJoint, .index = slot});
    }
    specs.push_back({.role = LaneRole::kLink, .network = 0});
    lanes_ = Lanes(specs);
    for (OpIndex op = 0; op < size; ++op) {
      LaneIndex lane = joins && Chance(30) ? lanes_.first_joint() : Pick(0, lanes_.count() - 1);
      if (lanes_.IsJoint(lane)) {
        lane = lanes_.first_joint();
        joint_.push_back(op);
      }
      lane_.push_back(lane);
      for (OpIndex before = std::max(0, op - 3); before < op; ++before) {
        if (Chance(40)) dependencies_.push_back({.before = before, .after = op});
      }
    }
    lane_.push_back(0);  // a step takes time
  }

  std::shared_ptr<const Program> MakeProgram(int32_t steps) {
    ProgramDraft draft{
        .lanes = lanes_, .lane = lane_, .dependencies = dependencies_, .step_count = steps};
    for (size_t op = 0; op < lane_.size(); ++op) {
      draft.source.push_back(static_cast<int32_t>(op));
      draft.size_bytes.push_back(0);
      TransferWork work;
      if (lanes_.IsLink(lane_[op])) {
        work = {.first = Time(9) + Span{1}};
        if (Chance(30))
          work = {.first = Time(3) + Span{1}, .last = Time(9) + Span{1}, .services = 2};
      }
      draft.work.push_back(work);
    }
    for (int32_t step = 0; step < steps; ++step) {
      for (size_t op = 0; op + 1 < lane_.size(); ++op) {
        const bool has_none = lanes_.IsLink(lane_[op]) || lanes_.IsJoint(lane_[op]);
        draft.durations.push_back(has_none ? Span{} : Time(5));
      }
      draft.durations.push_back(Microseconds(1));
    }
    return std::make_shared<const Program>(Program::Make(std::move(draft), NeverStop).value());
  }

  void AddMeetings(int32_t workers, int32_t size, JobGraph& job) {
    std::vector<std::vector<int32_t>> groups(Chance(70) ? 1 : 2);
    for (int32_t w = 0; w < workers; ++w) groups[Index(w) % groups.size()].push_back(w);
    std::erase_if(groups, [](const std::vector<int32_t>& group) { return group.empty(); });
    job.groups = groups;
    const auto meet = [&](OpIndex op) {
      for (size_t group = 0; group < groups.size(); ++group)
        job.couplings.push_back({.op = op, .group = static_cast<GroupIndex>(group)});
    };
    if (Chance(50)) meet(kStepEnd);
    for (OpIndex op = 0; op < size; ++op) {
      if (Chance(40)) meet(op);
    }
    for (int32_t i = Chance(50) ? Pick(1, 3) : 0; i > 0; --i) {
      const OpIndex before = Pick(0, size - 2);
      job.peer_edges.push_back(
          {.before = before, .after = Pick(before + 1, size - 1), .worker_offset = Pick(-2, 2)});
    }
    AddGatherings(size, job);
  }

  // Of operations that meet nobody otherwise.
  void AddGatherings(int32_t size, JobGraph& job) {
    if (!joint_.empty() || Chance(50)) return;
    for (OpIndex after = 1; after < size; ++after) {
      const bool is_coupled =
          std::any_of(job.couplings.begin(), job.couplings.end(),
                      [&](const Coupling& coupling) { return coupling.op == after; });
      if (is_coupled || !Chance(40)) continue;
      Gathering gathering{.after = after, .of_last_step = Chance(50)};
      const OpIndex before = Pick(0, gathering.of_last_step ? size - 1 : after - 1);
      gathering.befores.push_back(before);
      job.gatherings.push_back(std::move(gathering));
    }
  }

  Random random_;
  bool round_;
  int32_t concurrent_ = 1;
  Lanes lanes_;
  std::vector<LaneIndex> lane_;
  std::vector<OpIndex> joint_;
  std::vector<ProgramDraft::Dependency> dependencies_;
};

}  // namespace

RandomJob MakeRandomJob(uint64_t seed) { return RandomJobMaker(seed).Make(); }

}  // namespace stepcast::testing
