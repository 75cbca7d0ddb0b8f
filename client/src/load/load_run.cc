#include "client/src/load/load_run.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace stepcast::client {

std::chrono::nanoseconds SteadyLoadClock::Now() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

void SteadyLoadClock::SleepUntil(std::chrono::nanoseconds instant) {
  std::this_thread::sleep_until(std::chrono::steady_clock::time_point(instant));
}

namespace {

using std::chrono::nanoseconds;

// Values below 2^kBits have a bucket each; every later power of two is split into as many.
constexpr int kBits = 8;
constexpr uint64_t kFirst = uint64_t{1} << kBits;

size_t BucketOf(uint64_t value) {
  if (value < kFirst) return static_cast<size_t>(value);
  const int shift = static_cast<int>(std::bit_width(value)) - kBits - 1;
  return static_cast<size_t>((static_cast<uint64_t>(shift) << kBits) + (value >> shift));
}

// The greatest value in it.
uint64_t TopOf(size_t bucket) {
  if (bucket < kFirst) return bucket;
  const int shift = static_cast<int>(bucket >> kBits) - 1;
  const uint64_t leading = bucket - (static_cast<uint64_t>(shift) << kBits);
  return ((leading + 1) << shift) - 1;
}

uint64_t Clamped(nanoseconds latency) {
  return static_cast<uint64_t>(
      std::clamp(latency, nanoseconds(0), nanoseconds(LatencyHistogram::kLongest)).count());
}

}  // namespace

LatencyHistogram::LatencyHistogram() : buckets_(BucketOf(Clamped(kLongest)) + 1) {}

void LatencyHistogram::Record(nanoseconds latency) {
  ++buckets_[BucketOf(Clamped(latency))];
  ++count_;
  sum_ns_ += static_cast<double>(latency.count());
  max_ = std::max(max_, latency);
}

nanoseconds LatencyHistogram::Mean() const {
  return count_ == 0 ? nanoseconds(0)
                     : nanoseconds(std::llround(sum_ns_ / static_cast<double>(count_)));
}

nanoseconds LatencyHistogram::Percentile(double part) const {
  assert(part > 0 && part <= 1);
  const auto wanted =
      std::max<int64_t>(1, std::llround(std::ceil(part * static_cast<double>(count_))));
  int64_t seen = 0;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    seen += buckets_[bucket];
    if (seen >= wanted) return std::min(max_, nanoseconds(static_cast<int64_t>(TopOf(bucket))));
  }
  return max_;
}

namespace {

// Time until a run that waits for its end sees that the server is gone.
constexpr nanoseconds kGlance = std::chrono::milliseconds(50);

// Threads: the one that runs it, and the transport's, which tells of ends.
class Run : public LoadTransport::Listener {
 public:
  Run(const LoadPlan& plan, LoadClock& clock, LoadTransport& transport)
      : plan_(plan),
        clock_(clock),
        transport_(transport),
        from_(clock.Now() + plan.warmup),
        until_(from_ + plan.duration) {
    result_.window = plan.duration;
    result_.next_question = plan.first_question;
  }

  LoadResult Finish() {
    if (const auto* closed = std::get_if<ClosedLoop>(&plan_.loop)) {
      KeepUnderWay(closed->concurrency);
    } else {
      KeepSchedule(std::get<OpenLoop>(plan_.loop).rate);
    }
    transport_.AwaitAll();
    const std::scoped_lock lock(mutex_);
    return std::move(result_);
  }

  void OnEnded(uint32_t call, absl::StatusCode code) override {
    const nanoseconds now = clock_.Now();
    std::optional<uint64_t> next;
    {
      const std::scoped_lock lock(mutex_);
      Count(began_[call], now, code);
      if (IsOpen()) {
        free_.push_back(call);
      } else if (now < until_ && !result_.server_gone) {
        began_[call] = now;
        next = result_.next_question++;
      }
    }
    if (next) transport_.Start(call, *next, *this);
  }

 private:
  bool IsOpen() const { return std::holds_alternative<OpenLoop>(plan_.loop); }
  bool Counts(nanoseconds instant) const { return from_ <= instant && instant < until_; }

  bool IsServerGone() {
    const std::scoped_lock lock(mutex_);
    return result_.server_gone;
  }

  void KeepUnderWay(uint32_t concurrency) {
    assert(concurrency <= transport_.calls_max());
    {
      const std::scoped_lock lock(mutex_);
      began_.assign(concurrency, clock_.Now());
      result_.next_question += concurrency;
    }
    for (uint32_t call = 0; call < concurrency; ++call)
      transport_.Start(call, plan_.first_question + call, *this);
    for (nanoseconds now = clock_.Now(); now < until_ && !IsServerGone(); now = clock_.Now())
      clock_.SleepUntil(std::min(until_, now + kGlance));
  }

  void KeepSchedule(double rate) {
    const nanoseconds begin = from_ - plan_.warmup;
    for (int64_t turn = 0; !IsServerGone(); ++turn) {
      const nanoseconds at =
          begin + nanoseconds(static_cast<int64_t>(static_cast<double>(turn) * 1e9 / rate));
      if (at >= until_) return;
      // In steps, so that a server that is gone is noticed at low rates, too.
      for (nanoseconds now = clock_.Now(); now < at && !IsServerGone(); now = clock_.Now())
        clock_.SleepUntil(std::min(at, now + kGlance));
      StartScheduled(at);
    }
  }

  void StartScheduled(nanoseconds at) {
    uint32_t call = 0;
    uint64_t question = 0;
    {
      const std::scoped_lock lock(mutex_);
      if (Counts(at)) result_.lateness.Record(clock_.Now() - at);
      if (free_.empty() && began_.size() == transport_.calls_max()) {
        if (Counts(at)) ++result_.unsent;
        return;
      }
      call = TakeFree();
      began_[call] = at;
      question = result_.next_question++;
    }
    transport_.Start(call, question, *this);
  }

  uint32_t TakeFree() {
    if (free_.empty()) {
      began_.emplace_back();
      return static_cast<uint32_t>(began_.size() - 1);
    }
    const uint32_t call = free_.back();
    free_.pop_back();
    return call;
  }

  void Count(nanoseconds began, nanoseconds now, absl::StatusCode code) {
    const size_t index = std::min(static_cast<size_t>(code), result_.codes.size() - 1);
    ++result_.all_codes[index];
    unavailable_ = code == absl::StatusCode::kUnavailable ? unavailable_ + 1 : 0;
    if (unavailable_ >= kUnavailableMax) result_.server_gone = true;
    if (!Counts(IsOpen() ? began : now)) return;
    ++result_.codes[index];
    const nanoseconds latency = now - began;
    (code == absl::StatusCode::kOk ? result_.latency : result_.refusal).Record(latency);
    if (code == absl::StatusCode::kOk && latency <= plan_.deadline) ++result_.good;
  }

  const LoadPlan& plan_;
  LoadClock& clock_;
  LoadTransport& transport_;
  const nanoseconds from_;
  const nanoseconds until_;

  std::mutex mutex_;                // guards all below
  std::vector<nanoseconds> began_;  // by call: when it began or should have
  std::vector<uint32_t> free_;      // of an open loop
  int unavailable_ = 0;             // in a row
  LoadResult result_;
};

}  // namespace

int64_t Sum(const CodeCounts& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

double LoadResult::Goodput() const {
  return static_cast<double>(good) / std::chrono::duration<double>(window).count();
}

LoadResult RunLoad(const LoadPlan& plan, LoadClock& clock, LoadTransport& transport) {
  return Run(plan, clock, transport).Finish();
}

}  // namespace stepcast::client
