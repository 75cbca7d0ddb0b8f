// The step of one worker of a testbed job: the operations of a profile, each computation
// with the time it is to take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepcast::testbed {

enum class Resource : uint8_t { kDownlink, kWorker, kUplink, kParameterServer };

struct JobOperation {
  std::string name;
  Resource resource = Resource::kWorker;
  int32_t parameter_server = 0;      // of transfers and updates
  int64_t size_bytes = 0;            // of transfers
  int64_t duration_ns = 0;           // of computations and updates, before they are varied
  std::vector<int32_t> waiting_for;  // earlier operations
  std::vector<int32_t> followers;    // those that wait for this one
};

struct Job {
  std::vector<JobOperation> operations;
  // In which a worker requests its downloads; empty: in a new random order each step.
  std::vector<int32_t> download_order;
};

// Reads a job that run_testbed.py wrote. Throws std::exception with what is wrong with the text:
// both are parts of one program.
Job ReadJob(const std::string& path);

}  // namespace stepcast::testbed
