#include "core/advise/recomputation.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/advise/fusion_costs.h"
#include "core/advise/strategy.h"
#include "core/base/error.h"
#include "core/base/index.h"

namespace stepcast {

namespace {

// Segments that are tried, at most.
constexpr int32_t kMaxSegments = 64;

// Words in the name of an operation. Whole ones are too short to be looked for inside others.
struct Words {
  std::initializer_list<std::string_view> inside;
  std::initializer_list<std::string_view> whole;
};
// Cheap, although some have parameters.
const Words kNormalizations{{"norm"}, {"bn", "ln", "lrn"}};
// Neither cheap nor with a gradient of their own: products, and what reads several outputs.
const Words kDear{{"conv", "matmul", "linear", "dense", "gemm", "score", "context", "attention",
                   "attn", "embed", "lstm", "gru", "rnn", "einsum", "concat", "residual", "head"},
                  {"mm", "addmm", "bmm", "baddbmm", "fc", "add", "cat", "sum", "proj", "loss"}};

bool HasWord(const std::string& name, const Words& words) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  std::string word;
  std::vector<std::string> all;
  for (const char c : name + " ") {
    if (is_letter(c)) {
      word.push_back(c);
    } else if (!word.empty()) {
      all.push_back(std::exchange(word, {}));
    }
  }
  return std::any_of(words.inside.begin(), words.inside.end(),
                     [&](std::string_view each) { return name.find(each) != std::string::npos; }) ||
         std::any_of(words.whole.begin(), words.whole.end(), [&](std::string_view each) {
           return std::find(all.begin(), all.end(), each) != all.end();
         });
}

}  // namespace

bool IsCheapOutput(std::string_view name, bool has_gradient) {
  std::string last(name.substr(name.find_last_of("/.") + 1));
  for (char& c : last) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return HasWord(last, kNormalizations) || (!has_gradient && !HasWord(last, kDear));
}

Recomputation::Recomputation(const Profile& profile, const MemoryModel& model)
    : profile_(profile), parameter_bytes_(ParameterBytes(profile) * model.parameter_copies) {
  FindPairs();
  if (parts_.empty()) FindLinks();
  const FusionCosts costs(profile, {}, std::nullopt);
  for (const int64_t bytes : model.kept_bytes) other_bytes_ += static_cast<double>(bytes);
  for (Part& part : parts_) {
    part.kept_bytes = static_cast<double>(model.kept_bytes[Index(part.forward)]);
    part.seconds = costs.SecondsOf(part.forward);
    if (keeps_outputs_) part.output_bytes = part.kept_bytes;
    other_bytes_ -= part.kept_bytes;
  }
  FindCheapRuns();
}

// Backward operations that gradients wait for.
std::vector<uint8_t> Recomputation::GradientsMakers() const {
  std::vector<uint8_t> makes(profile_.operations().size(), 0);
  for (const Operation& operation : profile_.operations()) {
    if (!IsGradient(operation)) continue;
    for (const int32_t before : operation.waiting_for) makes[Index(before)] = 1;
  }
  return makes;
}

void Recomputation::FindPairs() {
  const std::vector<uint8_t> makes = GradientsMakers();
  for (const UndonePair& pair : UndonePairsOf(profile_)) {
    const Operation& operation = profile_.operations()[Index(pair.forward)];
    parts_.push_back({.forward = pair.forward,
                      .backward = pair.backward,
                      .output_bytes = static_cast<double>(operation.output_bytes),
                      .has_gradient = true,
                      .is_cheap = IsCheapOutput(pair.name, makes[Index(pair.backward)] != 0)});
    keeps_outputs_ = keeps_outputs_ && (operation.output_bytes == 0 ||
                                        operation.output_bytes == operation.kept_bytes);
  }
}

void Recomputation::FindLinks() {
  const std::vector<Operation>& operations = profile_.operations();
  const std::vector<uint8_t> makes = GradientsMakers();
  keeps_outputs_ = false;
  std::vector<int32_t> place(operations.size(), -1);  // among the parts
  std::vector<uint8_t> has_gradient;
  for (const std::vector<int32_t>& stream : StreamOrders(profile_)) {
    for (const int32_t operation : stream) {
      const Operation& each = operations[Index(operation)];
      if (each.pass == Pass::kForward) {
        place[Index(operation)] = static_cast<int32_t>(parts_.size());
        has_gradient.push_back(0);
        parts_.push_back({.forward = operation,
                          .backward = -1,
                          .output_bytes = static_cast<double>(each.output_bytes)});
      }
      if (each.pass != Pass::kBackward) continue;
      for (const int32_t before : each.waiting_for) {
        const int32_t part = place[Index(before)];
        if (part < 0) continue;
        if (parts_[Index(part)].backward < 0) parts_[Index(part)].backward = operation;
        has_gradient[Index(part)] |= makes[Index(operation)];
      }
    }
  }
  while (!parts_.empty() && parts_.back().backward < 0) parts_.pop_back();
  for (size_t i = parts_.size(); i-- > 0;) {
    Part& part = parts_[i];
    // Its functions ran with those of the part behind it.
    if (part.backward < 0) part.backward = parts_[i + 1].backward;
    part.is_cheap = IsCheapOutput(operations[Index(part.forward)].name, has_gradient[i] != 0);
  }
}

void Recomputation::FindCheapRuns() {
  for (size_t i = 1; i + 1 < parts_.size(); ++i) {
    if (!parts_[i].is_cheap || parts_[i - 1].is_cheap || parts_[i - 1].output_bytes == 0) continue;
    Run run{.first = i, .last = i};
    while (run.last + 2 < parts_.size() && parts_[run.last + 1].is_cheap) ++run.last;
    for (size_t each = run.first; each <= run.last; ++each) {
      run.saved_bytes += parts_[each].kept_bytes;
      run.seconds += parts_[each].seconds;
    }
    run.saved_bytes -= InputBytes(run);
    if (run.saved_bytes > 0) cheap_.push_back(run);
  }
  std::stable_sort(cheap_.begin(), cheap_.end(), [](const Run& a, const Run& b) {
    return a.saved_bytes * b.seconds > b.saved_bytes * a.seconds;
  });
}

double Recomputation::InputBytes(const Run& run) const {
  return keeps_outputs_ || run.first == 0 ? 0 : parts_[run.first - 1].output_bytes;
}

int32_t Recomputation::Most(Recomputed what) const {
  if (what == Recomputed::kCheapOutputs) return static_cast<int32_t>(cheap_.size());
  return static_cast<int32_t>(std::count_if(
      parts_.begin(), parts_.end(), [](const Part& part) { return part.output_bytes > 0; }));
}

std::vector<Recomputation::Run> Recomputation::Segments(int32_t count) const {
  double all = 0;
  for (const Part& part : parts_) all += part.kept_bytes;
  std::vector<Run> runs;
  Run run;
  double filled = 0;
  int32_t made = 1;
  for (size_t i = 0; i + 1 < parts_.size() && made < count; ++i) {
    filled += parts_[i].kept_bytes;
    if (parts_[i].output_bytes == 0 || filled < all * made / count) continue;
    ++made;
    // The output that the next segment begins from is kept, or held besides what was.
    if (!keeps_outputs_ || i > run.first) {
      run.last = keeps_outputs_ ? i - 1 : i;
      runs.push_back(run);
    }
    run.first = i + 1;
  }
  return runs;
}

std::vector<Recomputation::Run> Recomputation::RunsOf(Recomputed what, int32_t count) const {
  if (what == Recomputed::kSegments) return Segments(count);
  std::vector<Run> runs(cheap_.begin(), cheap_.begin() + std::min(count, Most(what)));
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.first < b.first; });
  return runs;
}

double Recomputation::PeakOf(const std::vector<Run>& runs) const {
  std::vector<double> inputs(parts_.size(), 0);  // by the part whose output it is
  for (const Run& run : runs) {
    if (run.first > 0) inputs[run.first - 1] = InputBytes(run);
  }
  double held = other_bytes_;
  double peak = held;
  double before = 0;  // of the gradient of the part before
  double behind = 0;  // of the run that ends there
  auto run = runs.begin();
  double again = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    double ended = 0;
    held += inputs[i];
    if (run != runs.end() && i >= run->first) {
      again += part.kept_bytes;
    } else {
      held += part.kept_bytes;
    }
    const double gradient = !part.has_gradient ? 0 : part.output_bytes;
    peak = std::max(peak, held + again + behind + gradient + before);
    before = gradient;
    if (run != runs.end() && i == run->last) {
      ended = std::exchange(again, 0);
      ++run;
    }
    behind = ended;
  }
  return peak;
}

absl::Status Recomputation::CheckAny(Recomputed what) const {
  const bool is_cheap = what == Recomputed::kCheapOutputs;
  if (Most(what) >= (is_cheap ? 1 : 2)) return absl::OkStatus();
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   parts_.size() < 2
                       ? "nothing can be computed again: no two operations forward/NAME that keep "
                         "their output have a backward/NAME, and no two parts of a recorded "
                         "forward pass are undone apart"
                   : is_cheap ? "nothing cheap lies between two outputs that are kept"
                              : "it is not known what the parts of the forward pass hand on",
                   {.reason = "NOTHING_TO_RECOMPUTE"});
}

absl::StatusOr<MemoryPlan> Recomputation::Plan(Recomputed what, int32_t count) const {
  if (absl::Status status = CheckAny(what); !status.ok()) return status;
  return Write(what, RunsOf(what, count));
}

absl::StatusOr<MemoryPlan> Recomputation::Fitting(Recomputed what, double budget_bytes,
                                                  StopCheck stop) const {
  if (absl::Status status = CheckAny(what); !status.ok()) return status;
  const int32_t most =
      what == Recomputed::kSegments ? std::min(Most(what), kMaxSegments) : Most(what);
  std::vector<Run> best;
  double least = 0;
  for (int32_t count = what == Recomputed::kSegments ? 2 : 1; count <= most; ++count) {
    if (absl::Status status = stop(); !status.ok()) return status;
    std::vector<Run> runs = RunsOf(what, count);
    const double bytes = parameter_bytes_ + PeakOf(runs);
    if (best.empty() || bytes < least || bytes <= budget_bytes) {
      best = std::move(runs);
      least = bytes;
    }
    if (least <= budget_bytes) break;
  }
  return Write(what, best);
}

// A place in the step at which operations are computed again, and their length.
struct Recomputation::Insertion {
  int32_t before = 0;  // the backward operation
  std::vector<int32_t> again;

  int64_t LengthOf(const RecordedStep& step) const {
    int64_t length = 0;
    for (const int32_t forward : again) length += LengthNs(step, forward);
    return length;
  }
};

RecordedStep Recomputation::StepOf(const RecordedStep& old,
                                   const std::vector<Insertion>& insertions) {
  struct Delay {
    int64_t at = 0;
    int64_t before = 0;  // of all that come earlier, or equally early before it in the list
    size_t insertion = 0;
  };
  std::vector<Delay> delays;
  for (size_t i = 0; i < insertions.size(); ++i)
    delays.push_back({.at = old.start_ns[Index(insertions[i].before)], .insertion = i});
  std::stable_sort(delays.begin(), delays.end(),
                   [](const Delay& a, const Delay& b) { return a.at < b.at; });
  int64_t all = 0;
  std::vector<int64_t> begins(insertions.size());
  for (Delay& delay : delays) {
    delay.before = all;
    begins[delay.insertion] = delay.at + all;
    all += insertions[delay.insertion].LengthOf(old);
  }
  RecordedStep step = old;
  for (size_t i = 0; i < old.start_ns.size(); ++i) {
    const auto later =
        std::upper_bound(delays.begin(), delays.end(), old.start_ns[i],
                         [](int64_t start, const Delay& delay) { return start < delay.at; });
    const int64_t shift = later == delays.end() ? all : later->before;
    step.start_ns[i] += shift;
    step.end_ns[i] += shift;
  }
  for (size_t i = 0; i < insertions.size(); ++i) {
    int64_t now = begins[i];
    for (const int32_t forward : insertions[i].again) {
      step.start_ns.push_back(now);
      now += LengthNs(old, forward);
      step.end_ns.push_back(now);
    }
  }
  return step;
}

absl::StatusOr<MemoryPlan> Recomputation::Write(Recomputed what,
                                                const std::vector<Run>& runs) const {
  ProfileDraft draft = profile_.content();
  UnusedNames names(profile_);
  std::vector<Insertion> insertions;
  std::vector<std::string> recomputed;
  for (const Run& run : runs) {
    Insertion& insertion = insertions.emplace_back();
    insertion.before = parts_[run.last + 1].backward;
    if (const double input = InputBytes(run); input > 0)
      draft.operations[Index(parts_[run.first - 1].forward)].kept_bytes += std::llround(input);
    std::vector<int32_t> waiting_for = draft.operations[Index(insertion.before)].waiting_for;
    for (size_t i = run.first; i <= run.last; ++i) {
      const int32_t forward = parts_[i].forward;
      Operation again = profile_.operations()[Index(forward)];
      recomputed.push_back(again.name);
      again.name = names.Make("recompute/", again.name.substr(again.name.find('/') + 1));
      again.waiting_for =
          std::exchange(waiting_for, {static_cast<int32_t>(draft.operations.size())});
      again.parameter.clear();
      again.output_bytes = 0;
      draft.operations[Index(forward)].kept_bytes = 0;
      draft.operations.push_back(std::move(again));
      insertion.again.push_back(forward);
    }
    std::vector<int32_t>& after = draft.operations[Index(insertion.before)].waiting_for;
    after.push_back(waiting_for.front());
    std::sort(after.begin(), after.end());
  }
  RewriteSteps(draft, [&](const RecordedStep& old) { return StepOf(old, insertions); });
  absl::StatusOr<Profile> made = Profile::Create(std::move(draft));
  if (!made.ok()) return made.status();
  MemoryPlan plan{.pass = MemoryPass::kRecomputation,
                  .profile = *std::move(made),
                  .memory = {.parameter_bytes = parameter_bytes_, .output_bytes = PeakOf(runs)},
                  .recomputed = std::move(recomputed)};
  plan.recomputes = what == Recomputed::kSegments
                        ? absl::StrCat(runs.size() + 1, " segments")
                        : absl::StrCat(plan.recomputed.size(), " cheap outputs");
  return plan;
}

}  // namespace stepcast
