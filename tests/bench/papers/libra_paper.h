// LIBRA's simulation (section V-D): four models on 16 to 2048 nodes, with every way to fuse and to
// choose threads, by the model of core/advise.
//
// The paper gives no constants. Those here are chosen: nearest to 13 of its published figures, with
// layers from the published architectures, each at the same share of a V100's arithmetic.
#pragma once

#include <string>
#include <vector>

#include "core/advise/overlap_model.h"

namespace stepcast::bench {

struct PaperModel {
  std::string name;
  double forward_seconds = 0;
  std::vector<BackwardLayer> layers;  // backward order

  double BackwardSeconds() const;  // of computation alone
  double Bytes() const;
};
// Forward takes half of backward, and both so many multiplications and additions a second.
inline constexpr double kChosenFlopsPerSecond = 2.8e12;
PaperModel Xception(int32_t batch_size);
PaperModel ResNet152(int32_t batch_size);
PaperModel Vgg16(int32_t batch_size);
PaperModel BertBase(int32_t batch_size);
std::vector<PaperModel> PaperModels();  // with the batch sizes of Table I

// alpha1 and alpha2 from Fig. 1a; the rest is a compromise between Fig. 1b and the gains of Figs. 6
// and 9, which no constants meet all.
OverlapSetting ChosenSetting(int32_t nodes);
std::vector<int32_t> PaperThreads();  // R: powers of 2 from 128 to 4096

// Seconds of a backward pass with all of its all-reduces.
struct PaperTimes {
  double synchronous = 0;  // SE: one all-reduce after the backward pass, NCCL's threads
  double horovod = 0;      // H-N: 64 MiB, 5 ms, NCCL's threads
  double merged = 0;       // MG-N: MG-WFBP's groups, NCCL's threads
  double libra_m = 0;      // MG-WFBP's groups, LIBRA's threads
  double libra = 0;
  double no_contention = 0;  // MG-CF: MG-N's groups, at what its threads send alone
};
PaperTimes TimesOf(const PaperModel& model, const OverlapSetting& setting);

// The parts of the same times.
struct PaperBreakdown {
  PaperTimes seconds;
  PaperTimes residual;       // communication beside which nothing is computed
  PaperTimes communication;  // all of it
};
PaperBreakdown BreakdownOf(const PaperModel& model, const OverlapSetting& setting);

// What each way gains over SE in examples a second, a row a model and number of nodes (Figs. 6, 9).
std::string LibraTable();
// Figs. 7 and 8, on 8 nodes: ms of a backward pass, as computation + residual communication, and
// in brackets all communication.
std::string LibraBreakdownTable();
// Fig. 9: throughput of a node over that of a single one.
std::string LibraScalingTable();

// Groups of MG-WFBP, all with so many threads.
double MergedSeconds(const PaperModel& model, const OverlapSetting& setting, int32_t threads);

}  // namespace stepcast::bench
