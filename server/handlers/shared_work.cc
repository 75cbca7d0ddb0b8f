#include "server/handlers/shared_work.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/predict/run_summary.h"

namespace stepcast::server {

namespace {

// Computations and loops that take less are not worth being asked about.
constexpr double kLongSeconds = 1;
constexpr double kLongLoopSeconds = 0.3;
constexpr double kShardSeconds = 0.5;
constexpr int64_t kMaxShards = 256;
// Parts that are made first, to see how long one takes.
constexpr size_t kFirstParts = 2;
// After so long, or so many times as long as the longest took here, a shard is made again by
// whoever has nothing else to do.
constexpr int64_t kPatienceNs = 2 * kNsPerSecond;
constexpr int64_t kPatienceShards = 3;
constexpr int64_t kMostPatienceNs = 30 * kNsPerSecond;
constexpr std::chrono::milliseconds kPoll(20);

// Keys and bytes one after the other, each after its length.
void AppendText(std::string_view text, std::string& bytes) {
  const uint64_t size = text.size();
  char raw[sizeof(size)];
  std::memcpy(raw, &size, sizeof(size));
  bytes.append(raw, sizeof(size));
  bytes.append(text);
}

// False where no text begins there.
bool TakeText(std::string_view& bytes, std::string_view& text) {
  uint64_t size = 0;
  if (bytes.size() < sizeof(size)) return false;
  std::memcpy(&size, bytes.data(), sizeof(size));
  bytes.remove_prefix(sizeof(size));
  if (size > bytes.size()) return false;
  text = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return true;
}

}  // namespace

// One call of ForEach. Threads: none but that of the call, where nothing else is said.
class SharedWork::Loop {
 public:
  Loop(const SharedWork& work, size_t count, absl::FunctionRef<bool(size_t)> part)
      : work_(work), part_(part), number_(work.loops_++), done_(count, false) {}

  void Run() {
    work_.StartRecording();
    // Parts are taken to last as long as those of the loop before.
    if (!work_.IsLong() || ShardsOfTheRest() < 2) MakeFirst();
    if (const int64_t shards = ShardsOfTheRest(); shards > 1) Share(shards);
    work_.StopRecording();
    MakeRest();
  }

 private:
  const Environment& environment() const { return work_.environment_; }
  ShardLoop name() const { return {.operation = work_.operation_, .number = number_}; }

  // Blocks of parts, each twice as large as the one before, until they have taken long.
  void MakeFirst() {
    const int64_t began_ns = environment().clock.MonotonicNs();
    for (size_t block = kFirstParts; next_ < done_.size() && failed_ == kNone; block *= 2) {
      const size_t end = std::min(done_.size(), next_ + block);
      Make(next_, end);
      next_ = end;
      const int64_t taken_ns = environment().clock.MonotonicNs() - began_ns;
      work_.seconds_of_part_ =
          static_cast<double>(taken_ns) / kNsPerSecond / static_cast<double>(next_);
      if (work_.IsLong()) break;
    }
  }

  int64_t ShardsOfTheRest() const {
    if (failed_ != kNone) return 0;
    const size_t rest = done_.size() - next_;
    const double seconds = work_.seconds_of_part_ * static_cast<double>(rest);
    if (seconds < kLongLoopSeconds) return 0;
    const auto most = std::min(kMaxShards, static_cast<int64_t>(rest));
    return std::clamp(static_cast<int64_t>(seconds / kShardSeconds) + 1, int64_t{1}, most);
  }

  void Share(int64_t shards) {
    const absl::StatusOr<ShardPlan> plan =
        environment().store.Open(name(), {.first = static_cast<int64_t>(next_),
                                          .count = static_cast<int64_t>(done_.size()),
                                          .shards = shards});
    if (!Goes(plan.status()) || !IsSound(*plan)) return;
    plan_ = *plan;
    left_ = static_cast<size_t>(plan_.shards);
    is_read_.assign(left_, false);
    int64_t last_ns = environment().clock.MonotonicNs();
    while (failed_ == kNone && environment().stop().ok()) {
      const absl::StatusOr<std::optional<int64_t>> taken =
          environment().store.Take(name(), PatienceNs());
      if (!Goes(taken.status())) return;
      if (taken->has_value()) {
        if (!IsShard(**taken) || !MakeShard(**taken)) return;
        last_ns = environment().clock.MonotonicNs();
        continue;
      }
      const size_t before = left_;
      if (!ReadOthers() || left_ == 0) return;
      if (left_ < before) last_ns = environment().clock.MonotonicNs();
      // Whoever has what is left would have been followed by another.
      if (environment().clock.MonotonicNs() - last_ns > 2 * PatienceNs()) return;
      Pause();
    }
  }

  // False of a plan that nobody can have offered for this loop.
  bool IsSound(const ShardPlan& plan) const {
    return plan.count == static_cast<int64_t>(done_.size()) && plan.first >= 0 &&
           plan.first < plan.count && plan.shards >= 1 && plan.shards <= plan.count - plan.first;
  }

  bool IsShard(int64_t shard) const { return shard >= 0 && shard < plan_.shards; }

  void MarkRead(int64_t shard) {
    if (!is_read_[static_cast<size_t>(shard)]) --left_;
    is_read_[static_cast<size_t>(shard)] = true;
  }

  // False where nothing more is to be asked of the store for this loop. What goes wrong there costs
  // time only.
  bool Goes(const absl::Status& status) {
    if (work_.helps_ && absl::IsNotFound(status)) work_.is_over_ = true;
    return status.ok();
  }

  int64_t PatienceNs() const {
    const int64_t longest_ns = work_.longest_shard_ns_;
    return std::clamp(kPatienceShards * longest_ns, kPatienceNs,
                      std::max(kMostPatienceNs, longest_ns));
  }

  bool MakeShard(int64_t shard) {
    const int64_t began_ns = environment().clock.MonotonicNs();
    Make(static_cast<size_t>(plan_.Begin(shard)), static_cast<size_t>(plan_.Begin(shard + 1)));
    if (failed_ != kNone) return false;
    const int64_t taken_ns = environment().clock.MonotonicNs() - began_ns;
    work_.longest_shard_ns_ = std::max(work_.longest_shard_ns_, taken_ns);
    work_.seconds_of_part_ = static_cast<double>(taken_ns) / kNsPerSecond /
                             static_cast<double>(plan_.Begin(shard + 1) - plan_.Begin(shard));
    MarkRead(shard);
    // With the runs of the first parts. Those of others are read as they come: they are progress.
    return Goes(environment().store.Finish(name(), shard, work_.TakeRecorded())) && ReadOthers();
  }

  bool ReadOthers() {
    const absl::StatusOr<std::vector<int64_t>> finished = environment().store.Finished(name());
    if (!Goes(finished.status())) return false;
    for (const int64_t shard : *finished) {
      if (!IsShard(shard) || is_read_[static_cast<size_t>(shard)]) continue;
      const absl::StatusOr<std::string> bytes = environment().store.Read(name(), shard);
      if (!Goes(bytes.status())) return false;
      work_.KeepAll(*bytes);
      MarkRead(shard);
    }
    return true;
  }

  void Pause() {
    Mutex mutex;
    CondVar never;
    MutexLock lock(mutex);
    never.WaitFor(mutex, kPoll);
  }

  // The parts that are left, in order: found in the memory where another replica has made them.
  // After a failure only what stands before it, so that the first that fails is known.
  void MakeRest() {
    const size_t end = std::min(done_.size(), failed_);
    Make(0, end);
  }

  // Makes the parts in that range that have not been made.
  void Make(size_t begin, size_t end) {
    std::vector<size_t> parts;
    for (size_t part = begin; part < end; ++part)
      if (!done_[part]) parts.push_back(part);
    std::vector<char> went(parts.size(), 1);
    std::atomic<size_t> begun = 0;
    environment().executor.ForEach(parts.size(), [&](size_t i) {
      begun.fetch_add(1, std::memory_order_relaxed);
      went[i] = part_(parts[i]) ? 1 : 0;
      return went[i] != 0;
    });
    for (size_t i = 0; i < begun; ++i) {
      done_[parts[i]] = true;
      if (went[i] == 0) failed_ = std::min(failed_, parts[i]);
    }
  }

  static constexpr size_t kNone = ~size_t{0};

  const SharedWork& work_;
  const absl::FunctionRef<bool(size_t)> part_;
  const int64_t number_;
  std::vector<bool> done_;  // by part
  size_t next_ = 0;         // those before it are done
  size_t failed_ = kNone;   // the first part that returned false
  ShardPlan plan_;
  std::vector<bool> is_read_;  // by shard: made here, or read
  size_t left_ = 0;            // shards that are not
};

SharedWork::SharedWork(const Environment& environment, std::string operation, bool helps)
    : environment_(environment),
      operation_(std::move(operation)),
      helps_(helps),
      began_ns_(environment.clock.MonotonicNs()),
      runs_(kMaxBytes) {}

void SharedWork::ForEach(size_t count, absl::FunctionRef<bool(size_t)> part) const {
  if (is_inside_.exchange(true)) return environment_.executor.ForEach(count, part);
  Loop(*this, count, part).Run();
  is_inside_ = false;
}

bool SharedWork::IsLong() const {
  const int64_t taken_ns = environment_.clock.MonotonicNs() - began_ns_;
  return static_cast<double>(taken_ns) >= kLongSeconds * kNsPerSecond;
}

std::shared_ptr<const RunSummary> SharedWork::Find(const std::string& key) {
  const std::shared_ptr<const std::string> bytes = runs_.Find(key);
  if (bytes == nullptr) return nullptr;
  Record(key, bytes);
  return RunOfBytes(*bytes);
}

void SharedWork::Keep(const std::string& key, std::shared_ptr<const RunSummary> run) {
  auto bytes = std::make_shared<const std::string>(BytesOf(*run));
  Record(key, bytes);
  const size_t size = bytes->size();
  runs_.Keep(key, std::move(bytes), size);
}

void SharedWork::Record(const std::string& key, const std::shared_ptr<const std::string>& bytes) {
  MutexLock lock(mutex_);
  if (recorded_.has_value()) recorded_->emplace(key, bytes);
}

void SharedWork::StartRecording() const {
  MutexLock lock(mutex_);
  recorded_.emplace();
}

void SharedWork::StopRecording() const {
  MutexLock lock(mutex_);
  recorded_.reset();
}

std::string SharedWork::TakeRecorded() const {
  MutexLock lock(mutex_);
  std::string all;
  for (const auto& [key, bytes] : *recorded_) {
    if (all.size() + key.size() + bytes->size() > kMaxShardBytes) break;
    AppendText(key, all);
    AppendText(*bytes, all);
  }
  recorded_->clear();
  return all;
}

void SharedWork::KeepAll(const std::string& bytes) const {
  std::string_view left = bytes;
  std::string_view key;
  std::string_view run;
  while (TakeText(left, key) && TakeText(left, run)) {
    std::string name(key);
    if (runs_.Find(name) != nullptr) continue;  // made here, too
    const std::shared_ptr<const RunSummary> summary = RunOfBytes(run);
    if (summary == nullptr) continue;
    foreign_operations_ += summary->simulated_operations;
    runs_.Keep(name, std::make_shared<const std::string>(run), run.size());
  }
}

}  // namespace stepcast::server
