#include "tests/fuzz/import_trial.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "core/base/error.h"
#include "core/base/stop_check.h"
#include "server/base/clock.h"
#include "server/convert/profile_codec.h"
#include "server/handlers/profile_handler.h"
#include "server/store/memory_stores.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/small_limits.h"

namespace stepcast::fuzz {

namespace {

// A few bytes at a time, as a slow network brings them.
class PieceSource final : public ByteSource {
 public:
  explicit PieceSource(std::string_view text) : text_(text) {}

  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    constexpr size_t kPiece = 7;
    return text_.Read(buffer, std::min(size, kPiece));
  }

 private:
  TextSource text_;
};

template <typename Source>
absl::StatusOr<server::ImportProfileAnswer> Import(const server::ImportProfileCall& call,
                                                   const ImportInput& input) {
  const server::FakeClock clock;
  server::MemoryProfileStore store({}, clock);
  Source recording(input.recording);
  Source graph(input.graph);
  std::deque<Source> recordings;
  server::ImportBytes bytes{.recording = recording, .graph = input.has_graph ? &graph : nullptr};
  for (const std::string_view each : input.recordings) {
    bytes.recordings.push_back(
        {.recording = &recordings.emplace_back(each),
         .name = input.named_by_rank ? absl::StrCat("job.", recordings.size() - 1, ".et") : ""});
  }
  return server::ProfileHandler(store, SmallLimits()).Import(call, bytes, NeverStop);
}

}  // namespace

std::string JoinedRecordings(const std::vector<std::string>& recordings) {
  return absl::StrJoin(recordings, kBetweenRecordings);
}

ImportInput RecordingsOf(std::string_view input) {
  constexpr size_t kLength = sizeof(kBetweenRecordings) - 1;
  ImportInput recordings{.recording = input.substr(0, input.find(kBetweenRecordings))};
  if (recordings.recording.size() == input.size()) return recordings;
  for (size_t end = 0; end != std::string_view::npos; input.remove_prefix(end + kLength)) {
    end = input.find(kBetweenRecordings);
    recordings.recordings.push_back(input.substr(0, end));
    if (end == std::string_view::npos) break;
  }
  return recordings;
}

std::string MutateRecordings(const std::string& input, const Mutation& mutation,
                             std::string (*mutate)(std::string, const Mutation&)) {
  std::vector<std::string> recordings = absl::StrSplit(input, kBetweenRecordings);
  std::string& recording = recordings[mutation.random.Below(recordings.size())];
  if (recordings.size() > 1 && mutation.random.Below(16) == 0) {
    recording = recordings[mutation.random.Below(recordings.size())];
  } else {
    recording = mutate(std::move(recording), mutation);
  }
  return JoinedRecordings(recordings);
}

RecordingOptions TrialOptions() {
  return {.model = "m", .batch_size = 8, .platform = {.bandwidth_bytes_per_second = 1e8}};
}

bool TryImport(const server::ImportProfileCall& call, const ImportInput& input) {
  const absl::StatusOr<server::ImportProfileAnswer> whole = Import<TextSource>(call, input);
  const absl::StatusOr<server::ImportProfileAnswer> pieces = Import<PieceSource>(call, input);
  // But for the byte a fault is found at, which depends on what is read at once.
  Demand(
      whole.status().code() == pieces.status().code() &&
          DetailsOf(whole.status()).reason == DetailsOf(pieces.status()).reason,
      "pieces make no difference:", whole.status().ToString() + " / " + pieces.status().ToString());
  if (!whole.ok()) {
    DemandSoundRefusal(whole.status());
    DemandSoundRefusal(pieces.status());
    return false;
  }
  Demand(whole->profile.summary.digest == pieces->profile.summary.digest &&
             whole->notes == pieces->notes,
         "pieces make no difference");
  Demand(whole->recording.has_value() == !input.recordings.empty(),
         "recordings of several workers are reported on");
  Demand(whole->profile.content.has_value() || whole->profile.summary.operation_count > 0,
         "what is imported has operations");
  return true;
}

}  // namespace stepcast::fuzz
