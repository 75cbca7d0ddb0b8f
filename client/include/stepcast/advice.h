// A question of how many workers a job should get, as schedulers ask it, and its answer.
//
//   absl::StatusOr<AdviceQuestion> question =
//       ParseAdviceText("profile=resnet50;objective=efficiency=0.8");
//
// Counts: of workers, both ends of a range included. Throughput: examples per second of all workers
// together. Cost of all functions: linear in the text or the curve; nothing is asked.
// Failure: INVALID_ARGUMENT, reason ADVICE_INVALID, naming the field and, shortened and escaped,
// its value. Texts are bounded, so that anybody may have written them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "stepcast/v1/recommendation.pb.h"
#include "stepcast/v1/scenario.pb.h"

namespace stepcast::client {

// The aim of a choice among the counts of a range.
enum class AdviceObjective {
  kKnee,        // the most throughput times efficiency: where more workers stop paying
  kThroughput,  // the most throughput
  kEfficiency,  // the most throughput at a scaling efficiency of at least min_efficiency
  kDeadline,    // the examples within `deadline`, at the least cost; without prices, of the least
                // worker hours
  kCost,        // the least cost of the examples, or of one; needs a price above 0
};

// The nouns that a summary counts in.
enum class AdviceUnit { kWorkers, kNodes };

struct AdviceQuestion {
  std::string profile;  // name of a stored profile, with or without "profiles/"
  int32_t min_workers = 1;
  int32_t max_workers = 16;  // at most 256 more than min_workers
  // Workers of a node, for jobs that fill nodes: both ends are multiples of it. In collectives they
  // share the node's links; with parameter servers each has a link of its own, as recorded.
  int32_t workers_per_node = 1;
  // Bandwidth of a link inside a node; with workers_per_node above 1 the server refuses to guess
  // it. 0: not given.
  double intra_node_bandwidth_bytes_per_second = 0;
  AdviceUnit unit = AdviceUnit::kWorkers;
  AdviceObjective objective = AdviceObjective::kKnee;
  double min_efficiency = 0;                         // of kEfficiency; above 0, at most 1
  std::optional<std::chrono::nanoseconds> deadline;  // of kDeadline
  std::optional<int64_t> examples;                   // left to train on; kDeadline needs it
  v1::Prices prices;
  v1::Scenario scenario;  // everything but the number of workers
};

// A question from a text of fields KEY=VALUE with `;` between them, in any order, each once, with
// `profile` among them; at most 1,024 bytes.
//
//   profile=NAME       objective=knee (default) | throughput | efficiency=0.8 | deadline=6h | cost
//   examples=1000000   min=2   max=16   workers-per-node=4   intra-bandwidth=300GB/s
//   worker-hour=2.5    node-hour=20
//
// A rate is of B/s or bit/s with k, M, G or T before it; a bare number of it is of bytes per
// second. Fields that need each other (a deadline examples, cost a price, min at most max) are
// checked by CheckAdviceQuestion, so that a caller can add what the text leaves out.
absl::StatusOr<AdviceQuestion> ParseAdviceText(std::string_view text);

// One field of such a text, for callers that have them apart. `value` has at most 1,024 bytes.
absl::Status SetAdviceField(std::string_view key, std::string_view value, AdviceQuestion& question);

// The first thing that is wrong with a question as a whole.
absl::Status CheckAdviceQuestion(const AdviceQuestion& question);

// True of the server's refusal to guess the links inside nodes, which the question does not give.
bool LacksIntraBandwidth(const absl::Status& refusal);

// One number of workers that was simulated.
struct AdvicePoint {
  int32_t workers = 0;
  double examples_per_second = 0;
  double lower = 0;  // of the 95 % interval of the mean
  double upper = 0;
  double efficiency = 0;  // throughput over that of as many times one worker
  bool keeps_constraints = true;
};

// An answer.
struct Advice {
  AdvicePoint chosen;
  // The simulated counts of the range, ascending, `chosen` included. Every count of up to 8 that
  // are allowed; of more, those that could win.
  std::vector<AdvicePoint> curve;
  // The count with the highest product of throughput and efficiency, whatever the objective.
  int32_t knee = 0;
  // The smallest count worth starting, for schedulers that may start with fewer: it keeps the
  // constraints of the objective, and has at least half of the chosen count's throughput, so that
  // the job takes at most twice as long. Between points of `curve` by the straight line, which a
  // curve that bends down does not fall below. Not below the curve's first, at most
  // chosen.workers.
  int32_t least_workers = 0;
  std::optional<double> cost;                        // of the examples, where they have a price
  std::optional<std::chrono::nanoseconds> duration;  // of the examples
  // True where nobody should be told: the chosen count's throughput is no steady state, falls into
  // two regimes, or is known to no better than 5 %.
  bool low_confidence = false;
  std::vector<std::string> warnings;  // of the server; one sentence each
  // At most 120 printable ASCII characters, the chosen count and the largest of the range:
  // "8 nodes 3120/s 84% eff; 16 nodes 3300/s 45%".
  std::string summary;
  std::string reason;  // the server's, one sentence; at most 500 printable ASCII characters
};

// "8 nodes 3120/s 84%", of a point: for sentences of callers.
std::string AdvicePointText(const AdvicePoint& point, const AdviceQuestion& question);

// A text of others, fit to be shown in a line: every byte that is no printable ASCII is `?`, and
// what is longer than `max_bytes` ends with "...".
std::string PrintableText(std::string_view text, size_t max_bytes);

}  // namespace stepcast::client
