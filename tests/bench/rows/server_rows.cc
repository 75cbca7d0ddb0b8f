// Rows of what the server makes of the engine: server.cached_*, server.goodput_at_twice,
// server.memory_at_twice.
#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "tests/bench/rows/rows.h"
#include "tests/bench/server_load.h"
#include "tests/bench/server_process.h"

namespace stepcast::bench {

namespace {

using client::ClosedLoop;
using client::LoadPlan;
using client::LoadResult;
using client::OpenLoop;
using std::chrono::milliseconds;
using std::chrono::seconds;

double Nanoseconds(std::chrono::nanoseconds length) { return static_cast<double>(length.count()); }

// One slice of cached calls or of empty ones, 64 at once.
class Slices {
 public:
  // The time that passes, a call that counts.
  Cost CachedTime() { return Time(cached_); }
  Cost EmptyTime() { return Time(empty_); }
  // Computation by the server, a call of all.
  Cost CachedCpu() { return Cpu(cached_); }
  Cost EmptyCpu() { return Cpu(empty_); }

 private:
  static constexpr std::chrono::nanoseconds kSlice = seconds(1);

  static LoadPlan Plan() {
    return {.loop = ClosedLoop{64}, .warmup = milliseconds(200), .duration = kSlice};
  }

  static Cost Time(ServerLoad& load) {
    return {.cpu_ns = Nanoseconds(kSlice), .operations = load.RunAnswered(Plan()).latency.count()};
  }

  Cost Cpu(ServerLoad& load) {
    const double begin = server_.CpuNs();
    const LoadResult result = load.RunAnswered(Plan());
    return {.cpu_ns = server_.CpuNs() - begin, .operations = client::Sum(result.all_codes)};
  }

  ServerProcess server_;
  ServerLoad cached_{server_.address(), CachedQuestion(StoreRecordedJob(server_.address()))};
  ServerLoad empty_{server_.address(), EmptyCall()};
};

Outcome RunCachedOverEmpty(int rounds) {
  Slices slices;
  return {.rounds = TakeTurns(
              rounds, [&] { return slices.CachedTime(); }, [&] { return slices.EmptyTime(); },
              TheirsOverOurs),
          .note = "time that passes a call, client included"};
}

Outcome RunCachedExtraCpu(int rounds) {
  Slices slices;
  const auto microseconds_more = [](double ours, double theirs) { return (ours - theirs) / 1000; };
  return {.rounds = TakeTurns(
              rounds, [&] { return slices.CachedCpu(); }, [&] { return slices.EmptyCpu(); },
              microseconds_more),
          .note = "the ratio is a difference in microseconds"};
}

// Latencies of cached calls, with as many simulations beside them as keep all processors busy, or
// without.
class BesideSimulations {
 public:
  // In nanoseconds.
  Cost BusyP99() {
    std::future<LoadResult> simulations = std::async(std::launch::async, [this] {
      return simulated_.RunAnswered({.loop = ClosedLoop{8}, .duration = kWarmup + kSlice});
    });
    const Cost cost = IdleP99();
    simulations.get();
    return cost;
  }
  Cost IdleP99() {
    const LoadResult result =
        cached_.RunAnswered({.loop = OpenLoop{200}, .warmup = kWarmup, .duration = kSlice});
    return {.cpu_ns = Nanoseconds(result.latency.Percentile(0.99)), .operations = 1};
  }

 private:
  static constexpr std::chrono::nanoseconds kWarmup = milliseconds(500);
  static constexpr std::chrono::nanoseconds kSlice = seconds(3);

  ServerProcess server_;
  std::string profile_ = StoreRecordedJob(server_.address());
  ServerLoad cached_{server_.address(), CachedQuestion(profile_)};
  ServerLoad simulated_{server_.address(), UncachedQuestions(profile_, /*steps=*/1000)};
};

Outcome RunCachedP99(int rounds) {
  BesideSimulations load;
  return {.rounds = TakeTurns(
              rounds, [&] { return load.BusyP99(); }, [&] { return load.IdleP99(); },
              [](double ours, double /*theirs*/) { return ours / 1e6; }),
          .note = "the ratio is milliseconds, at 200 calls a second; theirs: without simulations"};
}

// Load of twice the calls that the server can answer.
struct Overload {
  std::vector<Round> goodput;  // nanoseconds a good call
  std::vector<Round> memory;   // bytes
};

// Callers wait for so many times what a call takes at the peak: not as long as a full queue.
constexpr int kPatience = 10;

Overload MeasureOverload(int rounds) {
  // Memory for answers is not memory for calls.
  const ServerProcess server({"--max-answer-cache-bytes", "0", "--max-run-cache-bytes", "0"});
  const client::LoadQuestions questions =
      UncachedQuestions(StoreRecordedJob(server.address()), /*steps=*/200);
  ServerLoad sustained(server.address(), questions);
  Overload overload;
  for (int round = 0; round < rounds; ++round) {
    // As many at once as keep its threads busy and hardly wait.
    const LoadResult peak = sustained.RunAnswered(
        {.loop = ClosedLoop{4}, .warmup = milliseconds(500), .duration = seconds(3)});
    const std::chrono::nanoseconds deadline = kPatience * peak.latency.Mean();
    ServerLoad twice(server.address(), questions, deadline);
    const auto before = static_cast<double>(server.ResidentBytes());
    server.ForgetPeak();
    const LoadPlan plan{.loop = OpenLoop{2 * peak.Goodput()},
                        .warmup = seconds(2),
                        .duration = seconds(4),
                        .deadline = deadline};
    const double goodput = twice.Run(plan).Goodput();
    const auto most = static_cast<double>(server.PeakResidentBytes());
    overload.goodput.push_back({.ours = 1e9 / std::max(goodput, 1e-3),
                                .theirs = 1e9 / peak.Goodput(),
                                .value = goodput / peak.Goodput()});
    overload.memory.push_back({.ours = most, .theirs = before, .value = most / before});
  }
  return overload;
}

}  // namespace

void AddServerRows(Registry& registry) {
  registry.Add({.name = "server.cached_over_empty",
                .sides = "empty / cached calls, 64 at once",
                .goal = AtLeast(0.8, 0.92),
                .run = RunCachedOverEmpty});
  registry.Add({.name = "server.cached_extra_cpu",
                .sides = "server's CPU of cached - empty calls, 64 at once",
                .goal = AtMost(2.5, 1),
                .run = RunCachedExtraCpu});
  registry.Add({.name = "server.cached_p99_while_simulating",
                .sides = "p99 of cached calls beside simulations",
                .goal = AtMost(5, 2),
                .rounds = 5,
                .run = RunCachedP99});
  // Both rows are of one measurement, made by whichever is asked for first.
  const auto measured = std::make_shared<Overload>();
  const auto measure = [measured](int rounds) -> const Overload& {
    if (measured->goodput.empty()) *measured = MeasureOverload(rounds);
    return *measured;
  };
  registry.Add(
      {.name = "server.goodput_at_twice",
       .sides = "goodput at twice the peak's rate / peak, uncached",
       .goal = AtLeast(0.9, 0.97),
       .rounds = 3,
       .run = [measure](int rounds) { return Outcome{.rounds = measure(rounds).goodput}; }});
  registry.Add({.name = "server.memory_at_twice",
                .sides = "resident bytes at most / before, the same",
                .goal = AtMost(1.1, 1.05),
                .rounds = 3,
                .run = [measure](int rounds) {
                  return Outcome{.rounds = measure(rounds).memory, .note = "both sides are bytes"};
                }});
}

}  // namespace stepcast::bench
