#include "core/predict/run_summary.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/step_time_histogram.h"
#include "core/engine/simulation.h"

namespace stepcast {

namespace {

constexpr size_t kBatchOfMser = 5;
constexpr size_t kMinValues = 50;
// Squared errors that differ by less, as a share of the squared mean, differ by the rounding of
// doubles.
constexpr double kRounding = 1e-18;
// Batches of fewer marks would hold little but the order of completions at one instant.
constexpr size_t kMinMarksPerBatch = 2;

double SecondsBetween(const std::vector<Instant>& marks, size_t from, size_t to) {
  return ToSeconds(marks[to] - marks[from]);
}

// Error of the throughput from mark `first` on. 0 where there are too few marks.
double StandardErrorFrom(const CompletionSeries& series, size_t first) {
  const std::vector<Instant>& marks = series.marks();
  if (marks.size() <= first) return 0;
  const size_t per_batch = (marks.size() - 1 - first) / kBatches;
  if (per_batch < kMinMarksPerBatch) return 0;
  const double mean = SecondsBetween(marks, first, first + kBatches * per_batch) / kBatches;
  double squares = 0;
  for (size_t i = 0; i < kBatches; ++i) {
    const double off =
        SecondsBetween(marks, first + i * per_batch, first + (i + 1) * per_batch) - mean;
    squares += off * off;
  }
  const double rate = static_cast<double>(per_batch) * static_cast<double>(series.stride()) / mean;
  // A rate is a number over a time: its relative error is the time's, to first order.
  return rate * std::sqrt(squares / (kBatches - 1) / kBatches) / mean;
}

}  // namespace

size_t TruncationOf(const std::vector<double>& values) {
  if (values.size() < kMinValues) return 0;
  std::vector<double> means;
  for (size_t i = 0; i + kBatchOfMser <= values.size(); i += kBatchOfMser) {
    double sum = 0;
    for (size_t k = 0; k < kBatchOfMser; ++k) sum += values[i + k];
    means.push_back(sum / kBatchOfMser);
  }
  const double center =
      std::accumulate(means.begin(), means.end(), 0.0) / static_cast<double>(means.size());
  // From the back, so that the sums over what remains grow by one value at a time.
  double sum = 0;
  double squares = 0;
  double least = std::numeric_limits<double>::infinity();
  size_t dropped = 0;
  for (size_t d = means.size(); d-- > 0;) {
    sum += means[d] - center;
    squares += (means[d] - center) * (means[d] - center);
    if (2 * d > means.size()) continue;
    const auto left = static_cast<double>(means.size() - d);
    const double error = (squares - sum * sum / left) / (left * left);
    if (error > least + kRounding * center * center) continue;
    least = std::min(least, error);
    dropped = d;
  }
  return dropped * kBatchOfMser;
}

RunEstimate EstimateOf(const RunResult& result, bool automatic_warmup) {
  const std::vector<Instant>& marks = result.completions.marks();
  RunEstimate estimate{.steps_per_second = result.steps_per_second,
                       .warmup_seconds = ToSeconds(result.counted_from - Instant{})};
  size_t first = static_cast<size_t>(
      std::lower_bound(marks.begin(), marks.end(), result.counted_from) - marks.begin());
  if (automatic_warmup) {
    std::vector<double> times;
    for (size_t i = 1; i < marks.size(); ++i) times.push_back(SecondsBetween(marks, i - 1, i));
    const size_t truncated = TruncationOf(times);
    // Completions at one instant count together, or a run in which all workers end together would
    // be cut in the middle of an instant.
    if (truncated > first && marks[truncated] < marks.back()) {
      first = static_cast<size_t>(std::upper_bound(marks.begin(), marks.end(), marks[truncated]) -
                                  marks.begin()) -
              1;
      estimate.warmup_seconds = ToSeconds(marks[first] - Instant{});
      const double completions = static_cast<double>(marks.size() - 1 - first) *
                                 static_cast<double>(result.completions.stride());
      estimate.steps_per_second = completions / SecondsBetween(marks, first, marks.size() - 1);
    }
  }
  estimate.standard_error = StandardErrorFrom(result.completions, first);
  return estimate;
}

CompletionSeries Thinned(const CompletionSeries& series) {
  const size_t together = std::max<size_t>(1, series.marks().size() / kMaxSeriesPoints);
  CompletionSeries thinned(static_cast<int64_t>(together) * series.stride());
  for (const Instant mark : series.marks()) thinned.Add(mark, series.stride());
  return thinned;
}

std::vector<ThroughputPoint> SeriesOf(const CompletionSeries& series, double examples,
                                      int32_t points) {
  const std::vector<Instant>& marks = series.marks();
  std::vector<ThroughputPoint> told;
  if (marks.empty() || marks.back() == Instant{}) return told;
  const int64_t windows = std::min<int64_t>(points, static_cast<int64_t>(marks.size()));
  const double length = ToSeconds(marks.back() - Instant{}) / static_cast<double>(windows);
  const auto stride = static_cast<double>(series.stride());
  double before = 0;  // steps
  size_t next = 0;    // mark
  for (int64_t window = 1; window <= windows; ++window) {
    const double end = length * static_cast<double>(window);
    while (next + 1 < marks.size() && ToSeconds(marks[next] - Instant{}) < end) ++next;
    const double from = next == 0 ? 0 : ToSeconds(marks[next - 1] - Instant{});
    const double span = ToSeconds(marks[next] - Instant{}) - from;
    const double part = span > 0 ? std::min(1.0, (end - from) / span) : 1;
    const double steps = window == windows ? static_cast<double>(marks.size()) * stride
                                           : stride * (static_cast<double>(next) + part);
    told.push_back(
        {.end_seconds = end, .examples_per_second = (steps - before) * examples / length});
    before = steps;
  }
  return told;
}

void Sensitivity::AnswerToWider(double change, double wider, double most) {
  to_deviation = std::clamp(change / std::log(wider), -most, 0.0);
  leap = std::min(change - to_deviation * std::log(wider), 0.0);
}

size_t RunSummary::bytes() const {
  return sizeof(RunSummary) + step_times.heap_bytes() + utilization.capacity() * sizeof(double) +
         joint_times.capacity() * sizeof(JointTimes) +
         completions.marks().capacity() * sizeof(Instant);
}

RunSummary SummaryOf(const RunResult& result, bool automatic_warmup) {
  return {.estimate = EstimateOf(result, automatic_warmup),
          .drift = result.second_half_steps_per_second - result.first_half_steps_per_second,
          .late_steps_per_second = result.second_half_steps_per_second,
          .step_times = result.step_times,
          .utilization = result.utilization,
          .exposed_communication_fraction = result.exposed_communication_fraction,
          .waiting_fraction = result.waiting_fraction,
          .straggler_fraction = result.straggler_fraction,
          .joint_times = result.joint_times,
          .completions = Thinned(result.completions),
          .simulated_operations = result.simulated_operations,
          .path = result.path};
}

namespace {

// The two directions have the same calls, so that one list of fields serves both.
class Writer {
 public:
  static constexpr bool kReads = false;

  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void operator()(const T& value) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
  }
  template <typename T>
  void operator()(const std::vector<T>& values) {
    (*this)(static_cast<uint64_t>(values.size()));
    for (const T& value : values) (*this)(value);
  }
  std::string Take() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  static constexpr bool kReads = true;

  explicit Reader(std::string_view bytes) : left_(bytes) {}

  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void operator()(T& value) {
    ok_ = ok_ && left_.size() >= sizeof(T);
    if (!ok_) return;
    std::memcpy(&value, left_.data(), sizeof(T));
    left_.remove_prefix(sizeof(T));
  }
  template <typename T>
  void operator()(std::vector<T>& values) {
    uint64_t size = 0;
    (*this)(size);
    ok_ = ok_ && size <= left_.size() / sizeof(T);
    if (!ok_) return;
    values.resize(size);
    for (T& value : values) (*this)(value);
  }
  // The bytes are none that a Writer wrote.
  void Refuse() { ok_ = false; }
  bool IsDone() const { return ok_ && left_.empty(); }

 private:
  std::string_view left_;
  bool ok_ = true;
};

template <typename Bytes>
void Fields(Bytes& bytes, StepTimeHistogram& histogram) {
  StepTimeHistogram::Counts counts;
  if constexpr (!Bytes::kReads) counts = histogram.counts();
  bytes(counts.of_buckets);
  bytes(counts.sum_ticks);
  if constexpr (Bytes::kReads) {
    if (!StepTimeHistogram::AreCounts(counts)) return bytes.Refuse();
    histogram = StepTimeHistogram(counts);
  }
}

template <typename Bytes>
void Fields(Bytes& bytes, CompletionSeries& completions) {
  int64_t stride = completions.stride();
  // A copy that is read into. NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  std::vector<Instant> marks = completions.marks();
  bytes(stride);
  bytes(marks);
  if constexpr (Bytes::kReads) {
    if (stride < 1 || marks.size() >= CompletionSeries::kMaxMarks) return bytes.Refuse();
    completions = CompletionSeries(stride);
    for (const Instant mark : marks) completions.Add(mark, stride);
  }
}

template <typename Bytes>
void Fields(Bytes& bytes, RunSummary& run) {
  auto& [estimate, drift, late, step_times, opening, half_rate, first_come, sensitivity,
         utilization, exposed, waiting, straggler, joint_times, completions, operations, path] =
      run;
  bytes(estimate);
  bytes(drift);
  bytes(late);
  Fields(bytes, step_times);
  bytes(opening);
  bytes(half_rate);
  bytes(first_come);
  bytes(sensitivity);
  bytes(utilization);
  bytes(exposed);
  bytes(waiting);
  bytes(straggler);
  bytes(joint_times);
  Fields(bytes, completions);
  bytes(operations);
  bytes(path);
  if constexpr (Bytes::kReads) {
    if (path > EnginePath::kMemoised) bytes.Refuse();
  }
}

}  // namespace

std::string BytesOf(const RunSummary& run) {
  RunSummary copy = run;
  Writer bytes;
  Fields(bytes, copy);
  return std::move(bytes).Take();
}

std::shared_ptr<const RunSummary> RunOfBytes(std::string_view bytes) {
  auto run = std::make_shared<RunSummary>();
  Reader reader(bytes);
  Fields(reader, *run);
  if (!reader.IsDone()) return nullptr;
  return run;
}

}  // namespace stepcast
