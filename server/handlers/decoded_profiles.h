// Profiles as they were decoded from what a store keeps, within a bound of bytes.
//
// Decoding takes longer than all else that a call needs before it waits for its simulation, or is
// refused. A decoded profile stands for the very bytes that it was decoded from: they are compared,
// so none is ever stale. Cost: of a profile that is kept a comparison of its bytes, of any other
// what DecodeProfile takes. Threads: safe. Lifetime: borrows the observer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

#include "core/model/profile.h"
#include "server/base/bounded_cache.h"
#include "server/convert/profile_codec.h"
#include "server/store/profile_store.h"

namespace stepcast::server {

class DecodedProfiles {
 public:
  // `observer` may be null. With a bound of 0 nothing is kept.
  explicit DecodedProfiles(size_t max_bytes, CacheObserver* observer = nullptr)
      : keeps_(max_bytes > 0), kept_(max_bytes, observer) {}

  // As DecodeProfile of the content.
  absl::StatusOr<Profile> Decode(StoredProfile stored) {
    if (!keeps_) return DecodeProfile(stored.content);
    const auto kept = kept_.Find(stored.summary.id);
    if (kept != nullptr && kept->content == stored.content) return kept->profile;
    absl::StatusOr<Profile> profile = DecodeProfile(stored.content);
    if (!profile.ok()) return profile;
    const size_t bytes = stored.content.size() + BytesOf(profile->content());
    kept_.Keep(stored.summary.id,
               std::make_shared<const Entry>(
                   Entry{.content = std::move(stored.content), .profile = *profile}),
               bytes);
    return profile;
  }

 private:
  struct Entry {
    std::string content;
    Profile profile;
  };

  static size_t BytesOf(const RecordedStep& step) {
    return sizeof(step) + (step.start_ns.size() + step.end_ns.size()) * sizeof(int64_t);
  }

  // About what it takes in memory.
  static size_t BytesOf(const ProfileDraft& draft) {
    constexpr size_t kLabelBytes = 96;  // what holds one
    size_t bytes =
        sizeof(draft) + draft.display_name.size() + draft.model.size() + draft.framework.size();
    for (const auto& [key, value] : draft.labels) bytes += key.size() + value.size() + kLabelBytes;
    for (const Operation& operation : draft.operations) {
      bytes += sizeof(operation) + operation.name.size() + operation.parameter.size() +
               operation.waiting_for.size() * sizeof(int32_t);
    }
    for (const RecordedStep& step : draft.steps) bytes += BytesOf(step);
    if (!draft.recording) return bytes;
    bytes += draft.recording->collectives.size() * sizeof(LaunchedCollective);
    for (const WorkerRecording& worker : draft.recording->workers) {
      bytes += sizeof(worker) + worker.name.size() + worker.runs.size() * sizeof(CollectiveRun) +
               (worker.step_begins_ns.size() + worker.step_ends_ns.size()) * sizeof(int64_t);
      for (const RecordedStep& step : worker.steps) bytes += BytesOf(step);
    }
    return bytes;
  }

  const bool keeps_;
  BoundedCache<Entry> kept_;
};

}  // namespace stepcast::server
