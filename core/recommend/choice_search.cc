#include "core/recommend/choice_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "core/base/distributions.h"
#include "core/communication/full_sharding.h"
#include "core/communication/job.h"
#include "core/predict/pipeline_job.h"

namespace stepcast {

namespace {

// So few choices are all tried: a curve is worth that much.
constexpr size_t kTriedAll = 8;
// A choice that the intervals do not tell from the best, and that loses no more, as a share of the
// objective, is as good.
constexpr double kLossOfATie = 0.02;
// So few tries are all run in full in the end: a row that is shown should say what a prediction of
// it does.
constexpr size_t kAllFinished = 16;
// Choices tried between two looks at the results, wherever the runs are made.
constexpr size_t kTriedAtOnce = 4;

bool IsCoarse(int32_t workers, const RecommendationQuery& query) {
  return query.CandidateBelow(workers) == 0 || query.CandidateAbove(workers) == 0 ||
         (workers & (workers - 1)) == 0;
}

}  // namespace

ChoiceSearch::ChoiceSearch(const Profile& profile, const RecommendationQuery& query,
                           const KnownRuns& known)
    : profile_(profile),
      query_(query),
      weighing_(query),
      points_(profile, query.options, known, query.shared ? &*query.shared : nullptr) {
  open_.resize(static_cast<size_t>(query.max_workers - query.min_workers) + 1);
  for (const int32_t workers : query.FirstCounts())
    open_[static_cast<size_t>(workers - query.min_workers)] = true;
  for (const Scenario& scenario : query.server_choices) {
    if (query.shared.has_value()) {
      AddRow(scenario, ThroughputBound());
      continue;
    }
    if (scenario.pipeline.has_value()) {
      AddRow(scenario, ThroughputBound(PlanPipeline(profile, scenario), scenario));
      continue;
    }
    const absl::StatusOr<JobProgram> job =
        BuildJobProgram(profile, WithShortestUpdates(scenario, query.max_workers), NeverStop);
    if (!job.ok()) {
      setup_ = job.status();
      return;
    }
    AddRow(scenario, ThroughputBound(*job, scenario));
  }
}

void ChoiceSearch::AddRow(const Scenario& scenario, ThroughputBound bound) {
  rows_.push_back(
      {.scenario = scenario, .bound = std::move(bound), .curve = {}, .bounds = {}, .points = {}});
  rows_.back().points.resize(open_.size());
  SetBounds(rows_.back());
}

// Once for what is open: what collectives take is looked at again and again while the search goes
// on. A bound never falls with workers, so that of a larger number holds, too.
void ChoiceSearch::SetBounds(Row& row) const {
  row.bounds.assign(open_.size(), 0);
  double next = 0;
  for (size_t i = open_.size(); i-- > 0;) {
    if (open_[i]) next = row.bound.StepsPerSecond(query_.min_workers + static_cast<int32_t>(i));
    row.bounds[i] = next;
  }
}

bool ChoiceSearch::OpenAroundTheBest() {
  bool any = false;
  for (const size_t tried : {*best_, *chosen_}) {
    const int32_t workers = tried_[tried].choice.workers;
    for (const int32_t way : {-1, 1}) {
      for (int32_t count = workers + way;
           count >= query_.min_workers && count <= query_.max_workers && !IsOpen(count);
           count += way) {
        if (!query_.IsCandidate(count)) continue;
        open_[static_cast<size_t>(count - query_.min_workers)] = true;
        any = true;
      }
    }
  }
  if (!any) return false;
  for (Row& row : rows_) SetBounds(row);
  return true;
}

double ChoiceSearch::BoundOf(const Cell& cell) const {
  const Row& row = rows_[cell.row];
  return row.bounds[Index(cell.workers - query_.min_workers)] *
         static_cast<double>(row.scenario.ExamplesPerStep(profile_));
}

// No efficiency is ruled out where one worker's pace is not known.
Score ChoiceSearch::ScoreOf(const Cell& cell, double examples_per_second) const {
  const double one_worker = rows_[cell.row].one_worker;
  return weighing_.ScoreOf(ChoiceOf(cell),
                           {.examples_per_second = examples_per_second,
                            .one_worker_examples_per_second =
                                one_worker > 0 ? one_worker : examples_per_second / cell.workers});
}

bool ChoiceSearch::IsPreferred(const Choice& a, const Choice& b) const {
  const auto cost = [&](const Choice& choice) {
    return query_.prices.has_value()
               ? choice.parameter_servers * query_.prices->parameter_server_hour
               : 0;
  };
  return std::tuple(a.workers, cost(a), a.parameter_servers) <
         std::tuple(b.workers, cost(b), b.parameter_servers);
}

bool ChoiceSearch::IsTied(const TriedChoice& tried) const {
  const double best = tried_[*best_].score.value;
  return MayBeBest(tried) && best - tried.score.value <= kLossOfATie * std::abs(best);
}

bool ChoiceSearch::MayBeBest(const TriedChoice& tried) const {
  const TriedChoice& best = tried_[*best_];
  if (tried.score.miss != best.score.miss) return false;
  // Means of independent runs are compared so: by what both intervals together explain.
  const double explained =
      std::hypot(best.score.value - best.lowest_value, tried.highest_value - tried.score.value);
  return !Score{.value = best.score.value - explained}.ClearlyAbove({.value = tried.score.value});
}

bool ChoiceSearch::CouldWin(const Cell& cell, const Score& ceiling) const {
  if (!best_.has_value()) return true;
  const TriedChoice& best = tried_[*best_];
  if (ceiling.ClearlyAbove(best.score)) return true;
  const bool could_tie =
      ceiling.miss == 0 && best.score.miss == 0 &&
      ceiling.value >=
          std::max(best.lowest_value, best.score.value - kLossOfATie * std::abs(best.score.value));
  return could_tie && IsPreferred(ChoiceOf(cell), tried_[*chosen_].choice);
}

// A running job's own choice is what all others are weighed against.
std::vector<ChoiceSearch::Cell> ChoiceSearch::Seeds() const {
  std::vector<Cell> seeds;
  // Shares of a batch are few, and no bound of one says anything of another.
  const bool all = query_.choices() <= kTriedAll || query_.shared.has_value();
  for (size_t row = 0; row < rows_.size(); ++row) {
    for (int32_t workers = query_.min_workers; workers <= query_.max_workers; ++workers) {
      const Cell cell{.row = row, .workers = workers};
      if (!IsOpen(workers)) continue;
      if (all || (query_.current.has_value() && !weighing_.Moves(ChoiceOf(cell))))
        seeds.push_back(cell);
    }
  }
  return seeds;
}

// The prospects: what could still win, at most one of each gap between two tried ones: another
// would be tried to learn the same.
std::vector<ChoiceSearch::Prospect> ChoiceSearch::Prospects(bool coarse) const {
  std::vector<Prospect> prospects;
  const auto is_better = [&](const Prospect& a, const Prospect& b) {
    return a.ceiling != b.ceiling ? a.ceiling > b.ceiling
                                  : IsPreferred(ChoiceOf(a.cell), ChoiceOf(b.cell));
  };
  for (size_t row = 0; row < rows_.size(); ++row) {
    std::optional<Prospect> best_of_gap;
    for (int32_t workers = query_.min_workers; workers <= query_.max_workers + 1; ++workers) {
      const Cell cell{.row = row, .workers = workers};
      if (workers > query_.max_workers || IsTried(cell)) {
        if (best_of_gap.has_value()) prospects.push_back(*best_of_gap);
        best_of_gap.reset();
        continue;
      }
      if (!IsOpen(workers) || (coarse && !IsCoarse(workers, query_))) continue;
      const double shape = coarse ? std::numeric_limits<double>::infinity()
                                  : rows_[row].curve.At(workers) * (1 + roughness_);
      const Prospect prospect{.cell = cell,
                              .ceiling = ScoreOf(cell, std::min(BoundOf(cell), shape))};
      if (!CouldWin(cell, prospect.ceiling)) continue;
      if (!best_of_gap.has_value() || is_better(prospect, *best_of_gap)) best_of_gap = prospect;
    }
  }
  std::stable_sort(prospects.begin(), prospects.end(), is_better);
  return prospects;
}

std::vector<ChoiceSearch::Cell> ChoiceSearch::NextCells() const {
  std::vector<Prospect> prospects = Prospects(true);
  if (prospects.empty()) prospects = Prospects(false);
  std::vector<Cell> cells;
  for (size_t i = 0; i < std::min(prospects.size(), kTriedAtOnce); ++i)
    cells.push_back(prospects[i].cell);
  return cells;
}

// One less, one more, and the most: what the reason speaks of.
std::vector<ChoiceSearch::Cell> ChoiceSearch::NeighboursOfChosen() const {
  const Choice& chosen = tried_[*chosen_].choice;
  std::vector<Cell> cells;
  for (size_t row = 0; row < rows_.size(); ++row) {
    if (rows_[row].scenario.server_count() != chosen.parameter_servers) continue;
    for (const int32_t workers :
         {query_.CandidateBelow(chosen.workers), query_.CandidateAbove(chosen.workers),
          query_.CandidateBelow(query_.max_workers + 1)}) {
      const Cell cell{.row = row, .workers = workers};
      if (IsOpen(workers) && !IsTried(cell)) cells.push_back(cell);
    }
  }
  return cells;
}

absl::Status ChoiceSearch::Run(StopCheck stop, const Executor& executor) {
  if (!setup_.ok()) return setup_;
  absl::Status status = Search(stop, executor);
  if (!status.ok() && !IsTimeBudgetSpent(status)) return status;
  if (!status.ok()) {
    Learn();
    if (tried_.empty()) return status;
    cut_short_ = true;
  }
  status = points_.FindBottlenecks(tried_points_, stop, executor);
  for (size_t i = 0; i < tried_.size(); ++i)
    tried_[i].prediction = points_.Summarize(tried_points_[i]);
  return status;
}

absl::Status ChoiceSearch::Search(StopCheck stop, const Executor& executor) {
  for (std::vector<Cell> cells = Seeds();; cells = NextCells()) {
    if (cells.empty() && best_.has_value()) {
      bool deepened = false;
      if (absl::Status status = RunInFull(Depth::kAsGood, stop, executor, deepened); !status.ok())
        return status;
      if (deepened || OpenAroundTheBest()) continue;
      cells = NeighboursOfChosen();
      if (cells.empty()) {
        if (tried_.size() > kAllFinished) return absl::OkStatus();
        if (absl::Status status = RunInFull(Depth::kAll, stop, executor, deepened);
            !status.ok() || !deepened)
          return status;
        // Runs of the others in full may change the order.
        continue;
      }
    }
    if (absl::Status status = Try(std::move(cells), stop, executor); !status.ok()) return status;
  }
}

absl::Status ChoiceSearch::Try(std::vector<Cell> cells, StopCheck stop, const Executor& executor) {
  // One worker is run for the speed-up of every choice, so it costs nothing more to know it.
  const size_t asked = cells.size();
  for (size_t i = 0; i < asked && IsOpen(1); ++i)
    cells.push_back({.row = cells[i].row, .workers = 1});
  for (const Cell& cell : cells) {
    if (IsTried(cell)) continue;
    const Scenario& one_worker = rows_[cell.row].scenario;
    Scenario scenario =
        query_.shared.has_value() ? one_worker.SharedAmong(cell.workers) : one_worker;
    scenario.workers = cell.workers;
    const absl::StatusOr<size_t> point = points_.Try(scenario, stop);
    if (!point.ok()) return point.status();
    PointAt(cell) = *point;
    tried_points_.push_back(*point);
  }
  if (absl::Status status = points_.RunAll(stop, executor); !status.ok()) return status;
  Learn();
  return absl::OkStatus();
}

absl::Status ChoiceSearch::RunInFull(Depth depth, StopCheck stop, const Executor& executor,
                                     bool& deepened) {
  for (const TriedChoice& tried : tried_) {
    if (tried.outcome.in_full ||
        (depth == Depth::kAsGood && !MayBeBest(tried) && &tried != &tried_[*best_]))
      continue;
    deepened = true;
    if (const absl::StatusOr<size_t> point = points_.Add(tried.prediction.scenario, stop);
        !point.ok())
      return point.status();
  }
  if (absl::Status status = points_.RunAll(stop, executor); !status.ok()) return status;
  Learn();
  return absl::OkStatus();
}

TriedChoice ChoiceSearch::Weigh(const Prediction& prediction, bool in_full) const {
  TriedChoice tried{.choice = {prediction.scenario.workers, prediction.scenario.server_count()},
                    .prediction = prediction};
  const double expected = ExpectedExamplesPerSecond(prediction);
  Pace pace{.examples_per_second = expected,
            .one_worker_examples_per_second = prediction.examples_per_second / prediction.speedup};
  tried.outcome = weighing_.OutcomeOf(tried.choice, pace);
  tried.outcome.in_full = in_full;
  tried.score = weighing_.ScoreOf(tried.choice, pace);
  // A single run may be in either regime, but the mean is what is compared.
  const double off = expected - prediction.examples_per_second;
  pace.examples_per_second = prediction.simulation_interval.lower + off;
  tried.lowest_value = weighing_.ScoreOf(tried.choice, pace).value;
  pace.examples_per_second = prediction.simulation_interval.upper + off;
  tried.highest_value = weighing_.ScoreOf(tried.choice, pace).value;
  return tried;
}

// Looks at all results again: those of choices that were run in full since have changed.
void ChoiceSearch::Learn() {
  const size_t before = tried_.size();
  tried_.clear();
  best_.reset();
  std::erase_if(tried_points_, [&](size_t point) { return !points_.HasRun(point); });
  for (size_t i = 0; i < tried_points_.size(); ++i) {
    const size_t point = tried_points_[i];
    tried_.push_back(Weigh(points_.Summarize(point), points_.InFull(point)));
    const Prediction& prediction = tried_.back().prediction;
    const auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row& candidate) {
      return candidate.scenario.server_count() == prediction.scenario.server_count();
    });
    row->one_worker = prediction.examples_per_second / prediction.speedup;
    const double expected = ExpectedExamplesPerSecond(prediction);
    if (i >= before)
      roughness_ = std::max(roughness_, row->curve.ExcessOf(prediction.scenario.workers, expected));
    row->curve.Know(prediction.scenario.workers, prediction.simulation_interval.upper + expected -
                                                     prediction.examples_per_second);
    if (!best_.has_value() || tried_[i].score > tried_[*best_].score) best_ = i;
  }
  if (!best_.has_value()) return;
  chosen_ = best_;
  const auto rank = [&](const TriedChoice& tried) {
    return query_.current.has_value() && !weighing_.Moves(tried.choice) ? 0 : 1;
  };
  for (size_t i = 0; i < tried_.size(); ++i) {
    if (!IsTied(tried_[i])) continue;
    const TriedChoice& chosen = tried_[*chosen_];
    if (rank(tried_[i]) != rank(chosen) ? rank(tried_[i]) < rank(chosen)
                                        : IsPreferred(tried_[i].choice, chosen.choice))
      chosen_ = i;
  }
}

std::vector<TriedChoice> ChoiceSearch::Tried() const {
  std::vector<TriedChoice> tried = tried_;
  std::sort(tried.begin(), tried.end(), [](const TriedChoice& a, const TriedChoice& b) {
    return std::tuple(a.choice.parameter_servers, a.choice.workers) <
           std::tuple(b.choice.parameter_servers, b.choice.workers);
  });
  return tried;
}

const TriedChoice& ChoiceSearch::Chosen() const { return tried_[*chosen_]; }

std::vector<Choice> ChoiceSearch::Ties() const {
  std::vector<Choice> ties;
  for (const TriedChoice& tried : Tried()) {
    if (IsTied(tried) && tried.choice != Chosen().choice && tried.score.miss == 0)
      ties.push_back(tried.choice);
  }
  return ties;
}

Settled ChoiceSearch::HowSettled() const {
  const double deviate = NormalQuantile(0.5 + query_.options.confidence_level / 2);
  std::vector<Alternative> alternatives;
  size_t chosen = 0;
  for (const TriedChoice& tried : tried_) {
    if (tried.score.miss != Chosen().score.miss) continue;
    const bool is_chosen = tried.choice == Chosen().choice;
    if (is_chosen) chosen = alternatives.size();
    const double width = is_chosen ? tried.score.value - tried.lowest_value
                                   : tried.highest_value - tried.score.value;
    alternatives.push_back({.value = tried.score.value, .deviation = width / deviate});
  }
  return stepcast::HowSettled(alternatives, chosen);
}

double ChoiceSearch::UntriedGainBound() const {
  double gain = 0;
  for (size_t row = 0; row < rows_.size(); ++row) {
    for (int32_t workers = query_.min_workers; workers <= query_.max_workers; ++workers) {
      if (!query_.IsCandidate(workers)) continue;
      const Cell cell{.row = row, .workers = workers};
      if (IsTried(cell)) continue;
      const Score ceiling = ScoreOf(cell, BoundOf(cell));
      if (ceiling.miss == 0) gain = std::max(gain, ceiling.value / Chosen().score.value - 1);
    }
  }
  return gain;
}

}  // namespace stepcast
