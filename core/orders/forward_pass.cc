#include "core/orders/forward_pass.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/orders/transfer_graph.h"

namespace stepcast {

namespace {

using Operations = std::vector<Operation>;
using Marks = std::vector<bool>;

absl::Status Unknown(const std::string& why) {
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   absl::StrCat("cannot tell the forward pass of this profile: ", why),
                   {.reason = "FORWARD_PASS_UNKNOWN"});
}

std::vector<std::vector<int32_t>> DependentsOf(const Operations& operations) {
  std::vector<std::vector<int32_t>> dependents(operations.size());
  for (size_t op = 0; op < operations.size(); ++op) {
    for (const int32_t before : operations[op].waiting_for)
      dependents[Index(before)].push_back(static_cast<int32_t>(op));
  }
  return dependents;
}

// `from`, and all that is reached from it by next(op).
template <typename Next>
Marks Reached(size_t size, std::vector<int32_t> from, Next next) {
  Marks marks(size);
  for (const int32_t op : from) marks[Index(op)] = true;
  while (!from.empty()) {
    const int32_t op = from.back();
    from.pop_back();
    for (const int32_t other : next(op)) {
      if (marks[Index(other)]) continue;
      marks[Index(other)] = true;
      from.push_back(other);
    }
  }
  return marks;
}

std::vector<int32_t> AllOn(const Operations& operations, Resource resource) {
  std::vector<int32_t> all;
  for (size_t op = 0; op < operations.size(); ++op) {
    if (operations[op].resource == resource) all.push_back(static_cast<int32_t>(op));
  }
  return all;
}

OperationKind KindOf(Resource resource) {
  if (resource == Resource::kDownlink) return OperationKind::kDownload;
  return resource == Resource::kWorker ? OperationKind::kComputation : OperationKind::kOther;
}

// The operations with a mark, and what of them waits for what.
TransferGraph GraphOf(const Operations& operations, const Marks& marks) {
  std::vector<int32_t> place(operations.size(), -1);
  std::vector<TransferGraph::Operation> kept;
  for (size_t op = 0; op < operations.size(); ++op) {
    if (!marks[op]) continue;
    place[op] = static_cast<int32_t>(kept.size());
    kept.push_back({.kind = KindOf(operations[op].resource)});
  }
  std::vector<TransferGraph::Dependency> dependencies;
  for (size_t op = 0; op < operations.size(); ++op) {
    if (!marks[op]) continue;
    for (const int32_t before : operations[op].waiting_for) {
      if (marks[Index(before)])
        dependencies.push_back({.before = place[Index(before)], .after = place[op]});
    }
  }
  return {std::move(kept), dependencies};
}

// The cut, or -1.
int32_t FindCut(const Operations& operations, const Marks& between) {
  const int32_t in_graph = FirstCutBehindDownloads(GraphOf(operations, between)).operation;
  if (in_graph < 0) return -1;
  int32_t place = -1;
  for (size_t op = 0; op < operations.size(); ++op) {
    if (between[op] && ++place == in_graph) return static_cast<int32_t>(op);
  }
  return -1;
}

Profile KeepOnly(const Profile& profile, const Marks& kept) {
  ProfileDraft draft = profile.content();
  draft.operations.clear();
  std::vector<int32_t> place(kept.size(), -1);
  for (size_t op = 0; op < kept.size(); ++op) {
    if (!kept[op]) continue;
    place[op] = static_cast<int32_t>(draft.operations.size());
    draft.operations.push_back(profile.operations()[op]);
  }
  for (Operation& operation : draft.operations) {
    for (int32_t& before : operation.waiting_for) before = place[Index(before)];
  }
  for (RecordedStep& step : draft.steps) {
    for (std::vector<int64_t>* times : {&step.start_ns, &step.end_ns}) {
      size_t at = 0;
      for (size_t op = 0; op < kept.size(); ++op) {
        if (kept[op]) (*times)[at++] = (*times)[op];
      }
      times->resize(at);
    }
  }
  // The whole was within the limits in force, whatever they are.
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  const ProfileLimits limits{.max_operations = kAny,
                             .max_steps = kAny,
                             .max_recorded_times = kAny,
                             .max_dependencies = kAny,
                             .max_parameter_servers = kAny,
                             .max_batch_size = kAny,
                             .max_transfer_bytes = kAny,
                             .max_step_ns = kAny,
                             .max_name_bytes = std::numeric_limits<size_t>::max(),
                             .max_text_bytes = std::numeric_limits<size_t>::max(),
                             .max_labels = std::numeric_limits<size_t>::max(),
                             .max_label_key_bytes = std::numeric_limits<size_t>::max()};
  return *Profile::Create(std::move(draft), limits);
}

}  // namespace

absl::StatusOr<Profile> ForwardPass(const Profile& profile) {
  const Operations& operations = profile.operations();
  const std::vector<int32_t> uploads = AllOn(operations, Resource::kUplink);
  const std::vector<int32_t> downloads = AllOn(operations, Resource::kDownlink);
  if (uploads.empty()) return profile;
  if (downloads.empty()) return Unknown("it has no downloads");

  const std::vector<std::vector<int32_t>> dependents = DependentsOf(operations);
  const auto before = [&](int32_t op) -> const std::vector<int32_t>& {
    return operations[Index(op)].waiting_for;
  };
  const auto after = [&](int32_t op) -> const std::vector<int32_t>& {
    return dependents[Index(op)];
  };
  const Marks to_uploads = Reached(operations.size(), uploads, before);
  Marks between = Reached(operations.size(), downloads, after);
  for (size_t op = 0; op < operations.size(); ++op) between[op] = between[op] && to_uploads[op];
  for (const int32_t upload : uploads) {
    if (!between[Index(upload)])
      return Unknown(
          absl::StrCat("upload \"", operations[Index(upload)].name, "\" waits for no download"));
  }
  const int32_t cut = FindCut(operations, between);
  if (cut < 0) {
    return Unknown(absl::StrCat("no computation waits for all ", downloads.size(),
                                " downloads and is waited for by all ", uploads.size(),
                                " uploads, so that gradients do not begin at one place"));
  }
  std::vector<int32_t> kept = downloads;
  kept.push_back(cut);
  const Marks forward = Reached(operations.size(), std::move(kept), before);
  for (const int32_t upload : uploads) {
    if (!forward[Index(upload)]) continue;
    return Unknown(
        absl::StrCat("a download waits for upload \"", operations[Index(upload)].name, "\""));
  }
  return KeepOnly(profile, forward);
}

}  // namespace stepcast
