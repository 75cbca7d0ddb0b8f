// Small jobs written out by hand: at a thousand million bytes a second a byte takes a nanosecond.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/communication/parameter_servers.h"
#include "core/engine/job_graph.h"
#include "core/engine/simulation.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast::testing {

class JobBuilder {
 public:
  using Waits = std::vector<int32_t>;

  // Each returns the operation's index. Names are "op" and the index.
  int32_t Download(int64_t bytes, Waits waits = {}, int32_t server = 0, std::string parameter = "");
  int32_t Upload(int64_t bytes, Waits waits = {}, int32_t server = 0, std::string parameter = "");
  int32_t Compute(int64_t ns, Waits waits = {});
  int32_t Update(int64_t ns, Waits waits = {}, int32_t server = 0, std::string parameter = "");
  // A computation that takes another time in each recorded step. All of a job's have as many.
  int32_t Compute(std::vector<int64_t> ns_by_step, Waits waits = {});

  // On as many servers as were named, at 1e9 bytes per second, streams whole.
  Profile Build() const;

 private:
  int32_t Add(Operation operation, std::vector<int64_t> ns_by_step);

  std::vector<Operation> operations_;
  std::vector<std::vector<int64_t>> ns_by_step_;
};

// The scenario as recorded, with what `draft` changes.
Scenario Resolved(const Profile& profile, const ScenarioDraft& draft = {});

// The scenario's job; `ranks`, by OpIndex: of its fixed orders.
JobGraph JobFor(const Profile& profile, const Scenario& scenario, std::vector<int32_t> ranks = {});

// For Simulate: step ends kept, warm-up of none.
RunOptions OptionsFor(const Scenario& scenario, int32_t steps_per_worker);

// A trace in memory.
class KeptTrace : public TraceSink {
 public:
  void OnStep(std::span<const ChunkRecord> chunks) override {
    records.insert(records.end(), chunks.begin(), chunks.end());
  }

  std::vector<ChunkRecord> records;
};

}  // namespace stepcast::testing
