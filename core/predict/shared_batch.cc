#include "core/predict/shared_batch.h"

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
  if (absl::Status status = std::move(faults).ToStatus("REQUEST_INVALID"); !status.ok())
    return status;
  SharedBatch shared(recorded, change, second, limits);
  // A fault of the change is one of any share.
  if (const absl::StatusOr<Profile> whole = shared.ProfileOf(1); !whole.ok()) return whole.status();
  return shared;
}

void SharedBatch::CheckDividesAmong(int32_t workers, const std::string& path,
                                    RequestFaults& faults) const {
  if (workers < 1 || DividesAmong(workers)) return;
  faults.Add(path, absl::StrCat(workers, " workers do not divide the global batch of ", examples(),
                                " examples"));
}

absl::StatusOr<Profile> SharedBatch::ProfileOf(int32_t workers) const {
  JobChange share = change_;
  share.batch_size = static_cast<int32_t>(examples() / workers);
  share.global_batch_size.reset();
  absl::StatusOr<Profile> changed =
      ChangedProfile(recorded_, share, second_ ? &*second_ : nullptr, limits_);
  if (!changed.ok()) return UnderPath("scenario.change", changed.status());
  return changed;
}

}  // namespace stepcast
