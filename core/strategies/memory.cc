#include "core/strategies/memory.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/strategies/strategy.h"

namespace stepcast {

namespace {

// Forward operations that keep something, in the order of their streams.
std::vector<int32_t> KeepersOf(const Profile& profile, const MemoryModel& model) {
  std::vector<int32_t> keepers;
  for (const std::vector<int32_t>& stream : StreamOrders(profile)) {
    for (const int32_t operation : stream) {
      if (model.kept_bytes[Index(operation)] > 0) keepers.push_back(operation);
    }
  }
  return keepers;
}

double ParameterBytes(const Profile& profile, const MemoryModel& model) {
  double bytes = 0;
  for (const Operation& operation : profile.operations()) {
    if (IsGradient(operation)) bytes += static_cast<double>(operation.size_bytes);
  }
  return bytes * model.parameter_copies;
}

// The bytes that an operation keeps, and of them the output whose gradient is held while it is
// undone.
struct Kept {
  int64_t bytes = 0;
  int64_t gradient_bytes = 0;
};

// Bytes at the peak of so many kept outputs, `before` of which are under way before the first.
double PeakOf(const std::vector<Kept>& outputs, double before) {
  double kept = before;
  double peak = before;
  int64_t previous = 0;
  for (const Kept& output : outputs) {
    kept += static_cast<double>(output.bytes);
    peak = std::max(
        peak, kept + static_cast<double>(output.gradient_bytes) + static_cast<double>(previous));
    previous = output.gradient_bytes;
  }
  return peak;
}

// A forward operation that keeps its output, and the backward one that undoes it.
struct Pair {
  int32_t forward = 0;
  int32_t backward = 0;
};

std::vector<Pair> PairsOf(const Profile& profile, const MemoryModel& model) {
  std::map<std::string_view, int32_t> backward;
  const std::vector<Operation>& operations = profile.operations();
  for (size_t i = 0; i < operations.size(); ++i) {
    absl::string_view name = operations[i].name;
    if (operations[i].resource == Resource::kWorker && absl::ConsumePrefix(&name, "backward/"))
      backward[{name.data(), name.size()}] = static_cast<int32_t>(i);
  }
  std::vector<Pair> pairs;
  for (const int32_t keeper : KeepersOf(profile, model)) {
    absl::string_view name = operations[Index(keeper)].name;
    if (!absl::ConsumePrefix(&name, "forward/")) continue;
    const auto found = backward.find({name.data(), name.size()});
    if (found != backward.end()) pairs.push_back({.forward = keeper, .backward = found->second});
  }
  return pairs;
}

// The first pair of each segment, of about the same bytes, and past the last.
std::vector<size_t> SegmentsOf(const std::vector<Pair>& pairs, const MemoryModel& model,
                               int32_t segments) {
  double all = 0;
  for (const Pair& pair : pairs) all += static_cast<double>(model.kept_bytes[Index(pair.forward)]);
  std::vector<size_t> firsts = {0};
  double filled = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    filled += static_cast<double>(model.kept_bytes[Index(pairs[i].forward)]);
    const auto made = static_cast<double>(firsts.size());
    if (static_cast<int32_t>(firsts.size()) < segments && i + 1 < pairs.size() &&
        filled >= all * made / segments)
      firsts.push_back(i + 1);
  }
  firsts.push_back(pairs.size());
  return firsts;
}

std::string Unused(const std::string& prefix, const std::string& name,
                   std::set<std::string>& names) {
  std::string made = prefix + name;
  while (!names.insert(made).second) made += "'";
  return made;
}

std::set<std::string> NamesOf(const Profile& profile) {
  std::set<std::string> names;
  for (const Operation& operation : profile.operations()) names.insert(operation.name);
  return names;
}

}  // namespace

const char* NameOf(MemoryPass pass) {
  switch (pass) {
    case MemoryPass::kNone:
      return "NONE";
    case MemoryPass::kRecomputation:
      return "RECOMPUTATION";
    case MemoryPass::kGradientAccumulation:
      return "GRADIENT_ACCUMULATION";
  }
  return "";
}

MemoryEstimate EstimateMemory(const Profile& profile, const MemoryModel& model) {
  std::set<int32_t> paired;
  for (const Pair& pair : PairsOf(profile, model)) paired.insert(pair.forward);
  std::vector<Kept> outputs;
  for (const int32_t keeper : KeepersOf(profile, model)) {
    const int64_t bytes = model.kept_bytes[Index(keeper)];
    outputs.push_back({.bytes = bytes, .gradient_bytes = paired.contains(keeper) ? bytes : 0});
  }
  return {.parameter_bytes = ParameterBytes(profile, model), .output_bytes = PeakOf(outputs, 0)};
}

int32_t MostSegments(const Profile& profile, const MemoryModel& model) {
  return static_cast<int32_t>(PairsOf(profile, model).size());
}

absl::StatusOr<MemoryPlan> Recompute(const Profile& profile, const MemoryModel& model,
                                     int32_t segments) {
  const std::vector<Pair> pairs = PairsOf(profile, model);
  if (pairs.size() < 2) {
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     "nothing can be computed again: no two operations forward/NAME that keep "
                     "their output have a backward/NAME",
                     {.reason = "NOTHING_TO_RECOMPUTE"});
  }
  const std::vector<size_t> firsts = SegmentsOf(pairs, model, segments);
  // Outputs that are kept besides the pairs', all along.
  double others = 0;
  std::set<int32_t> paired;
  for (const Pair& pair : pairs) paired.insert(pair.forward);
  for (size_t i = 0; i < model.kept_bytes.size(); ++i) {
    if (!paired.contains(static_cast<int32_t>(i)))
      others += static_cast<double>(model.kept_bytes[i]);
  }

  ProfileDraft draft = profile.content();
  std::set<std::string> names = NamesOf(profile);
  struct Insertion {
    int32_t before = 0;  // the backward operation
    std::vector<int32_t> again;
  };
  std::vector<Insertion> insertions;
  double peak = 0;
  double checkpoints = others;
  for (size_t s = 0; s + 1 < firsts.size(); ++s) {
    std::vector<Kept> outputs;
    Insertion insertion;
    for (size_t i = firsts[s]; i < firsts[s + 1]; ++i) {
      const int64_t bytes = model.kept_bytes[Index(pairs[i].forward)];
      outputs.push_back({.bytes = bytes, .gradient_bytes = bytes});
      if (i + 1 < firsts[s + 1]) insertion.again.push_back(pairs[i].forward);
    }
    peak = std::max(peak, PeakOf(outputs, checkpoints));
    checkpoints += static_cast<double>(outputs.back().bytes);
    insertion.before = pairs[firsts[s + 1] - 1].backward;
    if (s + 2 < firsts.size() && !insertion.again.empty())
      insertions.push_back(std::move(insertion));
  }
  for (const Insertion& insertion : insertions) {
    std::vector<int32_t> waiting_for = draft.operations[Index(insertion.before)].waiting_for;
    for (const int32_t forward : insertion.again) {
      Operation again = profile.operations()[Index(forward)];
      again.name =
          Unused("recompute/", again.name.substr(std::string_view("forward/").size()), names);
      again.waiting_for = waiting_for;
      again.parameter.clear();
      waiting_for = {static_cast<int32_t>(draft.operations.size())};
      draft.operations[Index(forward)].kept_bytes = 0;
      draft.operations.push_back(std::move(again));
    }
    std::vector<int32_t>& after = draft.operations[Index(insertion.before)].waiting_for;
    after.push_back(waiting_for.front());
    std::sort(after.begin(), after.end());
  }
  RewriteSteps(draft, [&](const RecordedStep& old) {
    RecordedStep step = old;
    const size_t size = old.start_ns.size();
    for (const Insertion& insertion : insertions) {
      const int64_t at = old.start_ns[Index(insertion.before)];
      int64_t begin = at;
      for (const Insertion& other : insertions) {
        if (old.start_ns[Index(other.before)] >= at) continue;
        for (const int32_t forward : other.again)
          begin += old.end_ns[Index(forward)] - old.start_ns[Index(forward)];
      }
      int64_t shift = 0;
      for (const int32_t forward : insertion.again) {
        const int64_t length = old.end_ns[Index(forward)] - old.start_ns[Index(forward)];
        step.start_ns.push_back(begin + shift);
        step.end_ns.push_back(begin + shift + length);
        shift += length;
      }
      for (size_t i = 0; i < size; ++i) {
        if (old.start_ns[i] < at) continue;
        step.start_ns[i] += shift;
        step.end_ns[i] += shift;
      }
    }
    return step;
  });
  std::vector<std::string> recomputed;
  for (const Insertion& insertion : insertions) {
    for (const int32_t forward : insertion.again)
      recomputed.push_back(profile.operations()[Index(forward)].name);
  }
  absl::StatusOr<Profile> made = Profile::Create(std::move(draft));
  if (!made.ok()) return made.status();
  return MemoryPlan{
      .pass = MemoryPass::kRecomputation,
      .profile = *std::move(made),
      .memory = {.parameter_bytes = ParameterBytes(profile, model), .output_bytes = peak},
      .segments = static_cast<int32_t>(firsts.size()) - 1,
      .recomputed = std::move(recomputed)};
}

absl::StatusOr<MemoryPlan> Accumulate(const Profile& profile, const MemoryModel& model,
                                      double share) {
  const std::vector<Operation>& operations = profile.operations();
  // Operations that wait for a gradient's exchange, directly or not.
  std::vector<std::vector<int32_t>> dependents(operations.size());
  std::vector<int32_t> left;
  std::vector<uint8_t> waits(operations.size(), 0);
  for (size_t i = 0; i < operations.size(); ++i) {
    for (const int32_t before : operations[i].waiting_for)
      dependents[Index(before)].push_back(static_cast<int32_t>(i));
    if (!IsGradient(operations[i])) continue;
    waits[i] = 1;
    left.push_back(static_cast<int32_t>(i));
  }
  while (!left.empty()) {
    const int32_t operation = left.back();
    left.pop_back();
    for (const int32_t after : dependents[Index(operation)]) {
      if (std::exchange(waits[Index(after)], uint8_t{1}) == 0) left.push_back(after);
    }
  }
  // A collective of another kind that a computation waits for is there once, before both halves,
  // as is what it waits for itself.
  std::vector<uint8_t> is_once(operations.size(), 0);
  for (size_t i = 0; i < operations.size(); ++i) {
    if (waits[i] || operations[i].resource != Resource::kWorker) continue;
    for (const int32_t before : operations[i].waiting_for) {
      if (operations[Index(before)].resource != Resource::kWorker) left.push_back(before);
    }
  }
  while (!left.empty()) {
    const int32_t operation = left.back();
    left.pop_back();
    if (std::exchange(is_once[Index(operation)], uint8_t{1}) != 0) continue;
    const std::vector<int32_t>& before = operations[Index(operation)].waiting_for;
    left.insert(left.end(), before.begin(), before.end());
  }
  // First halves stand before all the rest.
  ProfileDraft draft = profile.content();
  draft.operations.clear();
  std::set<std::string> names = NamesOf(profile);
  std::vector<int32_t> half(operations.size(), -1);
  std::vector<int32_t> sources;
  for (size_t i = 0; i < operations.size(); ++i) {
    if (waits[i] || is_once[i] || operations[i].resource != Resource::kWorker) continue;
    half[i] = static_cast<int32_t>(sources.size());
    sources.push_back(static_cast<int32_t>(i));
  }
  const auto halves = static_cast<int32_t>(sources.size());
  if (halves == 0) {
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     "nothing can be done in halves: every computation waits for gradients, or "
                     "another collective for it",
                     {.reason = "NOTHING_TO_HALVE"});
  }
  std::vector<uint8_t> is_waited_for(Index(halves), 0);
  for (const int32_t source : sources) {
    Operation first = operations[Index(source)];
    first.name = Unused("half/", first.name, names);
    first.parameter.clear();
    first.kept_bytes = (first.kept_bytes + 1) / 2;
    for (int32_t& before : first.waiting_for) {
      // A collective of another kind, or a download, is there once, for both halves.
      if (half[Index(before)] < 0) {
        before += halves;
        continue;
      }
      before = half[Index(before)];
      is_waited_for[Index(before)] = 1;
    }
    draft.operations.push_back(std::move(first));
  }
  std::vector<int32_t> last_halves;
  for (int32_t i = 0; i < halves; ++i) {
    if (!is_waited_for[Index(i)]) last_halves.push_back(i);
  }
  for (size_t i = 0; i < operations.size(); ++i) {
    Operation second = operations[i];
    for (int32_t& before : second.waiting_for) before += halves;
    // The first halves wait for none of those that wait for them.
    const bool is_first =
        std::all_of(operations[i].waiting_for.begin(), operations[i].waiting_for.end(),
                    [&](int32_t before) { return is_once[Index(before)] != 0; });
    if (half[i] >= 0 && is_first) {
      second.waiting_for.insert(second.waiting_for.end(), last_halves.begin(), last_halves.end());
      std::sort(second.waiting_for.begin(), second.waiting_for.end());
    }
    if (half[i] >= 0) second.kept_bytes = (second.kept_bytes + 1) / 2;
    draft.operations.push_back(std::move(second));
  }
  const auto scaled = [share](int64_t ns) { return std::llround(static_cast<double>(ns) * share); };
  RewriteSteps(draft, [&](const RecordedStep& step) {
    RecordedStep made;
    int64_t end_of_halves = 0;
    int64_t begin = step.start_ns.front();
    for (const int64_t start : step.start_ns) begin = std::min(begin, start);
    for (size_t i = 0; i < operations.size(); ++i) {
      if (is_once[i]) begin = std::max(begin, step.end_ns[i]);
    }
    for (const int32_t source : sources) {
      made.start_ns.push_back(begin +
                              scaled(std::max<int64_t>(0, step.start_ns[Index(source)] - begin)));
      made.end_ns.push_back(made.start_ns.back() +
                            scaled(step.end_ns[Index(source)] - step.start_ns[Index(source)]));
      end_of_halves = std::max(end_of_halves, made.end_ns.back() - begin);
    }
    for (size_t i = 0; i < operations.size(); ++i) {
      if (is_once[i]) {
        made.start_ns.push_back(step.start_ns[i]);
        made.end_ns.push_back(step.end_ns[i]);
        continue;
      }
      const int64_t length = step.end_ns[i] - step.start_ns[i];
      const int64_t start = std::max<int64_t>(0, step.start_ns[i] - begin);
      const bool is_half = half[i] >= 0;
      made.start_ns.push_back(begin + end_of_halves + (is_half ? scaled(start) : start));
      made.end_ns.push_back(made.start_ns.back() + (is_half ? scaled(length) : length));
    }
    return made;
  });
  absl::StatusOr<Profile> made = Profile::Create(std::move(draft));
  if (!made.ok()) return made.status();
  MemoryEstimate memory = EstimateMemory(profile, model);
  memory.output_bytes /= 2;
  return MemoryPlan{
      .pass = MemoryPass::kGradientAccumulation, .profile = *std::move(made), .memory = memory};
}

}  // namespace stepcast
