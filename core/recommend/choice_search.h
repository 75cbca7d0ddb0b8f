// A search for the best choice of workers and servers that simulates as few choices as it can.
//
// First a coarse grid, numbers of workers twice as large as the one before, of those choices only
// that could win by what links and processors can carry (ThroughputBound); then between them, where
// the curve might still be high enough (CurveCeiling), always the most promising first. What comes
// out best is run in full, with everything that is not clearly worse, and so are its neighbours;
// all of it until nothing new could win. Where the query looks at numbers in strides first
// (FirstCounts), those between are open to the search only around the best. In the end all that was
// tried is run in full where it is no more than 16 choices: a row that is shown then says what a
// prediction of it does. The order in which choices are tried, and so the answer, depends on
// nothing but the query. Threads: none of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/status/status.h"

#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/predict/certainty.h"
#include "core/predict/point_set.h"
#include "core/recommend/recommendation.h"
#include "core/recommend/recommendation_query.h"
#include "core/recommend/throughput_bound.h"

namespace stepcast {

// A choice that was simulated.
struct TriedChoice {
  Choice choice;
  Prediction prediction;
  Outcome outcome;
  Score score;
  double lowest_value = 0;  // of the objective, by the prediction's interval
  double highest_value = 0;
};

class ChoiceSearch {
 public:
  // REQUIRES: the query was resolved for this profile; both and what `known` names outlive the
  // search.
  ChoiceSearch(const Profile& profile, const RecommendationQuery& query, const KnownRuns& known);

  // OK too where the time budget was spent after something had been found. Failure: as
  // PredictThroughput.
  absl::Status Run(StopCheck stop, const Executor& executor);

  // In ascending order of servers, then of workers.
  std::vector<TriedChoice> Tried() const;
  // REQUIRES, here and below: Run returned OK. The one recommended: of those that the
  // intervals do not tell from the best estimate, and that are at most kLossOfATie below it, the
  // running job's own, else the one with the fewest workers, then the cheapest.
  const TriedChoice& Chosen() const;
  // The others that are as good.
  std::vector<Choice> Ties() const;
  // Among what keeps as many constraints as the chosen one, by the chance of the simulation.
  Settled HowSettled() const;
  // The most by which the value of a choice that was not tried could exceed the chosen one's, as a
  // share of it, by its ThroughputBound.
  double UntriedGainBound() const;
  bool cut_short() const { return cut_short_; }
  SimulationStatistics Statistics() const { return points_.Statistics(); }

 private:
  // All choices with one number of servers.
  struct Row {
    Scenario scenario;
    ThroughputBound bound;
    CurveCeiling curve;
    // Steps per second, by workers - min_workers; of numbers that are not open, the next open
    // one's.
    std::vector<double> bounds;
    std::vector<std::optional<size_t>> points;  // likewise; those tried
    double one_worker = 0;                      // examples per second; 0: not known
  };
  struct Cell {
    size_t row = 0;
    int32_t workers = 0;
  };
  struct Prospect {
    Cell cell;
    Score ceiling;
  };

  Choice ChoiceOf(const Cell& cell) const {
    return {cell.workers, rows_[cell.row].scenario.server_count()};
  }
  std::optional<size_t>& PointAt(const Cell& cell) {
    return rows_[cell.row].points[static_cast<size_t>(cell.workers - query_.min_workers)];
  }
  bool IsTried(const Cell& cell) const {
    return rows_[cell.row]
        .points[static_cast<size_t>(cell.workers - query_.min_workers)]
        .has_value();
  }
  // True if the search may try it.
  bool IsOpen(int32_t workers) const {
    return workers >= query_.min_workers && workers <= query_.max_workers &&
           open_[static_cast<size_t>(workers - query_.min_workers)];
  }

  double BoundOf(const Cell& cell) const;
  Score ScoreOf(const Cell& cell, double examples_per_second) const;
  bool CouldWin(const Cell& cell, const Score& ceiling) const;
  bool IsPreferred(const Choice& a, const Choice& b) const;
  // True if the intervals do not tell it from the best, and what it may lose does not matter.
  bool IsTied(const TriedChoice& tried) const;
  // True if the chance of the simulation may hide that it is the best.
  bool MayBeBest(const TriedChoice& tried) const;

  void AddRow(const Scenario& scenario, ThroughputBound bound);
  void SetBounds(Row& row) const;
  // Opens what lies between the best and chosen numbers and those next to them; false where that is
  // open already.
  bool OpenAroundTheBest();

  std::vector<Cell> Seeds() const;
  std::vector<Prospect> Prospects(bool coarse) const;
  std::vector<Cell> NextCells() const;
  std::vector<Cell> NeighboursOfChosen() const;

  absl::Status Try(std::vector<Cell> cells, StopCheck stop, const Executor& executor);
  // The tried choices that are run in full.
  enum class Depth : uint8_t { kAsGood, kAll };
  absl::Status RunInFull(Depth depth, StopCheck stop, const Executor& executor, bool& deepened);
  absl::Status Search(StopCheck stop, const Executor& executor);
  void Learn();
  TriedChoice Weigh(const Prediction& prediction, bool in_full) const;

  const Profile& profile_;
  const RecommendationQuery& query_;
  const Weighing weighing_;
  PointSet points_;
  std::vector<bool> open_;  // by workers - min_workers
  std::deque<Row> rows_;
  std::vector<TriedChoice> tried_;  // in the order of their first run; parallel to the next
  std::vector<size_t> tried_points_;
  std::optional<size_t> best_;    // of tried_
  std::optional<size_t> chosen_;  // of tried_
  double roughness_ = 0;          // by which curves were found above their ceilings
  bool cut_short_ = false;
  absl::Status setup_;  // of the rows' programs
};

}  // namespace stepcast
