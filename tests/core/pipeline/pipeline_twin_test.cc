// The simulation of pipelines against an obvious one: no events, everything is looked at again at
// every instant, in floating-point nanoseconds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/pipeline/simulation.h"

namespace stepcast::pipeline_twin_test {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kTiny = 1e-6;

double Ns(Span span) { return ToSeconds(span) * 1e9; }

// Replica, forward, stage that receives, micro-batch.
using Key = std::tuple<int, bool, int, int>;

class Twin {
 public:
  explicit Twin(const PipelineJob& job)
      : job_(job), p_(job.layout.devices), devices_(static_cast<size_t>(p_ * job.replicas)) {}

  std::vector<double> StepEnds() {
    for (int x = 0; x < Count(); ++x) Begin(x);
    while (true) {
      while (ChangeSomething()) {
      }
      const double wait = Rates();
      if (wait == kNever) return ends_;
      now_ += wait;
      for (Device& device : devices_) device.left -= wait;
      for (auto& [ends, pair] : pairs_)
        Pass(pair.queue.empty(), pair.latency, pair.bytes, pair.rate, wait);
      for (auto& [rank, ring] : rings_)
        Pass(ring.queue.empty(), ring.latency, ring.bytes, ring.rate, wait);
    }
  }

 private:
  enum class Doing { kNothing, kComputing, kTail, kGather, kEnded };
  struct Device {
    Doing doing = Doing::kNothing;
    double left = 0;
    size_t next = 0;
    int step = 0;
    int reductions = 0;
    std::vector<Key> sends;   // not arrived
    std::vector<Key> waited;  // of those, the ones it waits for now
    bool posted = false;
  };
  struct Queue {
    std::deque<Key> queue;
    double latency = 0;
    double bytes = 0;
    double rate = 0;
    bool begun = false;
  };
  struct RingQueue {
    std::deque<std::pair<int, size_t>> queue;
    double latency = 0;
    double bytes = 0;
    double rate = 0;
    bool begun = false;
  };

  const PipelineJob& job_;
  int p_;
  double now_ = 0;
  std::vector<Device> devices_;
  std::map<std::pair<int, int>, Queue> pairs_;
  std::map<int, RingQueue> rings_;
  std::map<Key, int> posted_, sent_, arrived_;
  std::map<std::pair<int, size_t>, int> ready_;
  std::vector<double> ends_;
  std::map<int, int> ended_;
  std::map<int, int> gathering_;  // replicas, by rank

  int Count() const { return static_cast<int>(devices_.size()); }
  Device& At(int x) { return devices_[static_cast<size_t>(x)]; }
  std::vector<PipelineWork> Order(int x) const { return OrderOf(job_.layout, x % p_); }
  bool Fused() const {
    return job_.receives == PipelineReceives::kFused || job_.receives == PipelineReceives::kPaired;
  }
  static void Pass(bool empty, double& latency, double& bytes, double rate, double wait) {
    if (empty) return;
    if (latency > kTiny)
      latency -= wait;
    else
      bytes -= rate * wait;
  }

  bool Input(int x, const PipelineWork& work, Key& key) const {
    const int stage = job_.layout.StageOf(x % p_, work.chunk);
    const bool forward = work.part == PipelinePart::kForward;
    key = {x / p_, forward, stage, work.micro_batch};
    if (work.part == PipelinePart::kBackwardWeight) return false;
    return forward ? stage > 0 : stage < job_.layout.stages() - 1;
  }
  bool Output(int x, const PipelineWork& work, Key& key) const {
    const int stage = job_.layout.StageOf(x % p_, work.chunk);
    const bool forward = work.part == PipelinePart::kForward;
    key = {x / p_, forward, forward ? stage + 1 : stage - 1, work.micro_batch};
    if (work.part == PipelinePart::kBackwardWeight) return false;
    return forward ? stage < job_.layout.stages() - 1 : stage > 0;
  }
  std::pair<int, int> EndsOf(const Key& key) const {
    const auto [replica, forward, stage, micro_batch] = key;
    return {replica * p_ + job_.layout.DeviceOf(forward ? stage - 1 : stage + 1),
            replica * p_ + job_.layout.DeviceOf(stage)};
  }
  double BytesOf(const Key& key) const {
    const auto [replica, forward, stage, micro_batch] = key;
    return static_cast<double>(job_.output_bytes[static_cast<size_t>(forward ? stage - 1 : stage)]);
  }

  void Begin(int x) {
    Device& device = At(x);
    device.doing = Doing::kNothing;
    device.next = 0;
    device.posted = job_.receives == PipelineReceives::kEager;
    device.reductions = 0;
    for (int chunk = 0; chunk < job_.layout.chunks; ++chunk)
      device.reductions += static_cast<int>(ReductionsOf(StageOf(x, chunk)).size());
    if (!device.posted) return;
    Key key;
    for (const PipelineWork& work : Order(x))
      if (Input(x, work, key)) Post(key);
  }
  int StageOf(int x, int chunk) const { return job_.layout.StageOf(x % p_, chunk); }
  const std::vector<StageReduction>& ReductionsOf(int stage) const {
    return job_.reductions[static_cast<size_t>(stage)];
  }
  const StageReduction& GatherOf(int rank) const { return job_.gathers[static_cast<size_t>(rank)]; }
  void Post(const Key& key) {
    ++posted_[key];
    Meet(key);
  }
  std::pair<int, int> WayOf(const std::pair<int, int>& ends) const {
    if (job_.links != PipelineLinks::kSerial) return ends;
    return {std::min(ends.first, ends.second), std::max(ends.first, ends.second)};
  }
  void Meet(const Key& key) {
    const auto ends = EndsOf(key);
    if (ends.first == ends.second || posted_[key] == 0 || sent_[key] == 0) return;
    --posted_[key];
    --sent_[key];
    pairs_[WayOf(ends)].queue.push_back(key);
  }

  // One change of state at this instant, if there is any.
  bool ChangeSomething() {
    for (auto& [ends, pair] : pairs_) {
      if (pair.queue.empty()) continue;
      if (!std::exchange(pair.begun, true)) {
        pair.latency = Ns(job_.latency);
        pair.bytes = BytesOf(pair.queue.front());
        return true;
      }
      if (pair.latency > kTiny || pair.bytes > kTiny) continue;
      const Key key = pair.queue.front();
      pair.queue.pop_front();
      pair.begun = false;
      ++arrived_[key];
      const int from = EndsOf(key).first;
      for (auto* list : {&At(from).sends, &At(from).waited})
        list->erase(std::remove(list->begin(), list->end(), key), list->end());
      return true;
    }
    for (auto& [rank, ring] : rings_) {
      if (ring.queue.empty()) continue;
      const auto [stage, i] = ring.queue.front();
      if (!std::exchange(ring.begun, true)) {
        const StageReduction& first = stage < 0 ? GatherOf(rank) : ReductionsOf(stage)[i];
        ring.latency = Ns(first.alone);
        ring.bytes = first.wire_bytes;
        return true;
      }
      if (ring.latency > kTiny || ring.bytes > kTiny) continue;
      ring.queue.pop_front();
      ring.begun = false;
      for (int x = rank; x < Count(); x += p_)
        stage < 0 ? (void)Ended(x) : (void)--At(x).reductions;
      return true;
    }
    for (int x = 0; x < Count(); ++x)
      if (Change(x)) return true;
    return false;
  }

  bool Change(int x) {
    Device& device = At(x);
    if (device.doing == Doing::kEnded || device.doing == Doing::kGather ||
        (device.doing != Doing::kNothing && device.left > kTiny))
      return false;
    if (device.doing == Doing::kComputing) return Computed(x);
    if (device.doing == Doing::kTail) {
      if (job_.gathers.empty() || GatherOf(x % p_).bytes == 0) return Ended(x);
      device.doing = Doing::kGather;
      if (++gathering_[x % p_] % job_.replicas == 0) rings_[x % p_].queue.emplace_back(-1, 0);
      return true;
    }
    if (!device.waited.empty()) return false;
    const auto order = Order(x);
    if (device.next == order.size()) {
      if (!device.sends.empty() || device.reductions > 0) return false;
      double scale = 0;
      for (int other = x % p_; other < Count(); other += p_)
        scale = std::max(scale, job_.scale[static_cast<size_t>(other)]);
      device.doing = Doing::kTail;
      device.left = Ns(job_.tails[static_cast<size_t>(x % p_)]) * scale;
      return true;
    }
    Key key;
    const PipelineWork& work = order[device.next];
    if (Input(x, work, key)) {
      if (!std::exchange(device.posted, true)) {
        Post(key);
        return true;
      }
      if (arrived_[key] == 0) return false;
      --arrived_[key];
    }
    device.doing = Doing::kComputing;
    const auto& times = job_.times[0][static_cast<size_t>(StageOf(x, work.chunk))];
    const Span span = work.part == PipelinePart::kForward          ? times.forward
                      : work.part == PipelinePart::kBackwardWeight ? times.backward_weight
                                                                   : times.backward;
    device.left = Ns(span) * job_.scale[static_cast<size_t>(x)];
    return true;
  }

  bool Computed(int x) {
    Device& device = At(x);
    device.doing = Doing::kNothing;
    const auto order = Order(x);
    const PipelineWork work = order[device.next++];
    device.posted = job_.receives == PipelineReceives::kEager;
    const auto is_last = [&](const PipelineWork& other) {
      return other.part != PipelinePart::kForward && other.part != PipelinePart::kBackwardInput;
    };
    int left_of_chunk = 0;
    int left = 0;
    for (size_t i = device.next; i < order.size(); ++i) {
      if (!is_last(order[i])) continue;
      ++left;
      if (order[i].chunk == work.chunk) ++left_of_chunk;
    }
    for (int chunk = 0; is_last(work) && chunk < job_.layout.chunks; ++chunk) {
      const bool now = job_.reduction == PipelineReduction::kAtEnd
                           ? left == 0
                           : left_of_chunk == 0 && chunk == work.chunk;
      const int stage = StageOf(x, chunk);
      for (size_t i = 0; now && i < ReductionsOf(stage).size(); ++i)
        if (++ready_[{stage, i}] % job_.replicas == 0) rings_[x % p_].queue.emplace_back(stage, i);
    }
    const bool more = device.next < order.size();
    Key key;
    if (Fused() && more) device.posted = true;
    const bool posts = Fused() && more && Input(x, order[device.next], key);
    const Key input = key;
    const bool sends_first = job_.receives == PipelineReceives::kFused;
    if (posts && !sends_first) Post(input);
    if (Output(x, work, key)) Send(device, key, Fused() && more);
    if (posts && sends_first) Post(input);
    return true;
  }
  void Send(Device& device, const Key& key, bool waited) {
    const auto ends = EndsOf(key);
    if (ends.first == ends.second) {
      ++arrived_[key];
      return;
    }
    ++sent_[key];
    device.sends.push_back(key);
    if (waited) device.waited.push_back(key);
    Meet(key);
  }

  bool Ended(int x) {
    Device& device = At(x);
    device.doing = Doing::kEnded;
    if (++ended_[device.step] == Count()) ends_.push_back(now_);
    const int step = ++device.step;
    if (job_.step_barrier && ended_[step - 1] < Count()) return true;
    for (int other = 0; step < job_.steps && other < Count(); ++other)
      if (other == x || job_.step_barrier) Begin(other);
    return true;
  }

  // Sets the rates of what is under way; the time until something ends.
  double Rates() {
    double wait = kNever;
    for (const Device& device : devices_)
      if (device.doing == Doing::kComputing || device.doing == Doing::kTail)
        wait = std::min(wait, device.left);
    struct Flow {
      double* rate;
      std::vector<int> links;
      bool settled = false;
    };
    std::vector<Flow> flows;
    for (auto& [ends, pair] : pairs_)
      if (!pair.queue.empty() && pair.latency <= kTiny)
        flows.push_back({&pair.rate, {ends.first * 2, ends.second * 2 + 1}});
    for (auto& [rank, ring] : rings_) {
      if (ring.queue.empty() || ring.latency > kTiny) continue;
      flows.push_back({&ring.rate, {}});
      for (int x = rank; x < Count(); x += p_)
        flows.back().links.insert(flows.back().links.end(), {x * 2, x * 2 + 1});
    }
    const double full = job_.bytes_per_second / 1e9;
    // All rates grow alike; who crosses a full link stops.
    for (Flow& flow : flows) *flow.rate = job_.links == PipelineLinks::kDevice ? 0 : full;
    while (job_.links == PipelineLinks::kDevice) {
      std::map<int, double> used;
      std::map<int, int> growing;
      for (const Flow& flow : flows)
        for (const int link : flow.links) {
          used[link] += *flow.rate;
          if (!flow.settled) ++growing[link];
        }
      double more = kNever;
      for (const auto& [link, count] : growing) more = std::min(more, (full - used[link]) / count);
      if (more == kNever) break;
      for (Flow& flow : flows)
        if (!flow.settled) *flow.rate += more;
      for (Flow& flow : flows)
        for (const int link : flow.links)
          if (!flow.settled && growing[link] > 0 &&
              (full - used[link]) / growing[link] <= more * (1 + 1e-9))
            flow.settled = true;
    }
    for (const auto& [ends, pair] : pairs_)
      if (!pair.queue.empty())
        wait = std::min(wait, pair.latency > kTiny ? pair.latency : pair.bytes / pair.rate);
    for (const auto& [rank, ring] : rings_)
      if (!ring.queue.empty())
        wait = std::min(wait, ring.latency > kTiny ? ring.latency : ring.bytes / ring.rate);
    return wait;
  }
};

PipelineJob RandomJob(Random& random) {
  PipelineJob job;
  job.layout.schedule = static_cast<PipelineSchedule>(random.Below(6));
  job.layout.devices = static_cast<int32_t>(1 + random.Below(4));
  const bool is_v = job.layout.schedule == PipelineSchedule::kZeroBubbleV;
  if (HasChunks(job.layout.schedule))
    job.layout.chunks = is_v ? 2 : static_cast<int32_t>(1 + random.Below(3));
  job.layout.micro_batches = job.layout.devices * static_cast<int32_t>(1 + random.Below(3));
  job.layout.variant = static_cast<PipelineVariant>(random.Below(2));
  job.replicas = static_cast<int32_t>(1 + random.Below(3));
  const auto times = [&] { return Nanoseconds(static_cast<int64_t>(random.Below(9'999'991))); };
  job.times.emplace_back();
  job.links = static_cast<PipelineLinks>(random.Below(3));
  job.reduction = static_cast<PipelineReduction>(random.Below(2));
  for (int32_t stage = 0; stage < job.layout.stages(); ++stage) {
    job.times[0].push_back({.forward = times(),
                            .backward = times(),
                            .backward_weight = times(),
                            .last_backward_extra = {}});
    job.output_bytes.push_back(static_cast<int64_t>(1 + random.Below(5'000'000)));
    job.reductions.emplace_back();
    for (size_t i = random.Below(3); i > 0; --i) {
      const bool shares = job.links == PipelineLinks::kDevice && random.Below(2) == 0;
      job.reductions.back().push_back(
          {.before_end = {},
           .alone = times(),
           .wire_bytes = shares ? 1 + static_cast<double>(random.Below(9'000'000)) : 0});
    }
  }
  const bool gathers = random.Below(2) == 0;
  for (int32_t device = 0; device < job.layout.devices; ++device) {
    job.tails.push_back(times());
    if (gathers)
      job.gathers.push_back(
          {.before_end = {},
           .alone = times(),
           .wire_bytes = job.links == PipelineLinks::kDevice ? random.Unit() * 9e6 : 0,
           .bytes = static_cast<int64_t>(random.Below(3))});
  }
  for (int32_t x = 0; x < job.layout.devices * job.replicas; ++x)
    job.scale.push_back(1 + random.Unit());
  // Without chunks only, as both sides may else wait for the other's receive.
  job.receives = static_cast<PipelineReceives>(random.Below(job.layout.chunks == 1 ? 4 : 2));
  job.bytes_per_second = 1e9;
  job.latency = Nanoseconds(static_cast<int64_t>(random.Below(1'000'003)));
  job.step_barrier = random.Below(2) == 0;
  job.steps = static_cast<int32_t>(1 + random.Below(3));
  return job;
}

TEST(PipelineTwinTest, RandomJobsEndWhenTheObviousSimulationSays) {
  int64_t compared = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    Random random({seed});
    const PipelineJob job = RandomJob(random);
    ASSERT_TRUE(LayoutFaults(job.layout).empty());
    const absl::StatusOr<PipelineRun> run = SimulatePipeline(job, NeverStop);
    const std::vector<double> ends = Twin(job).StepEnds();
    ASSERT_EQ(run.ok(), ends.size() == static_cast<size_t>(job.steps)) << run.status();
    if (!run.ok()) continue;
    for (size_t step = 0; step < ends.size(); ++step, ++compared)
      EXPECT_NEAR(ToSeconds(run->step_ends[step] - Instant{}) * 1e9, ends[step], 1) << step;
  }
  EXPECT_GT(compared, 600);
}

}  // namespace
}  // namespace stepcast::pipeline_twin_test
