// Predictions, as people read them.
//
// The one place of the program where the fields of a Scenario are read.
#pragma once

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <string>

#include "stepcast/v1/prediction.pb.h"

namespace stepcast::client {

using Predictions = google::protobuf::RepeatedPtrField<v1::Prediction>;

// The numbers of workers and servers that a prediction is for; 0: not said.
int32_t WorkersOf(const v1::Prediction& prediction);
int32_t ServersOf(const v1::Prediction& prediction);
// Its cluster but for the number of workers: `1 server, 125.0 MB/s links, asynchronous`.
std::string ScenarioText(const v1::Prediction& prediction);

// The bottleneck in words, with what its change would bring where that is known: `links between
// nodes (+37% if twice as fast)`.
std::string BottleneckText(const v1::Prediction& prediction);

// `183.8 .. 191.2`; `-` where it has no width.
std::string IntervalText(const v1::ConfidenceInterval& interval);
// The title of a column of intervals: `95% interval`.
std::string IntervalTitle(const Predictions& predictions);
// The title of the intervals of single runs: `95% of runs`; empty where a server does not say them.
std::string RunsTitle(const Predictions& predictions);
// Both regimes and how many of the runs fell into each: `736.1 in 5 of 8, 368.0 in 3 of 8`; empty
// where there are none.
std::string RegimesText(const v1::Prediction& prediction);

// A line with the memory of one device, as far as it is known, of the first and of the last where
// they differ; empty: nothing is known.
std::string MemoryText(const Predictions& predictions);
// The table of time and money; empty where no plan was asked about.
std::string ForecastText(const Predictions& predictions);

// The values that were assumed, each once: a line of the kind of job, where it is not the recorded
// one, and one of all else, `assumed: latency 25us (--latency), ...`, with the flags that say it.
// Empty: nothing.
std::string AssumptionsText(const Predictions& predictions);
// A line where something else may well be better than what was chosen; else empty. The loss is a
// share of what is sought.
std::string CloseCallText(double probability_best, double expected_loss);
std::string AssumptionsText(const google::protobuf::RepeatedPtrField<v1::Assumption>& assumptions);

// A row a prediction, with the two regimes where any has them, what was assumed, and the warnings.
std::string PredictionTable(const Predictions& predictions);
// Each warning once, with the numbers of workers it is about; warnings that differ only in their
// numbers count as one.
std::string WarningsText(const Predictions& predictions);
// A line for each of an answer's own warnings.
std::string WarningsText(const google::protobuf::RepeatedPtrField<v1::Warning>& warnings);

// The lines below the table of predictions, some of them only where they are asked for.

// A row a prediction: its step, and what a worker computes of each pass in it. One line where no
// operation says which pass it belongs to.
std::string PassesText(const Predictions& predictions);

// A row a window of each prediction: its end, and the throughput in it.
std::string OverTimeText(const Predictions& predictions);

// The sentence on intervals, and on what more recorded steps would give with the most workers.
// Empty where they are of the simulation's chance alone.
std::string CertaintyText(const Predictions& predictions);

}  // namespace stepcast::client
