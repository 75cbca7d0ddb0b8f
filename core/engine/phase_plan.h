// The phases that all steps of a program run in, where they do.
//
// They do where every download is there at the start of a step, every upload waits for every
// download, and nothing comes back from an upload or a hub into the step. Then computation
// cannot touch the network before the last download has arrived: a step is a download phase, whose
// chunks follow each other without a gap, in an order that is known when it begins, then uploads
// whose ready times are known at once, then the hubs' updates. Where an operation cuts the graph
// (all earlier ones are its ancestors, all later ones its descendants: the loss), what comes after
// it takes the same course in every step that was sampled from the same recorded one. Threads:
// immutable.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/engine/program.h"

namespace stepcast {

struct PhasePlan {
  // A worker's lanes: its computation, what each hub does for it, its link from each, its link to
  // each.
  static constexpr int32_t kInbound = 0;  // network
  static constexpr int32_t kOutbound = 1;
  static constexpr LaneIndex kComputation = 0;
  static LaneIndex HubLane(int32_t hub) { return 1 + hub; }
  // 0 where the lanes are others.
  static size_t HubsOf(const Lanes& lanes);

  // One service of a download.
  struct Service {
    OpIndex op = 0;
    int32_t service = 0;
    int32_t source = -1;  // index in `downloads` where it is the last one of its transfer
    Span work;
  };
  // The downloads from one hub, in the order of their services.
  struct DownloadPhase {
    std::vector<Service> services;
    Span total;
  };

  // The downloads of a step as their ranks order them.
  struct DownloadOrder {
    std::vector<DownloadPhase> phases;   // by hub
    std::vector<int32_t> arrival_order;  // by download: its place among those of its hub
  };

  std::vector<OpIndex> downloads;
  std::vector<OpIndex> computations;  // up to the cut, without it; all where there is none
  std::vector<OpIndex> after_cut;     // the cut and what comes after it; empty where there is none
  std::vector<OpIndex> uploads;
  std::vector<std::vector<OpIndex>> uploads_to;  // by hub
  std::vector<std::vector<OpIndex>> updates_on;  // by hub

  // None where steps do not run in phases. `find_cut`: look for one. Linear but for graphs without
  // a cut, where it takes downloads x size / 64; over kMostChecks of that there is no plan.
  // Failure: what `stop` returns.
  static absl::StatusOr<std::optional<PhasePlan>> Make(const Program& graph, bool find_cut,
                                                       StopCheck stop);

  // `ranks`: by OpIndex, as of Ranking; null: none has one. REQUIRES: the plan is the graph's.
  DownloadOrder InOrder(const Program& graph, const int32_t* ranks) const;

  static constexpr int64_t kMostChecks = 200'000'000;
};

}  // namespace stepcast
