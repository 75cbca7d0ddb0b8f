#include "core/predict/run_bytes.h"

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/step_time_histogram.h"
#include "core/engine/simulation.h"

namespace stepcast {

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
