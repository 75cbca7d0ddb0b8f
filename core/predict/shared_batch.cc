#include "core/predict/shared_batch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast {

absl::StatusOr<SharedBatch> SharedBatch::Of(const Profile& recorded, const JobChange& change,
                                            const Profile* second, const ProfileLimits& limits) {
  RequestFaults faults;
  const int64_t examples = *change.global_batch_size;
  if (change.batch_size.has_value())
    faults.Add("scenario.change.batch_size", "given, and a global_batch_size: which of both?");
  faults.AddIf(examples < 1 || examples > INT32_MAX, "scenario.change.global_batch_size", examples,
               " is not from 1 to ", INT32_MAX);
  const int32_t micro_batches = std::max(change.accumulate.value_or(1), 1);
  faults.AddIf(examples % micro_batches != 0, "scenario.change.global_batch_size", examples,
               " examples are not divided by ", micro_batches, " micro-batches");
  if (absl::Status status = std::move(faults).ToStatus("REQUEST_INVALID"); !status.ok())
    return status;
  SharedBatch shared(recorded, change, second, limits);
  // A fault of the change is one of any share.
  if (const absl::StatusOr<Profile> whole = shared.ProfileOf(1); !whole.ok()) return whole.status();
  return shared;
}

std::string SharedBatch::Name() const {
  return absl::StrCat(
      "the global batch of ", examples(), " examples",
      micro_batches() > 1 ? absl::StrCat(" in ", micro_batches(), " micro-batches") : "");
}

void SharedBatch::Share(ScenarioDraft& draft, const std::string& path,
                        const std::string& workers_path, RequestFaults& faults) const {
  const int64_t workers = std::max(draft.workers.value_or(1), 1);
  if (!draft.pipeline.has_value()) {
    if (micro_batches() > 1) {
      const std::string why = WhyNotAccumulated(recorded_, draft);
      faults.AddIf(!why.empty(), "scenario.change.accumulate", micro_batches(), why);
    }
    if (micro_batch_examples() % workers != 0)
      faults.Add(workers_path, absl::StrCat(workers, " workers do not divide ", Name()));
    return;
  }
  std::optional<int32_t>& micro_batches = draft.pipeline->micro_batches;
  if (micro_batches.has_value())
    faults.Add(path + ".pipeline.micro_batches",
               absl::StrCat(*micro_batches, " given, and a global_batch_size: which of both?"));
  if (ChangesMore())
    faults.Add("scenario.change", "given beside a global_batch_size, which of pipelines is alone");
  const int64_t whole = examples() / recorded_.batch_size();
  if (whole < 1 || whole > kMaxMicroBatches || examples() % recorded_.batch_size() != 0)
    faults.Add("scenario.change.global_batch_size",
               absl::StrCat(examples(), " examples are not 1 to ", kMaxMicroBatches,
                            " micro-batches of ", recorded_.batch_size()));
  else if (whole % workers != 0)
    faults.Add(workers_path, absl::StrCat(workers, " workers do not divide the ", whole,
                                          " micro-batches of the global batch"));
  micro_batches = static_cast<int32_t>(std::clamp<int64_t>(whole / workers, 1, kMaxMicroBatches));
}

void SharedBatch::CheckShares(const Scenario& one_worker, int32_t workers, const std::string& path,
                              RequestFaults& faults) const {
  if (workers < 1 || one_worker.CanShare(micro_batch_examples(), workers)) return;
  faults.Add(path, absl::StrCat(workers, " workers do not divide ", Name(),
                                micro_batch_examples() % workers == 0
                                    ? " in micro-batches, as many for each as its schedule orders"
                                    : ""));
}

absl::StatusOr<Profile> SharedBatch::ProfileOf(int32_t workers) const {
  JobChange share = change_;
  share.batch_size = static_cast<int32_t>(micro_batch_examples() / workers);
  share.global_batch_size.reset();
  absl::StatusOr<Profile> changed =
      ChangedProfile(recorded_, share, second_ ? &*second_ : nullptr, limits_);
  if (!changed.ok()) return UnderPath("scenario.change", changed.status());
  return changed;
}

}  // namespace stepcast
