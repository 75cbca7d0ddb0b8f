// Reader of the JSON of nccl-tests and rccl-tests.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json_fwd.hpp"

#include "core/importing/benchmarks/benchmark_sections.h"

namespace stepcast {

struct BenchmarkAround;

// A text, or a number as one; empty: it is neither.
std::string TextOfScalar(const nlohmann::json& value);

// Objects with a size and times, wherever they are, and around them the test and its workers.
//
// Threads: none.
class BenchmarkJson {
 public:
  // A document, or one of several; `field` is before the places in it.
  void Read(const nlohmann::json& json, const std::string& field);
  // Sections by test and workers.
  std::vector<BenchmarkSection> Take() &&;

 private:
  void Walk(const nlohmann::json& json, const std::string& field, BenchmarkAround around,
            int levels);
  // False: it is not a measurement.
  bool AddRow(const nlohmann::json& object, const std::string& field,
              const BenchmarkAround& around);

  std::map<std::pair<std::string, int32_t>, BenchmarkSection> sections_;
};

}  // namespace stepcast
