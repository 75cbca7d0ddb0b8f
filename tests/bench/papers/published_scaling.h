// Published measurements of data-parallel training with all-reduces, by the number of workers.
//
// The files are others' and no part of the tree (shared/data/scaling; their sources and licences
// are named inside them). Everything here throws std::runtime_error where a text is not what its
// source publishes. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::bench {

// A measured step of so many workers, and of one with the same batch.
struct PublishedRow {
  std::string model;  // as NetworkOf has it
  std::string job;    // what else tells tables apart: precision, framework
  int32_t nodes = 1;
  int32_t workers_per_node = 1;
  int32_t batch_size = 0;  // of each worker
  double one_worker_seconds = 0;
  double step_seconds = 0;

  int32_t workers() const { return nodes * workers_per_node; }
  double examples_per_second() const { return workers() * batch_size / step_seconds; }
};

// Rows of one cluster.
struct PublishedSet {
  std::string name;
  std::vector<PublishedRow> rows;
};

// Pollux (OSDI 2021, petuum/adaptdl c793c70): ResNet-50 and the ResNet-18 of CIFAR-10, up to 16
// nodes of four T4. Placements with unlike numbers of workers on nodes are left out.
PublishedSet ReadPollux(std::string_view json);

// Gavel (OSDI 2020, stanford-futuredata/gavel c4fa400): the same networks and a word-level LSTM, up
// to eight P100, one a server, or two and four on one. Eight that were packed are left out: the
// file does not say how many a server has.
PublishedSet ReadGavel(std::string_view json);

// DLPerf (Oneflow-Inc/DLPerf c89430b): ResNet-50 in PyTorch, up to four nodes of eight V100. The
// first job is NVIDIA's example in float32; those with 8 loading processes are limited by them, as
// the file says, which no network model sees.
PublishedSet ReadDlPerf(std::string_view json);

}  // namespace stepcast::bench
