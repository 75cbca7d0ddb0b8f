// Logs and tables of benchmarks of collectives: the first byte says which kind and how many workers
// are asked for.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"

#include "core/importing/benchmarks/collective_benchmark.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_mutator.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/text_mutator.h"

namespace stepcast::fuzz {

namespace {

constexpr AllReduceLimits kLimits{.max_measured = 64};

constexpr std::array kKinds = {Collective::kUnspecified, Collective::kAllReduce,
                               Collective::kReduceScatter, Collective::kAllGather,
                               Collective::kBroadcast};

constexpr std::array kNames = {"", "ALL_REDUCE", "REDUCE_SCATTER", "ALL_GATHER", "BROADCAST"};

const char* NameOf(Collective kind) {
  return kNames[static_cast<size_t>(std::find(kKinds.begin(), kKinds.end(), kind) -
                                    kKinds.begin())];
}

constexpr char kNcclTests[] =
    "# Collective test starting: all_reduce_perf\n"
    "# nThread 1 nGpus 2 minBytes 1048576 maxBytes 4194304 step: 4(factor)\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid    100 on  node0 device  0 [0000:1b:00] GPU\n"
    "#  Rank  1 Group  0 Pid    101 on  node0 device  1 [0000:1b:00] GPU\n"
    "#                                    out-of-place                       in-place\n"
    "#       size         count    type   redop    root     time   algbw   busbw  #wrong     time "
    "  algbw   busbw  #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us) "
    " (GB/s)  (GB/s)\n"
    "node0:100:100 [0] NCCL INFO Connected all rings, nranks 2\n"
    "     1048576        262144   float     sum      -1   60.49   17.34   17.34       0   60.49   "
    "17.34   17.34       0\n"
    "     4194304       1048576   float     sum      -1   91.94   45.62   45.62       0   91.94   "
    "45.62   45.62       0\n"
    "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 31.5\n";
constexpr char kOsu[] =
    "mpirun -np 4 osu_allreduce\n# OSU MPI Allreduce Latency Test v7.0\n"
    "# Size          Avg Latency(us)\n1024   10.5\n2048   12.25\n65536  104.1\n";
constexpr char kImb[] =
    "# Benchmarking Allgather\n# #processes = 4\n"
    "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]\n"
    "1024 1000 9.1 11.2 10.1\n4096 1000 19.1 21.2 20.1\n";
constexpr char kNcclJson[] =
    R"({"args": ["./build/all_reduce_perf", "-g", "4"], "config": {"ngpus": 4, "nthreads": 1,
        "devices": [{"rank": 0, "group": 0}, {"rank": 4, "group": 0}]},
        "results": [{"size": 1048576, "type": "float", "redop": "sum",
                     "in_place": {"time": 100, "alg_bw": 10.48576, "bus_bw": 18.35008, "nwrong": 0}}],
        "out_of_bounds": {"count": 0, "okay": "true"}})";
constexpr char kRcclLines[] =
    R"({"name": "AllReduce", "gpus": 4, "size": 1048576, "type": "float", "redop": "sum", "inPlace": 1, "time": 60.48576, "algBw": 17.33591509803299, "busBw": 26.003872647049487, "#wrong": "0"}
{"name": "AllReduce", "gpus": 4, "size": 4194304, "type": "float", "redop": "sum", "inPlace": 1, "time": 91.94304, "algBw": 45.618504674198284, "busBw": 68.42775701129743, "#wrong": "0"}
)";
constexpr char kOwnTable[] =
    "kind,workers,size_bytes,seconds\nall_reduce,2,1024,0.0001\nALL_GATHER,4,4096,0.0002\n";
constexpr char kOwnJson[] =
    R"({"measured": [{"kind": "ALL_REDUCE", "workers": 2, "size_bytes": "1024", "seconds": 1e-4}]})";

auto OrderOf(const MeasuredCollective& point) {
  return std::tuple(point.kind, point.workers, point.size_bytes);
}

// The table of our own.
std::string Written(const std::vector<MeasuredCollective>& points) {
  std::string text = "kind,workers,size_bytes,seconds\n";
  for (const MeasuredCollective& point : points)
    absl::StrAppendFormat(&text, "%s,%d,%d,%.17g\n", NameOf(point.kind), point.workers,
                          point.size_bytes, point.seconds);
  return text;
}

class CollectiveBenchmarkTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override {
    std::vector<std::string> seeds;
    for (const char* const text :
         {kNcclTests, kOsu, kImb, kNcclJson, kRcclLines, kOwnTable, kOwnJson, kNcclTests})
      seeds.push_back(std::string(1, '\0') + text);
    seeds.back() += kNcclTests;
    return seeds;
  }

  bool Run(std::string_view input) override {
    if (input.empty()) return false;
    const auto asked = static_cast<unsigned char>(input[0]);
    CollectiveBenchmarkOptions options{.kind = kKinds[asked % kKinds.size()]};
    if (asked >= 128) options.workers = 2 + asked % 8;
    const auto points = ReadCollectiveBenchmark(input.substr(1), options, kLimits);
    if (!points.ok()) {
      DemandSoundRefusal(points.status());
      return false;
    }
    Demand(!points->empty() && static_cast<int64_t>(points->size()) <= kLimits.max_measured,
           "points within the limit");
    for (size_t i = 0; i < points->size(); ++i) {
      const MeasuredCollective& point = (*points)[i];
      Demand(point.workers >= 2 && point.size_bytes >= 1 && point.seconds > 0 &&
                 std::isfinite(point.seconds),
             "a point is in its bounds:", Written({point}));
      Demand(options.kind == Collective::kUnspecified || point.kind == options.kind,
             "the kind asked for alone is read:", Written({point}));
      Demand(i == 0 || OrderOf(points->at(i - 1)) < OrderOf(point),
             "points are in order, once each", Written(*points));
    }
    const auto again = ReadCollectiveBenchmark(Written(*points), {}, kLimits);
    Demand(again.ok() && *again == *points, "points that are written out are the same:",
           Written(*points) + again.status().ToString());
    return true;
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    if (input.empty()) return mutation.bytes(std::move(input));
    const char asked =
        mutation.random.Below(8) == 0 ? static_cast<char>(mutation.random.Below(256)) : input[0];
    std::string text = input.substr(1);
    const bool is_json = !text.empty() && (text[0] == '{' || text[0] == '[');
    text = is_json && mutation.random.Below(2) == 0 ? MutateJson(std::move(text), mutation)
                                                    : MutateText(std::move(text), mutation);
    return asked + text;
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() {
  return std::make_unique<CollectiveBenchmarkTarget>();
}

}  // namespace stepcast::fuzz
