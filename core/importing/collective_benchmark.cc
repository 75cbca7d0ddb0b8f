#include "core/importing/collective_benchmark.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

#include "core/base/error.h"
#include "core/base/quoted.h"
#include "core/importing/benchmark_sections.h"
#include "core/importing/recording_options.h"
#include "core/importing/units.h"
#include "core/model/fault_list.h"
#include "core/model/profile_limits.h"

namespace stepcast {

namespace {

constexpr double kMaxSeconds = 86'400;

std::string LineField(size_t line) { return absl::StrCat("line ", line); }

std::optional<Collective> CollectiveOfName(absl::string_view name) {
  const std::string upper = absl::AsciiStrToUpper(name);
  if (upper == "ALL_REDUCE") return Collective::kAllReduce;
  if (upper == "REDUCE_SCATTER") return Collective::kReduceScatter;
  if (upper == "ALL_GATHER") return Collective::kAllGather;
  if (upper == "BROADCAST") return Collective::kBroadcast;
  return std::nullopt;
}

// The points found so far; a limit on their number.
class MeasuredPoints {
 public:
  MeasuredPoints(const AllReduceLimits& limits, FaultList& faults)
      : limits_(limits), faults_(faults) {}

  // False: there are too many.
  bool Add(const std::string& field, const MeasuredCollective& point) {
    const int64_t max_bytes = ProfileLimits().max_transfer_bytes;
    if (point.workers < 2)
      faults_.Add(field, absl::StrCat(point.workers, " workers: a collective has at least 2"));
    if (point.size_bytes < 1 || point.size_bytes > max_bytes)
      faults_.Add(field, absl::StrCat(point.size_bytes, " bytes are not from 1 to ", max_bytes));
    if (!(point.seconds > 0 && point.seconds <= kMaxSeconds)) {
      faults_.Add(
          field, absl::StrCat(point.seconds, " seconds are not above 0 and at most ", kMaxSeconds));
    }
    // Repetitions of a size become one point, but no benchmark has thousands.
    constexpr int64_t kMostRepetitions = 100;
    points_.push_back(point);
    if (static_cast<int64_t>(points_.size()) <= kMostRepetitions * limits_.max_measured)
      return true;
    faults_.Add(field, absl::StrCat("more points than ", kMostRepetitions,
                                    " times max_measured = ", limits_.max_measured));
    return false;
  }

  bool empty() const { return points_.empty(); }

  // Medians, in order.
  std::vector<MeasuredCollective> Take() && {
    const auto key = [](const MeasuredCollective& point) {
      return std::tuple(point.kind, point.workers, point.size_bytes);
    };
    std::sort(points_.begin(), points_.end(),
              [&key](const MeasuredCollective& a, const MeasuredCollective& b) {
                return std::pair(key(a), a.seconds) < std::pair(key(b), b.seconds);
              });
    std::vector<MeasuredCollective> medians;
    for (size_t first = 0; first < points_.size();) {
      size_t last = first;
      while (last < points_.size() && key(points_[last]) == key(points_[first])) ++last;
      MeasuredCollective median = points_[first + (last - first) / 2];
      if ((last - first) % 2 == 0)
        median.seconds = (median.seconds + points_[first + (last - first) / 2 - 1].seconds) / 2;
      medians.push_back(median);
      first = last;
    }
    const auto count = static_cast<int64_t>(medians.size());
    if (count > limits_.max_measured)
      faults_.Add("measured", OverLimit(count, "max_measured", limits_.max_measured));
    return medians;
  }

 private:
  const AllReduceLimits& limits_;
  FaultList& faults_;
  std::vector<MeasuredCollective> points_;
};

// The units are those of the columns if the rate is what size and time give. Empty: they are.
std::string RateFault(const BenchmarkRow& row) {
  const double rate = static_cast<double>(row.size_bytes) / row.micros / 1e3;
  constexpr double kShare = 0.02;
  constexpr double kRounding = 0.02;
  if (std::abs(rate - row.algorithm_rate) <= kShare * row.algorithm_rate + kRounding) return "";
  return absl::StrCat(row.size_bytes, " bytes in ", row.micros, " us are ", rate, " GB/s, not ",
                      row.algorithm_rate, ": are the units others?");
}

// Reader of what nccl-tests, rccl-tests, OSU's and Intel's MPI benchmarks print. The numbers of a
// line stand below the names of its columns.
class BenchmarkLog {
 public:
  std::vector<BenchmarkSection> Read(absl::string_view text) {
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      ++number_;
      ReadLine(line);
    }
    return std::move(sections_);
  }

 private:
  // The places of the columns; of times and rates, the last half's.
  struct Columns {
    size_t count = 0;
    size_t reduction = SIZE_MAX;
    size_t root = SIZE_MAX;
    std::vector<size_t> times;
    std::vector<size_t> algorithm_rates;
    std::vector<size_t> bus_rates;
    std::vector<size_t> wrongs;
    bool counts_wrongs = false;  // else they are errors
  };
  using Tokens = std::vector<absl::string_view>;
  static constexpr size_t kMostFaults = 100;  // of a section

  static Tokens TokensOf(absl::string_view text) {
    return absl::StrSplit(text, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  }
  static bool IsNumber(absl::string_view text) {
    double number = 0;
    return absl::SimpleAtod(text, &number);
  }

  void ReadLine(absl::string_view line) {
    constexpr absl::string_view kDebug = "NCCL ";
    const size_t hash = line.find('#');
    const bool is_debug = absl::StrContains(line, kDebug);
    if (hash != absl::string_view::npos && !is_debug)
      return ReadComment(line.substr(0, hash), line.substr(hash + 1));
    if (const std::optional<BenchmarkTest> test = TestMentioned(line)) test_ = test;
    if (columns_.times.empty()) return;
    Tokens tokens = TokensOf(WithoutPrefix(line));
    int64_t size_bytes = 0;
    if (tokens.empty() || !absl::SimpleAtoi(tokens.front(), &size_bytes)) {
      // A line that a library prints between, perhaps with a row at its end.
      if (!is_debug || tokens.size() <= columns_.count) return;
      tokens.erase(tokens.begin(), tokens.end() - static_cast<ptrdiff_t>(columns_.count));
      const bool is_row = absl::SimpleAtoi(tokens.front(), &size_bytes) && size_bytes > 0 &&
                          IsNumber(tokens[columns_.times.back()]);
      if (is_row) AddRow(tokens, size_bytes);
      return;
    }
    if (is_debug) {
      is_broken_ = true;
      return AddFault(
          "NCCL_DEBUG's output is inside the row: run without NCCL_DEBUG, or with "
          "NCCL_DEBUG_FILE");
    }
    AddRow(tokens, size_bytes);
  }

  // A launcher's mark is the same in each line, or has as many words (a time).
  absl::string_view WithoutPrefix(absl::string_view line) const {
    if (prefix_.empty() || absl::ConsumePrefix(&line, prefix_)) return line;
    if (prefix_.back() != ' ' && prefix_.back() != '\t') return "";
    for (size_t left = TokensOf(prefix_).size(); left > 0; --left) {
      line = absl::StripLeadingAsciiWhitespace(line);
      line.remove_prefix(std::min(line.size(), line.find_first_of(" \t")));
    }
    return line;
  }

  void ReadComment(absl::string_view before, absl::string_view comment) {
    const Tokens tokens = TokensOf(comment);
    const auto begins = [&tokens](std::initializer_list<absl::string_view> words) {
      return tokens.size() >= words.size() &&
             std::equal(words.begin(), words.end(), tokens.begin());
    };
    if (begins({"Collective", "test", "concluded:"})) return;
    if (begins({"nThread"}) || begins({"Using", "devices"})) ranks_.clear();
    if (begins({"Rank"}) && tokens.size() > 2) return AddRank(tokens);
    if (begins({"Benchmarking"}) && tokens.size() > 1) return BeginTest(tokens[1]);
    if (begins({"#processes", "="}) && tokens.size() > 2) {
      if (!absl::SimpleAtoi(tokens[2], &processes_)) processes_ = 0;
      return;
    }
    if (begins({"OSU"})) return BeginOsuTest(tokens);
    if (begins({"size", "count"}) && tokens.size() >= 5) return BeginTable(before, tokens);
    if ((begins({"Size"}) || begins({"bytes"})) && !test_is_read_)
      return BeginTimes(before, tokens);
    if (const std::optional<BenchmarkTest> test = TestMentioned(comment)) test_ = test;
  }

  void AddRank(const Tokens& tokens) {
    int32_t rank = 0;
    if (!absl::SimpleAtoi(tokens[1], &rank) || rank < 0 || rank == INT32_MAX) return;
    const bool has_group = tokens.size() > 3 && tokens[2] == "Group";
    int32_t& ranks = ranks_[has_group ? std::string(tokens[3]) : ""];
    ranks = has_group ? ranks + 1 : std::max(ranks, rank + 1);
  }

  void BeginTest(absl::string_view name) {
    test_ = TestNamed(name).value_or(BenchmarkTest{.name = std::string(name)});
    columns_ = {};
    processes_ = 0;
    test_is_read_ = false;
  }

  // "OSU MPI-CUDA Allreduce Latency Test v7.0".
  void BeginOsuTest(const Tokens& tokens) {
    const auto test = std::find(tokens.begin(), tokens.end(), "Test");
    if (tokens.size() < 3 || test == tokens.end()) return;
    auto last = test;
    if (last - tokens.begin() > 3 && *(last - 1) == "Latency") --last;
    BeginTest(absl::StrJoin(tokens.begin() + 2, last, " "));
  }

  BenchmarkSection& BeginSection(absl::string_view before) {
    prefix_ = std::string(before);
    columns_ = {};
    is_broken_ = false;
    sections_.push_back({.field = LineField(number_)});
    return sections_.back();
  }

  // Table of nccl-tests.
  void BeginTable(absl::string_view before, const Tokens& tokens) {
    BenchmarkSection& section = BeginSection(before);
    section.test = std::exchange(test_, std::nullopt);
    for (const auto& [group, ranks] : ranks_) section.workers = std::max(section.workers, ranks);
    columns_.count = tokens.size();
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] == "redop") columns_.reduction = i;
      if (tokens[i] == "root") columns_.root = i;
      if (tokens[i] == "time") columns_.times.push_back(i);
      if (tokens[i] == "algbw") columns_.algorithm_rates.push_back(i);
      if (tokens[i] == "busbw") columns_.bus_rates.push_back(i);
      if (tokens[i] == "#wrong" || tokens[i] == "error") columns_.wrongs.push_back(i);
      columns_.counts_wrongs = columns_.counts_wrongs || tokens[i] == "#wrong";
    }
    const size_t halves = columns_.times.size();
    if (columns_.algorithm_rates.size() != halves || columns_.bus_rates.size() != halves)
      columns_ = {};
  }

  // Table of OSU's and Intel's MPI benchmarks: a mean over the processes.
  void BeginTimes(absl::string_view before, const Tokens& tokens) {
    if (!test_) return;
    BenchmarkSection& section = BeginSection(before);
    test_is_read_ = true;
    section.test = test_;
    section.workers = processes_;
    section.has_rates = false;
    section.sizes_are_shares = true;
    columns_ = {.count = 2, .times = {1}};
    const auto mean = std::find(tokens.begin(), tokens.end(), "t_avg[usec]");
    if (mean == tokens.end()) return;
    columns_.times = {static_cast<size_t>(mean - tokens.begin())};
    columns_.count = columns_.times.front() + 1;
  }

  void AddFault(std::string description) {
    BenchmarkSection& section = sections_.back();
    if (section.faults.size() < kMostFaults)
      section.faults.push_back(
          {.field = LineField(number_), .description = std::move(description)});
  }

  void AddRow(Tokens& tokens, int64_t size_bytes) {
    // Some print nothing where nothing is added up.
    if (tokens.size() + 1 == columns_.count && columns_.reduction < tokens.size() &&
        IsNumber(tokens[columns_.reduction])) {
      tokens.insert(tokens.begin() + static_cast<ptrdiff_t>(columns_.reduction), "none");
    }
    if (tokens.size() < columns_.count) {
      // The rest of a row that was broken.
      if (!is_broken_) {
        AddFault(
            absl::StrCat(tokens.size(), " columns of ", columns_.count, ": the line is cut short"));
      }
      return;
    }
    is_broken_ = false;
    BenchmarkRow row{.field = LineField(number_), .size_bytes = size_bytes};
    FillRow(tokens, row);
  }

  void FillRow(const Tokens& tokens, BenchmarkRow& row) {
    for (const size_t at : columns_.wrongs) {
      (at == columns_.wrongs.back() ? row.is_checked_in_place : row.is_checked) =
          IsNumber(tokens[at]);
      int64_t wrong = 0;
      if (columns_.counts_wrongs && absl::SimpleAtoi(tokens[at], &wrong) && wrong > 0)
        return AddFault(absl::StrCat(wrong, " wrong values: the benchmark failed"));
    }
    if (columns_.wrongs.size() == 1) row.is_checked = row.is_checked_in_place;
    row.reduces = columns_.reduction != SIZE_MAX && tokens[columns_.reduction] != "none";
    int64_t root = -1;
    row.has_root =
        columns_.root != SIZE_MAX && absl::SimpleAtoi(tokens[columns_.root], &root) && root >= 0;
    // In place, unless that was not run.
    for (size_t half = columns_.times.size(); half-- > 0;) {
      const bool has_rates = !columns_.bus_rates.empty();
      const bool is_known =
          absl::SimpleAtod(tokens[columns_.times[half]], &row.micros) && row.micros > 0 &&
          (!has_rates ||
           (absl::SimpleAtod(tokens[columns_.algorithm_rates[half]], &row.algorithm_rate) &&
            absl::SimpleAtod(tokens[columns_.bus_rates[half]], &row.bus_rate)));
      if (!is_known) continue;
      if (std::string fault = RateFault(row); has_rates && !fault.empty())
        AddFault(std::move(fault));
      sections_.back().rows.push_back(std::move(row));
      return;
    }
    if (row.size_bytes > 0)
      AddFault(
          absl::StrCat(Quoted(std::string(tokens[columns_.times[0]])), " is not a time above 0"));
  }

  size_t number_ = 0;
  std::string prefix_;  // of each line, by a launcher
  Columns columns_;
  std::optional<BenchmarkTest> test_;     // the one named last
  bool test_is_read_ = false;             // of OSU's and Intel's
  bool is_broken_ = false;                // a row had something inside
  int32_t processes_ = 0;                 // Intel's
  std::map<std::string, int32_t> ranks_;  // of nccl-tests, by group
  std::vector<BenchmarkSection> sections_;
};

// For the end of a refusal.
constexpr char kOwnTable[] =
    "; a table of one's own is read, too: a line kind,workers,size_bytes,seconds, and below it one "
    "a point";

constexpr std::array<const char*, 4> kPointColumns = {"kind", "workers", "size_bytes", "seconds"};

// By the order of kPointColumns; the first that is wrong is said.
void AddPoint(const std::string& field, const std::array<std::string, 4>& texts, FaultList& faults,
              MeasuredPoints& points) {
  MeasuredCollective point;
  const std::optional<Collective> kind = CollectiveOfName(texts[0]);
  const auto wrong = [&](size_t column, const char* what) {
    faults.Add(field,
               absl::StrCat(kPointColumns[column], " ", Quoted(texts[column]), " is no ", what));
  };
  if (!kind) return wrong(0, "collective: ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER or BROADCAST");
  point.kind = *kind;
  if (!absl::SimpleAtoi(texts[1], &point.workers)) return wrong(1, "number of workers");
  if (!absl::SimpleAtoi(texts[2], &point.size_bytes)) return wrong(2, "number of bytes");
  if (!absl::SimpleAtod(texts[3], &point.seconds)) return wrong(3, "number of seconds");
  points.Add(field, point);
}

void ReadPointTable(absl::string_view text, FaultList& faults, MeasuredPoints& points) {
  std::array<size_t, 4> place;
  place.fill(SIZE_MAX);
  size_t columns = 0;
  size_t number = 0;
  for (const absl::string_view raw : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(raw);
    if (line.empty() || line.front() == '#') continue;
    std::vector<absl::string_view> cells = absl::StrSplit(line, ',');
    for (absl::string_view& cell : cells) cell = absl::StripAsciiWhitespace(cell);
    if (columns == 0) {
      columns = cells.size();
      for (size_t c = 0; c < place.size(); ++c) {
        const auto found = std::find(cells.begin(), cells.end(), kPointColumns[c]);
        if (found == cells.end())
          faults.Add(LineField(number), absl::StrCat("no column ", kPointColumns[c]));
        place[c] = static_cast<size_t>(found - cells.begin());
      }
      if (!faults.empty()) return;
      continue;
    }
    if (cells.size() != columns) {
      faults.Add(LineField(number), absl::StrCat(cells.size(), " columns of ", columns));
    } else {
      std::array<std::string, 4> texts;
      for (size_t c = 0; c < place.size(); ++c) texts[c] = std::string(cells[place[c]]);
      AddPoint(LineField(number), texts, faults, points);
    }
    if (faults.full()) return;
  }
}

std::string TextOfScalar(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number() ? value.dump() : "";
}

void ReadPointList(const nlohmann::json& list, FaultList& faults, MeasuredPoints& points) {
  for (size_t i = 0; i < list.size() && !faults.full(); ++i) {
    const nlohmann::json& entry = list[i];
    const std::string field = absl::StrCat("measured[", i, "]");
    if (!entry.is_object()) {
      faults.Add(field, "is not an object");
      continue;
    }
    std::array<std::string, 4> texts;
    for (size_t c = 0; c < texts.size(); ++c) {
      const bool is_size = c == 2;
      auto value = entry.find(kPointColumns[c]);
      if (value == entry.end() && is_size) value = entry.find("sizeBytes");
      if (value != entry.end()) texts[c] = TextOfScalar(*value);
    }
    AddPoint(field, texts, faults, points);
  }
}

// The JSON of nccl-tests and rccl-tests: somewhere in it are objects with a size and times, and
// around them the test and its workers.
class BenchmarkJson {
 public:
  void Read(const nlohmann::json& json, const std::string& field) {
    Walk(json, field, {}, kMostLevels);
  }
  std::vector<BenchmarkSection> Take() && {
    std::vector<BenchmarkSection> sections;
    for (auto& [key, section] : sections_) sections.push_back(std::move(section));
    return sections;
  }

 private:
  static constexpr int kMostLevels = 8;
  using Json = nlohmann::json;

  // Told by what is around.
  struct Around {
    std::optional<BenchmarkTest> test;
    int32_t workers = 0;
    int64_t size_bytes = -1;
  };

  static std::optional<double> NumberAt(const Json& object, const char* key) {
    const auto value = object.find(key);
    double number = 0;
    if (value == object.end() || !absl::SimpleAtod(TextOfScalar(*value), &number))
      return std::nullopt;
    return number;
  }
  static double FirstOf(const Json& object, std::initializer_list<const char*> keys) {
    for (const char* const key : keys) {
      if (const std::optional<double> number = NumberAt(object, key)) return *number;
    }
    return 0;
  }

  static void Learn(const Json& object, Around& around) {
    for (const auto& [key, value] : object.items()) {
      const bool counts = key == "gpus" || key == "ranks" || key == "nranks" || key == "devices" ||
                          key == "num_ranks" || key == "nRanks" || key == "world_size";
      int32_t workers = 0;
      if (counts && value.is_array()) workers = static_cast<int32_t>(value.size());
      if (counts && !value.is_array() && !absl::SimpleAtoi(TextOfScalar(value), &workers))
        workers = 0;
      if (workers > 0) around.workers = workers;
      std::string text = value.is_string() ? value.get<std::string>() : "";
      if (value.is_array() && !value.empty() && value.front().is_string())
        text = value.front().get<std::string>();
      std::optional<BenchmarkTest> test = TestMentioned(text);
      if (!test && (key == "name" || key == "test" || key == "collective" || key == "coll" ||
                    key == "operation"))
        test = TestNamed(text);
      if (test) around.test = std::move(test);
      if (key == "config" && value.is_object()) Learn(value, around);
    }
    if (const std::optional<double> size = NumberAt(object, "size");
        size && *size >= 0 && *size <= 9e15)
      around.size_bytes = static_cast<int64_t>(*size);
  }

  void Walk(const Json& json, const std::string& field, Around around, int levels) {
    if (levels == 0 || !json.is_structured()) return;
    if (json.is_object()) {
      Learn(json, around);
      if (around.size_bytes >= 0 && AddRow(json, field, around)) return;
    }
    size_t place = 0;
    for (const auto& [key, value] : json.items()) {
      Around inside = around;
      int64_t size = 0;
      if (json.is_object() && absl::SimpleAtoi(key, &size)) inside.size_bytes = size;
      const std::string below = json.is_array() ? absl::StrCat(field, "[", place, "]")
                                : field.empty() ? key
                                                : absl::StrCat(field, ".", key);
      Walk(value, below, inside, levels - 1);
      ++place;
    }
  }

  // False: it is not a measurement.
  bool AddRow(const Json& object, const std::string& field, const Around& around) {
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
    if (!(row.micros > 0)) return false;
    row.is_in_place = FirstOf(object, {"inPlace"}) != 0 || !object.contains("inPlace");
    row.algorithm_rate = FirstOf(taken, {"ip_algbw", "algBw", "alg_bw", "algbw", "oop_algbw"});
    row.bus_rate = FirstOf(taken, {"ip_busbw", "busBw", "bus_bw", "busbw", "oop_busbw"});
    const auto text = [&object](const char* key) {
      return object.contains(key) ? TextOfScalar(object.at(key)) : "";
    };
    row.reduces = !text("redop").empty() && text("redop") != "none";
    row.has_root = FirstOf(object, {"root"}) >= 0 && object.contains("root");
    row.is_checked =
        NumberAt(other, "oop_error") || NumberAt(other, "nwrong") || NumberAt(object, "#wrong");
    row.is_checked_in_place = NumberAt(in_place, "ip_error") || NumberAt(in_place, "nwrong") ||
                              NumberAt(object, "#wrong");
    BenchmarkSection& section = sections_[{around.test ? around.test->name : "", around.workers}];
    if (section.field.empty()) section.field = field;
    section.test = around.test;
    section.workers = around.workers;
    const double wrong =
        std::max(FirstOf(object, {"#wrong"}),
                 std::max(FirstOf(in_place, {"nwrong"}), FirstOf(other, {"nwrong"})));
    std::string fault =
        wrong > 0 ? absl::StrCat(wrong, " wrong values: the benchmark failed") : RateFault(row);
    if (!fault.empty()) section.faults.push_back({.field = field, .description = std::move(fault)});
    section.rows.push_back(std::move(row));
    return true;
  }

  std::map<std::pair<std::string, int32_t>, BenchmarkSection> sections_;
};

void AddSections(std::vector<BenchmarkSection> sections, const CollectiveBenchmarkOptions& options,
                 FaultList& faults, MeasuredPoints& points) {
  for (const auto& [field, point] : MeasurementsOf(std::move(sections), options, faults)) {
    if (!points.Add(field, point)) return;
  }
}

nlohmann::json ParsedOrNot(absl::string_view text) {
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

// One document, or one a line.
void ReadJson(absl::string_view text, const CollectiveBenchmarkOptions& options, FaultList& faults,
              MeasuredPoints& points) {
  const nlohmann::json json = ParsedOrNot(text);
  BenchmarkJson benchmark;
  if (!json.is_discarded()) {
    const nlohmann::json* list = &json;
    if (json.is_object() && json.contains("measured")) list = &json.at("measured");
    const bool is_ours =
        list != &json || (json.is_array() && !json.empty() && json.front().is_object() &&
                          json.front().contains("seconds"));
    if (is_ours && list->is_array()) return ReadPointList(*list, faults, points);
    benchmark.Read(json, "");
  } else {
    size_t number = 0;
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      ++number;
      if (absl::StripAsciiWhitespace(line).empty()) continue;
      const nlohmann::json object = ParsedOrNot(line);
      if (object.is_discarded()) {
        return faults.Add(number == 1 ? kAtRecording : LineField(number),
                          "no JSON, or one that is cut short");
      }
      benchmark.Read(object, LineField(number));
    }
  }
  std::vector<BenchmarkSection> sections = std::move(benchmark).Take();
  if (!sections.empty()) return AddSections(std::move(sections), options, faults, points);
  if (json.is_array() && !json.empty()) return ReadPointList(json, faults, points);
  faults.Add(kAtRecording, "no objects with a size and times, as nccl-tests and rccl-tests write");
}

// A launcher may put `[1,0]` before the lines of nccl-tests.
bool IsJson(absl::string_view text) {
  if (text.empty() || text.front() == '{') return !text.empty();
  const absl::string_view rest = absl::StripLeadingAsciiWhitespace(text.substr(1));
  return text.front() == '[' && (rest.empty() || rest.front() == '{' || rest.front() == ']');
}

}  // namespace

absl::StatusOr<std::vector<MeasuredCollective>> ReadCollectiveBenchmark(
    std::string_view text, const CollectiveBenchmarkOptions& options,
    const AllReduceLimits& limits) {
  FaultList faults;
  if (options.workers && *options.workers < 2)
    faults.Add("workers", absl::StrCat(*options.workers, " is below 2"));
  MeasuredPoints points(limits, faults);
  const absl::string_view view = AbslView(text);
  const absl::string_view content = absl::StripAsciiWhitespace(view);
  const absl::string_view first = content.substr(0, content.find('\n'));
  const bool is_table =
      absl::StrContains(first, "size_bytes") || absl::StrContains(first, "workers,");
  if (!faults.empty()) {
    // The options are wrong already.
  } else if (IsJson(content)) {
    ReadJson(view, options, faults, points);
  } else if (is_table) {
    ReadPointTable(view, faults, points);
  } else {
    AddSections(BenchmarkLog().Read(view), options, faults, points);
    if (faults.empty() && points.empty()) {
      faults.Add(LineField(static_cast<size_t>(std::count(view.begin(), view.end(), '\n')) + 1),
                 "no line of size, count, type, time: this is to be what nccl-tests, rccl-tests or "
                 "the MPI benchmarks of OSU or Intel print");
    }
  }
  std::vector<MeasuredCollective> measured = std::move(points).Take();
  if (faults.empty() && measured.empty()) faults.Add(kAtRecording, "it has no points");
  if (faults.empty()) return measured;
  std::vector<Fault> told = std::move(faults).Take();
  if (!is_table) told.front().description.append(kOwnTable);
  return FaultsError("IMPORT_INVALID", std::move(told));
}

}  // namespace stepcast
