#include "core/model/job_change.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/error.h"
#include "core/model/dependency_cycle.h"
#include "core/model/scenario.h"
#include "core/model/step_model.h"

namespace stepcast {

namespace {

// Beyond it, nanoseconds would not fit into their integers.
constexpr double kOverflowNs = 1e18;

class Changer {
 public:
  Changer(const Profile& profile, const JobChange& change, const Profile* second)
      : profile_(profile), change_(change), second_(second), draft_(profile.content()) {}

  absl::StatusOr<Profile> Run(const ProfileLimits& limits) && {
    Check();
    if (!faults_.empty()) return FaultsError("JOB_CHANGE_INVALID", std::move(faults_).Take());
    factors_.assign(profile_.operations().size(), 1);
    ChangeBatch();
    ChangeSpeed();
    if (MostNs() > kOverflowNs) return TooLong(MostNs(), limits.max_step_ns);
    for (RecordedStep& step : draft_.steps) step = WarpedStep(profile_, step, factors_);
    Accumulate();
    int64_t longest = 0;
    for (const RecordedStep& step : draft_.steps)
      for (const int64_t end : step.end_ns) longest = std::max(longest, end);
    if (longest > limits.max_step_ns)
      return TooLong(static_cast<double>(longest), limits.max_step_ns);
    ShrinkGradients();
    absl::StatusOr<Profile> changed = Profile::Create(std::move(draft_), limits);
    if (!changed.ok()) return changed;
    return changed->WithChange(
        std::make_shared<const AppliedChange>(AppliedChange{
            .change = change_,
            .told = std::move(told_),
            .mean = mean_,
            .recorded_operations = static_cast<int32_t>(profile_.operations().size())}),
        profile_);
  }

 private:
  void CheckWithin(const char* field, double value, double least, double most) {
    if (value >= least && value <= most) return;
    faults_.Add(field, absl::StrCat(value, " is not from ", least, " to ", most));
  }

  void Check() {
    faults_.AddIf(profile_.recorded_workers() > 1 || profile_.content().recording.has_value(),
                  FirstField(),
                  "given, and the profile is a recording of several workers, whose clocks a "
                  "change would tear apart: import one of them alone");
    if (change_.batch_size.has_value() && *change_.batch_size < 1)
      faults_.Add("batch_size", absl::StrCat(*change_.batch_size, " is below 1"));
    faults_.AddIf(change_.global_batch_size.has_value(), "global_batch_size",
                  change_.global_batch_size,
                  ", which workers divide in predictions, recommendations and "
                  "allocations only: give batch_size, the share of one");
    CheckBatch();
    if (change_.accumulate.has_value()) CheckAccumulate(*change_.accumulate);
    if (change_.compute_speed_factor.has_value()) {
      CheckWithin("compute_speed_factor", *change_.compute_speed_factor, kMinComputeSpeedFactor,
                  kMaxComputeSpeedFactor);
    }
    if (change_.gradient_bytes_factor.has_value()) {
      CheckWithin("gradient_bytes_factor", *change_.gradient_bytes_factor, kMinGradientBytesFactor,
                  1);
    }
  }

  // The first change that is asked for.
  const char* FirstField() const {
    return change_.batch_size.has_value()              ? "batch_size"
           : change_.global_batch_size.has_value()     ? "global_batch_size"
           : change_.accumulate.has_value()            ? "accumulate"
           : change_.compute_speed_factor.has_value()  ? "compute_speed_factor"
           : change_.gradient_bytes_factor.has_value() ? "gradient_bytes_factor"
                                                       : "";
  }

  void CheckBatch() {
    if (change_.fixed_fraction.has_value()) {
      CheckWithin("fixed_fraction", *change_.fixed_fraction, 0, 1);
      if (!change_.batch_size.has_value())
        faults_.Add("fixed_fraction", "given without batch_size, with which it counts");
      if (second_ != nullptr)
        faults_.Add("fixed_fraction", "given, and a second recording, which tells it: which?");
    }
    if (second_ == nullptr) return;
    if (!change_.batch_size.has_value())
      faults_.Add("second_profile", "given without batch_size, with which it counts");
    CheckSecondRecording(profile_, *second_, "second_profile", faults_);
  }

  void CheckAccumulate(int32_t micro_batches) {
    faults_.AddIf(micro_batches < 1 || micro_batches > kMaxMicroBatchesOfStep, "accumulate",
                  micro_batches, " is not from 1 to ", kMaxMicroBatchesOfStep);
    const int64_t examples = int64_t{micro_batches} * BatchSize();
    faults_.AddIf(examples > INT32_MAX, "accumulate", micro_batches, " micro-batches of ",
                  BatchSize(), " examples are more than ", INT32_MAX, " in a step");
    // Buffers are broadcast once a step, before its first micro-batch (DistributedDataParallel).
    const auto is_sharded = [](const Operation& operation) {
      return IsAcrossWorkers(operation) && operation.collective != Collective::kAllReduce &&
             operation.collective != Collective::kBroadcast;
    };
    const auto& operations = profile_.operations();
    if (const auto found = std::find_if(operations.begin(), operations.end(), is_sharded);
        found != operations.end()) {
      faults_.Add("accumulate",
                  absl::StrCat("\"", found->name,
                               "\" of the profile is not an all-reduce: what a sharded job sends "
                               "in each micro-batch is not modelled"));
    }
  }

  int32_t BatchSize() const { return change_.batch_size.value_or(profile_.batch_size()); }

  // The most that a step would compute for: computations beside each other may come to less.
  double MostNs() const {
    double most = 0;
    for (const RecordedStep& step : profile_.steps()) {
      double sum = 0;
      for (size_t i = 0; i < factors_.size(); ++i)
        sum += static_cast<double>(step.end_ns[i] - step.start_ns[i]) * std::max(1.0, factors_[i]);
      most = std::max(most, sum);
    }
    return most * change_.accumulate.value_or(1);
  }

  // One fault for all the times of steps that are longer than a profile's may be.
  absl::Status TooLong(double ns, int64_t most_ns) const {
    const char* const field = change_.batch_size.has_value()   ? "batch_size"
                              : change_.accumulate.has_value() ? "accumulate"
                                                               : "compute_speed_factor";
    return FaultsError("JOB_CHANGE_INVALID",
                       {{.field = field,
                         .description = absl::StrCat("a step of the changed job would take ",
                                                     ns / 1e9, " s, above the limit of a step, ",
                                                     most_ns / 1'000'000'000, " s")}});
  }

  void ChangeBatch() {
    if (!change_.batch_size.has_value()) return;
    const double growth = static_cast<double>(*change_.batch_size) / profile_.batch_size();
    if (second_ != nullptr) {
      BatchGrowth told = GrowthByTwoRecordings(profile_, *second_, *change_.batch_size);
      factors_ = std::move(told.factors);
      mean_ = told.mean;
      grown_ = {.loading = told.all, .waiting = told.all, .computing = told.all};
      Tell("second_profile", absl::StrFormat("computation x %.3g", told.all), std::move(told.told));
    } else {
      const std::optional<double>& fixed = change_.fixed_fraction;
      const double factor = fixed.value_or(0) + (1 - fixed.value_or(0)) * growth;
      grown_ = {.loading = factor, .waiting = fixed.has_value() ? factor : 1, .computing = factor};
      const std::vector<bool> once = OncePerStep();
      for (size_t i = 0; i < factors_.size(); ++i) {
        const Operation& operation = profile_.operations()[i];
        if (once[i] || IsOfHostAlone(operation)) continue;
        factors_[i] = operation.pass == Pass::kDataLoading ? grown_.loading : GrownWork();
      }
      if (!fixed.has_value() && growth != 1) TellOfBatch();
    }
    draft_.batch_size = *change_.batch_size;
    for (Operation& operation : draft_.operations) {
      operation.kept_bytes = std::min(Scaled(operation.kept_bytes, growth), kMaxKeptBytes);
      operation.output_bytes = Scaled(operation.output_bytes, growth);
    }
  }

  // The growth of computations, in parts of which a device waits for its host.
  double GrownWork() const { return waits_ * grown_.waiting + (1 - waits_) * grown_.computing; }

  void TellOfBatch() {
    const std::string waits =
        waits_ > 0 ? absl::StrFormat(
                         "Devices wait for their hosts in %.3g %% of the recorded computation, as "
                         "long with any batch. ",
                         100 * waits_)
                   : "";
    Tell("fixed_fraction",
         waits_ > 0 ? absl::StrFormat("%.3g%%, waits for hosts", 100 * waits_) : "no fixed part",
         absl::StrFormat("%sForward and backward take %.3g times as long with %d examples as with "
                         "the recorded %d: nothing %sshows the part of them that does not grow "
                         "with the batch; a second recording with another batch would.",
                         waits, GrownWork(), *change_.batch_size, profile_.batch_size(),
                         waits_ > 0 ? "else " : ""));
  }

  static int64_t Scaled(int64_t bytes, double factor) {
    return static_cast<int64_t>(std::llround(static_cast<double>(bytes) * factor));
  }

  void ChangeSpeed() {
    const double speed = change_.compute_speed_factor.value_or(1);
    // Waiting of devices for hosts, and of hosts for data, stays.
    const std::optional<double> idle = profile_.content().device_idle_fraction;
    const double grown = GrownWork();
    const bool is_other =
        speed != 1 || grown_.waiting != grown_.computing || shares_.host_alone > 0;
    grown_.computing /= speed;
    const double of_grown = GrownWork() / grown;
    const double of_others = waits_ + (1 - waits_) / speed;
    if (idle.value_or(0) > 0 && is_other) {
      const double busy = (1 - *idle) * std::max(1.0, shares_.host_alone) * grown_.computing;
      const double step =
          std::max(shares_.host_alone, shares_.data_loading * grown_.loading +
                                           (1 - shares_.data_loading) * GrownWork());
      draft_.device_idle_fraction = std::clamp(1 - busy / step, 0.0, 1.0);
    }
    if (!change_.compute_speed_factor.has_value()) return;
    const std::vector<bool> once = OncePerStep();
    for (size_t i = 0; i < factors_.size(); ++i) {
      const Operation& operation = profile_.operations()[i];
      if (operation.pass == Pass::kDataLoading || IsOfHostAlone(operation)) continue;
      factors_[i] *= once[i] ? of_others : of_grown;
    }
    if (idle.value_or(0) == 0) return;
    Tell("compute_speed_factor", absl::StrFormat("computation x %.3g", of_grown),
         absl::StrFormat("Devices wait for their hosts in %.3g %% of the recorded step, which "
                         "devices of another speed do not change.",
                         100 * *idle));
  }

  // Forward and backward are computed once more for each micro-batch but the last, before all else.
  void Accumulate() {
    const int32_t times = change_.accumulate.value_or(1);
    if (times == 1) return;
    std::vector<bool> counted(profile_.operations().size());
    std::vector<int64_t> until_ns(draft_.steps.size(), 0);  // the end of what was added
    std::vector<Operation> added;
    for (const Pass pass : {Pass::kForward, Pass::kBackward, Pass::kUnspecified}) {
      if (!Count(pass, counted)) continue;
      for (size_t s = 0; s < until_ns.size(); ++s) {
        const int64_t end = BusyNs(draft_.steps[s], counted) * (times - 1);
        draft_.steps[s].start_ns.push_back(std::exchange(until_ns[s], end));
        draft_.steps[s].end_ns.push_back(end);
      }
      const auto place = static_cast<int32_t>(draft_.operations.size() + added.size());
      added.push_back({.name = FreeName(pass), .resource = Resource::kWorker, .pass = pass});
      if (added.size() > 1) added.back().waiting_for = {place - 1};
    }
    if (added.empty()) return;
    for (size_t s = 0; s < until_ns.size(); ++s) {
      for (size_t i = 0; i < counted.size(); ++i) {
        int64_t& start = draft_.steps[s].start_ns[i];
        int64_t& end = draft_.steps[s].end_ns[i];
        // A host works as long for each micro-batch, beside them.
        const bool is_of_host = IsOfHostAlone(draft_.operations[i]);
        end += is_of_host ? (end - start) * (times - 1) : until_ns[s];
        if (!is_of_host) start += until_ns[s];
      }
    }
    const auto last = static_cast<int32_t>(draft_.operations.size() + added.size()) - 1;
    for (Operation& operation : draft_.operations) {
      if (operation.waiting_for.empty() && !IsOfHostAlone(operation))
        operation.waiting_for.push_back(last);
    }
    draft_.operations.insert(draft_.operations.end(), added.begin(), added.end());
    draft_.batch_size *= times;
  }

  // Counts what each micro-batch computes of that pass (unspecified: of any), too; false: nothing.
  bool Count(Pass pass, std::vector<bool>& counted) const {
    bool any = false;
    const std::vector<bool> once = OncePerStep();
    for (size_t i = 0; i < counted.size(); ++i) {
      const Operation& operation = profile_.operations()[i];
      const bool is_computed =
          operation.resource == Resource::kWorker ||
          (operation.resource == Resource::kCollective && !IsAcrossWorkers(operation));
      if (once[i] || counted[i] || !is_computed || !IsOf(operation.pass, pass) ||
          IsOfHostAlone(operation))
        continue;
      counted[i] = true;
      any = true;
    }
    return any;
  }

  static bool IsOf(Pass of_operation, Pass pass) {
    return pass == Pass::kUnspecified || of_operation == pass ||
           (pass == Pass::kBackward &&
            (of_operation == Pass::kBackwardInput || of_operation == Pass::kBackwardWeight));
  }

  // Nanoseconds in which some counted operation runs.
  static int64_t BusyNs(const RecordedStep& step, const std::vector<bool>& counted) {
    std::vector<std::pair<int64_t, int64_t>> spans;
    for (size_t i = 0; i < counted.size(); ++i) {
      if (counted[i]) spans.emplace_back(step.start_ns[i], step.end_ns[i]);
    }
    std::sort(spans.begin(), spans.end());
    int64_t busy = 0;
    int64_t until = 0;
    for (const auto& [start, end] : spans) {
      busy += std::max<int64_t>(0, end - std::max(start, until));
      until = std::max(until, end);
    }
    return busy;
  }

  std::string FreeName(Pass pass) const {
    std::string name = "accumulated micro-batches";
    if (pass == Pass::kForward) name += ", forward";
    if (pass == Pass::kBackward) name += ", backward";
    const auto is_taken = [&](const Operation& operation) { return operation.name == name; };
    while (std::any_of(draft_.operations.begin(), draft_.operations.end(), is_taken)) name += "'";
    return name;
  }

  // By operation: it runs once a step, whatever the batch. The optimizer's passes do, sums of
  // gradients, and all that waits for either, however indirectly.
  std::vector<bool> OncePerStep() const {
    const std::vector<Operation>& operations = profile_.operations();
    std::vector<size_t> first;
    const bool knows_passes =
        std::any_of(operations.begin(), operations.end(),
                    [](const Operation& operation) { return operation.pass == Pass::kOptimizer; });
    for (size_t i = 0; i < operations.size(); ++i) {
      // A sharded job's backward pass may wait for gradients that were reduced before it.
      const bool sums =
          IsGradient(operations[i]) || (IsAcrossWorkers(operations[i]) && !knows_passes &&
                                        operations[i].collective == Collective::kReduceScatter);
      if (operations[i].pass == Pass::kOptimizer || sums) first.push_back(i);
    }
    return AllThatWaitFor(std::move(first), operations);
  }

  void ShrinkGradients() {
    if (!change_.gradient_bytes_factor.has_value()) return;
    const double factor = *change_.gradient_bytes_factor;
    const auto shrunk = [&](int64_t bytes) {
      return bytes == 0 ? 0 : std::max<int64_t>(1, Scaled(bytes, factor));
    };
    std::vector<std::pair<int64_t, int64_t>> gradients;  // as recorded, and now
    for (Operation& operation : draft_.operations) {
      // Parameters that are gathered, and what a step sums beside gradients, stay as large.
      const bool is_scattered =
          IsAcrossWorkers(operation) && operation.collective == Collective::kReduceScatter;
      if (!IsGradient(operation) && !is_scattered) continue;
      const int64_t before = std::exchange(operation.size_bytes, shrunk(operation.size_bytes));
      if (SumsGradients(operation)) gradients.emplace_back(before, operation.size_bytes);
    }
    if (draft_.buckets.has_value()) ShrinkBuckets(gradients);
  }

  // Each bucket is what its gradients add up to now.
  void ShrinkBuckets(const std::vector<std::pair<int64_t, int64_t>>& gradients) {
    auto next = gradients.begin();
    for (int64_t& bucket : draft_.buckets->sizes_bytes) {
      int64_t recorded = 0;
      int64_t now = 0;
      for (; next != gradients.end() && recorded < bucket; ++next) {
        recorded += next->first;
        now += next->second;
      }
      bucket = now;
    }
  }

  void Tell(const char* field, std::string value, std::string message) {
    told_.push_back({.field = absl::StrCat("change.", field),
                     .value = std::move(value),
                     .message = std::move(message)});
  }

  const Profile& profile_;
  const JobChange& change_;
  const Profile* const second_;
  ProfileDraft draft_;
  std::vector<double> factors_;  // by operation
  // Growth of a step's parts with a larger batch, on the mean.
  struct Grown {
    double loading = 1;
    double waiting = 1;  // of devices for their hosts
    double computing = 1;
  };
  Grown grown_;
  const HostShares shares_ = HostSharesOf(profile_);
  const double waits_ = shares_.idle_of_device;
  std::vector<Assumption> told_;
  DrawnMean mean_;
  FaultList faults_;
};

}  // namespace

HostShares HostSharesOf(const Profile& profile) {
  double step = 0;
  double loading = 0;
  double host = 0;
  for (size_t i = 0; i < profile.operations().size(); ++i) {
    const Operation& operation = profile.operations()[i];
    if (operation.resource != Resource::kWorker) continue;
    double sum = 0;
    for (const RecordedStep& recorded : profile.steps())
      sum += static_cast<double>(recorded.end_ns[i] - recorded.start_ns[i]);
    if (IsOfHostAlone(operation)) host += sum;
    if (operation.stream > 0) continue;
    step += sum;
    if (operation.pass == Pass::kDataLoading) loading += sum;
  }
  if (step == 0) return {};
  HostShares shares{.data_loading = loading / step, .host_alone = host / step};
  const std::optional<double> idle = profile.content().device_idle_fraction;
  if (idle.has_value() && loading < step) {
    const double busy = (1 - *idle) * std::max(1.0, shares.host_alone);
    shares.idle_of_device = std::clamp(1 - busy / (1 - shares.data_loading), 0.0, 1.0);
  }
  return shares;
}

double SpeedWithDevice(const Profile& profile, double device_speed) {
  const HostShares shares = HostSharesOf(profile);
  const double device = shares.idle_of_device + (1 - shares.idle_of_device) / device_speed;
  return std::max(1.0, shares.host_alone) /
         std::max(shares.host_alone, shares.data_loading + (1 - shares.data_loading) * device);
}

double SentShareOf(const Profile& profile) {
  const auto& buckets = profile.content().buckets;
  const double share = buckets.has_value() ? buckets->sent_share : 1;
  return profile.change() == nullptr
             ? share
             : share * profile.change()->change.gradient_bytes_factor.value_or(1);
}

int64_t ParameterBytesOf(const Profile& profile, int64_t sent_bytes) {
  return std::llround(static_cast<double>(sent_bytes) / SentShareOf(profile));
}

absl::StatusOr<Profile> ChangedProfile(const Profile& profile, const JobChange& change,
                                       const Profile* second, const ProfileLimits& limits) {
  return Changer(profile, change, second).Run(limits);
}

}  // namespace stepcast
