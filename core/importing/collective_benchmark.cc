#include "core/importing/collective_benchmark.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

#include "core/base/error.h"
#include "core/base/quoted.h"
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

// The text of nccl-tests. Its numbers of a line stand below the names of its columns.
class NcclTestsText {
 public:
  NcclTestsText(const CollectiveBenchmarkOptions& options, FaultList& faults)
      : options_(options), faults_(faults) {}

  void Read(absl::string_view text, MeasuredPoints& points) {
    size_t number = 0;
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      ++number;
      if (!ReadLine(number, line)) break;
    }
    if (faults_.empty() && rows_.empty()) {
      faults_.Add(LineField(number),
                  "no line of size, count, type, time: this is to be what nccl-tests print");
    }
    if (!faults_.empty()) return;
    const int32_t workers = options_.workers.value_or(ranks_);
    if (workers < 2) {
      faults_.Add("workers", absl::StrCat(workers,
                                          " found in lines of the form `# Rank 0 ...`: say how "
                                          "many took part, at least 2"));
      return;
    }
    const Collective kind = KindOfRows();
    if (kind == Collective::kUnspecified) {
      faults_.Add("kind", "not told by the text: say what was measured");
      return;
    }
    for (const Row& row : rows_) {
      if (row.size_bytes < 1) continue;
      const MeasuredCollective point = {.kind = kind,
                                        .workers = workers,
                                        .size_bytes = row.size_bytes,
                                        .seconds = row.micros / 1e6};
      if (!points.Add(LineField(row.line), point)) return;
    }
  }

 private:
  struct Row {
    size_t line = 0;
    int64_t size_bytes = 0;
    double micros = 0;
    double algorithm_rate = 0;  // GB/s
    double bus_rate = 0;
    bool reduces = false;
  };
  // The places of the columns; of times and rates, the last half's.
  struct Columns {
    size_t count = 0;
    size_t size = SIZE_MAX;
    size_t reduction = SIZE_MAX;
    std::vector<size_t> times;
    std::vector<size_t> algorithm_rates;
    std::vector<size_t> bus_rates;
    std::vector<size_t> wrongs;
  };

  using Tokens = std::vector<absl::string_view>;
  static Tokens TokensOf(absl::string_view text) {
    return absl::StrSplit(text, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  }

  bool ReadLine(size_t number, absl::string_view line) {
    const size_t hash = line.find('#');
    if (hash != absl::string_view::npos) {
      ReadComment(line.substr(0, hash), line.substr(hash + 1));
      return true;
    }
    if (columns_.times.empty()) return true;
    if (!prefix_.empty() && !absl::ConsumePrefix(&line, prefix_)) return true;
    const Tokens tokens = TokensOf(line);
    Row row{.line = number};
    // A line that a library prints between.
    if (tokens.size() <= columns_.size || !absl::SimpleAtoi(tokens[columns_.size], &row.size_bytes))
      return true;
    if (tokens.size() < columns_.count) {
      faults_.Add(LineField(number), absl::StrCat(tokens.size(), " columns of ", columns_.count,
                                                  ": the line is cut short"));
      return !faults_.full();
    }
    FillRow(tokens, row);
    return !faults_.full();
  }

  void ReadComment(absl::string_view before, absl::string_view comment) {
    const Tokens tokens = TokensOf(comment);
    if (tokens.size() > 2 && tokens[0] == "Rank") {
      int32_t rank = 0;
      if (absl::SimpleAtoi(tokens[1], &rank) && rank < INT32_MAX)
        ranks_ = std::max(ranks_, rank + 1);
    }
    if (tokens.size() < 5 || tokens[0] != "size" || tokens[1] != "count") return;
    prefix_ = std::string(before);
    columns_ = {.count = tokens.size(), .size = 0};
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] == "redop") columns_.reduction = i;
      if (tokens[i] == "time") columns_.times.push_back(i);
      if (tokens[i] == "algbw") columns_.algorithm_rates.push_back(i);
      if (tokens[i] == "busbw") columns_.bus_rates.push_back(i);
      if (tokens[i] == "#wrong") columns_.wrongs.push_back(i);
    }
    const size_t halves = columns_.times.size();
    if (columns_.algorithm_rates.size() != halves || columns_.bus_rates.size() != halves)
      columns_ = {};
  }

  void FillRow(const Tokens& tokens, Row& row) {
    for (const size_t at : columns_.wrongs) {
      int64_t wrong = 0;
      if (absl::SimpleAtoi(tokens[at], &wrong) && wrong > 0) {
        faults_.Add(LineField(row.line),
                    absl::StrCat(wrong, " wrong values: the benchmark failed"));
        return;
      }
    }
    row.reduces = columns_.reduction != SIZE_MAX && tokens[columns_.reduction] != "none";
    // In place, unless that was not run.
    for (size_t half = columns_.times.size(); half-- > 0;) {
      const bool is_known =
          absl::SimpleAtod(tokens[columns_.times[half]], &row.micros) && row.micros > 0 &&
          absl::SimpleAtod(tokens[columns_.algorithm_rates[half]], &row.algorithm_rate) &&
          absl::SimpleAtod(tokens[columns_.bus_rates[half]], &row.bus_rate);
      if (!is_known) continue;
      CheckRate(row);
      rows_.push_back(row);
      return;
    }
    if (row.size_bytes > 0) {
      faults_.Add(
          LineField(row.line),
          absl::StrCat(Quoted({tokens[columns_.times[0]].data(), tokens[columns_.times[0]].size()}),
                       " is no time above 0"));
    }
  }

  // The units are those of the columns if the rate is what size and time give.
  void CheckRate(const Row& row) {
    const double rate = static_cast<double>(row.size_bytes) / row.micros / 1e3;
    constexpr double kShare = 0.02;
    constexpr double kRounding = 0.02;
    if (std::abs(rate - row.algorithm_rate) <= kShare * row.algorithm_rate + kRounding) return;
    faults_.Add(LineField(row.line),
                absl::StrCat(row.size_bytes, " bytes in ", row.micros, " us are ", rate,
                             " GB/s, not ", row.algorithm_rate, ": are the units others?"));
  }

  // nccl-tests' bus over algorithm bandwidth is 2 (W - 1) / W of an all-reduce, (W - 1) / W of a
  // reduce-scatter or an all-gather, and 1 of a broadcast.
  Collective KindOfRows() const {
    if (options_.kind != Collective::kUnspecified) return options_.kind;
    const auto largest = std::max_element(
        rows_.begin(), rows_.end(),
        [](const Row& a, const Row& b) { return a.algorithm_rate < b.algorithm_rate; });
    constexpr double kLeastRate = 0.1;  // below it rounding decides
    if (largest->algorithm_rate < kLeastRate) return Collective::kUnspecified;
    constexpr double kLeastOfWhole = 0.97;
    const bool is_whole = largest->bus_rate / largest->algorithm_rate > kLeastOfWhole;
    const int32_t workers = options_.workers.value_or(ranks_);
    // A share (W - 1) / W of almost 1 is not told from 1.
    constexpr int32_t kMostTold = 30;
    if (largest->reduces) {
      const bool is_twice = largest->bus_rate / largest->algorithm_rate >
                            1.5 * (workers - 1) / static_cast<double>(workers);
      return is_twice ? Collective::kAllReduce : Collective::kReduceScatter;
    }
    if (workers > kMostTold) return Collective::kUnspecified;
    return is_whole ? Collective::kBroadcast : Collective::kAllGather;
  }

  const CollectiveBenchmarkOptions& options_;
  FaultList& faults_;
  std::string prefix_;  // of each line, by a launcher
  Columns columns_;
  int32_t ranks_ = 0;
  std::vector<Row> rows_;
};

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

void ReadPointJson(std::string_view text, FaultList& faults, MeasuredPoints& points) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return faults.Add(kAtRecording, "no JSON, or one that is cut short");
  const nlohmann::json* list = &json;
  if (json.is_object() && json.contains("measured")) list = &json.at("measured");
  if (!list->is_array()) {
    return faults.Add(kAtRecording,
                      "no list of points with kind, workers, size_bytes and seconds, nor an object "
                      "that has one as `measured`");
  }
  for (size_t i = 0; i < list->size() && !faults.full(); ++i) {
    const nlohmann::json& entry = (*list)[i];
    const std::string field = absl::StrCat("measured[", i, "]");
    if (!entry.is_object()) {
      faults.Add(field, "is no object");
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
  if (!faults.empty()) {
    // The options are wrong already.
  } else if (IsJson(content)) {
    ReadPointJson(text, faults, points);
  } else if (absl::StrContains(first, "size_bytes") || absl::StrContains(first, "workers,")) {
    ReadPointTable(view, faults, points);
  } else {
    NcclTestsText(options, faults).Read(view, points);
  }
  std::vector<MeasuredCollective> measured = std::move(points).Take();
  if (faults.empty() && measured.empty()) faults.Add(kAtRecording, "it has no points");
  if (!faults.empty()) return FaultsError("IMPORT_INVALID", std::move(faults).Take());
  return measured;
}

}  // namespace stepcast
