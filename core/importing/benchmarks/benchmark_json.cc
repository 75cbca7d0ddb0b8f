#include <algorithm>
#include <initializer_list>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

#include "core/importing/benchmarks/benchmark_sections.h"

namespace stepcast {

// Told by what is around a measurement.
struct BenchmarkAround {
  std::optional<BenchmarkTest> test;
  int32_t workers = 0;
  int64_t size_bytes = -1;
  double wrong_values = 0;  // of all rows together
};

namespace {

using Json = nlohmann::json;

std::optional<double> NumberAt(const Json& object, const char* key) {
  const auto value = object.find(key);
  double number = 0;
  if (value == object.end() || !absl::SimpleAtod(TextOfScalar(*value), &number))
    return std::nullopt;
  return number;
}
double FirstOf(const Json& object, std::initializer_list<const char*> keys, double none = 0) {
  for (const char* const key : keys) {
    if (const std::optional<double> number = NumberAt(object, key)) return *number;
  }
  return none;
}

// Ranks of nccl-tests' configuration, in the largest group. A process lists its first alone, or
// all of them.
int64_t RanksIn(const Json& devices, const Json& configuration) {
  const double of_process = std::max(1.0, FirstOf(configuration, {"ngpus"})) *
                            std::max(1.0, FirstOf(configuration, {"nthreads"}));
  std::map<std::string, int64_t> groups;
  int64_t most = 0;
  bool lists_all = false;
  for (const Json& device : devices) {
    const auto group = device.find("group");
    most = std::max(most, ++groups[group != device.end() ? group->dump() : ""]);
    lists_all = lists_all || NumberAt(device, "rank") == 1;
  }
  return lists_all || of_process > INT32_MAX ? most : most * static_cast<int64_t>(of_process);
}

// Workers that a value of an object tells; 0: none.
int64_t WorkersIn(const std::string& key, const Json& value, const Json& object) {
  const bool counts = key == "gpus" || key == "ranks" || key == "nranks" || key == "devices" ||
                      key == "num_ranks" || key == "nRanks" || key == "world_size";
  if (!counts) return 0;
  if (value.is_array() && !value.empty() && value.front().is_object())
    return RanksIn(value, object);
  if (value.is_array()) return static_cast<int64_t>(value.size());
  int32_t workers = 0;
  if (!absl::SimpleAtoi(TextOfScalar(value), &workers)) return 0;
  // rccl-tests' ranks are processes.
  int32_t of_rank = 1;
  const auto gpus = object.find("gpusPerRank");
  if (key == "ranks" && gpus != object.end() && !absl::SimpleAtoi(TextOfScalar(*gpus), &of_rank))
    of_rank = 1;
  return int64_t{workers} * std::max(1, of_rank);
}

void Learn(const Json& object, BenchmarkAround& around) {
  for (const auto& [key, value] : object.items()) {
    const int64_t workers = WorkersIn(key, value, object);
    if (workers > 0 && workers <= INT32_MAX) around.workers = static_cast<int32_t>(workers);
    std::optional<BenchmarkTest> test;
    if (value.is_string()) test = TestRun(value.get<std::string>());
    if (key == "args" && value.is_array() && !value.empty())
      test = TestOfProgram(TextOfScalar(value.front()));
    if (!test && (key == "name" || key == "test" || key == "collective" || key == "coll" ||
                  key == "operation"))
      test = TestNamed(TextOfScalar(value));
    if (test) around.test = std::move(test);
    if (key == "config" && value.is_object()) Learn(value, around);
    if (key == "out_of_bounds" && value.is_object())
      around.wrong_values = std::max(around.wrong_values, FirstOf(value, {"count"}));
  }
  if (const std::optional<double> size = NumberAt(object, "size");
      size && *size >= 0 && *size <= 9e15)
    around.size_bytes = static_cast<int64_t>(*size);
}

}  // namespace

std::string TextOfScalar(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number() ? value.dump() : "";
}

void BenchmarkJson::Read(const Json& json, const std::string& field) {
  constexpr int kMostLevels = 8;
  Walk(json, field, {}, kMostLevels);
}

std::vector<BenchmarkSection> BenchmarkJson::Take() && {
  std::vector<BenchmarkSection> sections;
  for (auto& [key, section] : sections_) sections.push_back(std::move(section));
  return sections;
}

void BenchmarkJson::Walk(const Json& json, const std::string& field, BenchmarkAround around,
                         int levels) {
  if (levels == 0 || !json.is_structured()) return;
  if (json.is_object()) {
    Learn(json, around);
    if (around.size_bytes >= 0 && AddRow(json, field, around)) return;
  }
  size_t place = 0;
  for (const auto& [key, value] : json.items()) {
    BenchmarkAround inside = around;
    int64_t size = 0;
    if (json.is_object() && absl::SimpleAtoi(key, &size)) inside.size_bytes = size;
    const std::string below = json.is_array() ? absl::StrCat(field, "[", place, "]")
                              : field.empty() ? key
                                              : absl::StrCat(field, ".", key);
    Walk(value, below, inside, levels - 1);
    ++place;
  }
}

bool BenchmarkJson::AddRow(const Json& object, const std::string& field,
                           const BenchmarkAround& around) {
  const auto half = [&object](const char* key) -> const Json& {
    const auto found = object.find(key);
    return found != object.end() && found->is_object() ? *found : object;
  };
  BenchmarkRow row{.field = field, .size_bytes = around.size_bytes};
  const Json& in_place = half("in_place");
  const Json& other = half("out_of_place");
  const double in_place_us = FirstOf(in_place, {"ip_time", "time"});
  const Json& taken = in_place_us > 0 ? in_place : other;
  row.micros = in_place_us > 0 ? in_place_us : FirstOf(other, {"oop_time", "time"});
  const bool is_of_cpu = NumberAt(in_place, "cpu_time") || NumberAt(other, "cpu_time");
  if (!(row.micros > 0) && !is_of_cpu) return false;
  row.is_in_place = FirstOf(object, {"inPlace"}) != 0 || !object.contains("inPlace");
  row.algorithm_rate = FirstOf(taken, {"ip_algbw", "algBw", "alg_bw", "algbw", "oop_algbw"});
  row.bus_rate = FirstOf(taken, {"ip_busbw", "busBw", "bus_bw", "busbw", "oop_busbw"}, -1);
  const auto text = [&object](const char* key) {
    return object.contains(key) ? TextOfScalar(object.at(key)) : "";
  };
  row.type = text("type");
  row.reduces = !text("redop").empty() && text("redop") != "none";
  row.has_root = FirstOf(object, {"root"}) >= 0 && object.contains("root");
  row.is_checked =
      NumberAt(other, "oop_error") || NumberAt(other, "nwrong") || NumberAt(object, "#wrong");
  row.is_checked_in_place =
      NumberAt(in_place, "ip_error") || NumberAt(in_place, "nwrong") || NumberAt(object, "#wrong");
  BenchmarkSection& section = sections_[{around.test ? around.test->name : "", around.workers}];
  if (section.field.empty()) section.field = field;
  section.test = around.test;
  section.workers = around.workers;
  const double wrong = std::max({FirstOf(object, {"#wrong"}), FirstOf(in_place, {"nwrong"}),
                                 FirstOf(other, {"nwrong"}), around.wrong_values});
  std::string fault = is_of_cpu   ? kTimesOfCpu
                      : wrong > 0 ? absl::StrCat(wrong, " wrong values: the benchmark failed")
                                  : RateFault(row);
  if (!fault.empty()) section.faults.push_back({.field = field, .description = std::move(fault)});
  section.rows.push_back(std::move(row));
  return true;
}

}  // namespace stepcast
