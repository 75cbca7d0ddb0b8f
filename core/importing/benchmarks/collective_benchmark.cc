#include "core/importing/benchmarks/collective_benchmark.h"

#include <algorithm>
#include <array>
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
#include "core/base/message_text.h"
#include "core/importing/benchmarks/benchmark_sections.h"
#include "core/importing/common/recording_import.h"
#include "core/importing/file_kind.h"
#include "core/model/profile.h"

namespace stepcast {

namespace {

constexpr double kMaxSeconds = 86'400;

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
  std::vector<std::string>& notes() { return notes_; }  // of what was left out

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
  std::vector<std::string> notes_;
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
               absl::StrCat(kPointColumns[column], " ", Quoted(texts[column]), " is not a ", what));
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
  char separator = ',';
  for (const absl::string_view raw : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(raw);
    if (line.empty() || line.front() == '#') continue;
    if (columns == 0) {
      const size_t first = line.find_first_of(",;\t");
      if (first != absl::string_view::npos) separator = line[first];
    }
    std::vector<absl::string_view> cells = absl::StrSplit(line, separator);
    for (absl::string_view& cell : cells) cell = absl::StripAsciiWhitespace(cell);
    if (columns == 0) {
      columns = cells.size();
      for (size_t c = 0; c < place.size(); ++c) {
        const auto found = std::find_if(cells.begin(), cells.end(), [c](absl::string_view cell) {
          return absl::EqualsIgnoreCase(cell, kPointColumns[c]);
        });
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

void AddSections(std::vector<BenchmarkSection> sections, const CollectiveBenchmarkOptions& options,
                 FaultList& faults, MeasuredPoints& points) {
  for (const auto& [field, point] :
       MeasurementsOf(std::move(sections), options, faults, points.notes())) {
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
      // A launcher's mark may stand before it.
      const size_t begin = line.find('{');
      const nlohmann::json object =
          ParsedOrNot(begin == absl::string_view::npos ? line : line.substr(begin));
      if (object.is_discarded()) {
        const std::string not_number = NotNumberIn(std::string_view(line.data(), line.size()));
        return faults.Add(number == 1 ? kAtRecording : LineField(number),
                          not_number.empty() ? "no JSON, or one that is cut short" : not_number);
      }
      benchmark.Read(object, LineField(number));
    }
  }
  std::vector<BenchmarkSection> sections = std::move(benchmark).Take();
  if (!sections.empty()) return AddSections(std::move(sections), options, faults, points);
  if (json.is_array() && !json.empty()) return ReadPointList(json, faults, points);
  faults.Add(kAtRecording, "no objects with a size and times, as nccl-tests and rccl-tests write");
}

// The text without escapes of colours, its lines divided by line feeds alone.
std::string PlainText(absl::string_view text) {
  constexpr char kEscape = '\x1b';
  std::string plain;
  plain.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const bool has_next = i + 1 < text.size();
    if (text[i] == kEscape && has_next && text[i + 1] == '[') {
      // Up to its letter.
      for (i += 2; i < text.size() && !absl::ascii_isalpha(static_cast<unsigned char>(text[i]));)
        ++i;
    } else if (text[i] != '\r') {
      plain += text[i];
    } else if (!has_next || text[i + 1] != '\n') {
      plain += '\n';
    }
  }
  return plain;
}

// A launcher may put `[1,0]` before the lines of nccl-tests, and before each object on a line.
bool IsJson(absl::string_view text) {
  const absl::string_view first = text.substr(0, text.find('\n'));
  if (absl::StrContains(first, "{\"") && absl::EndsWith(first, "}")) return true;
  if (text.empty() || text.front() == '{') return !text.empty();
  const absl::string_view rest = absl::StripLeadingAsciiWhitespace(text.substr(1));
  return text.front() == '[' && (rest.empty() || rest.front() == '{' || rest.front() == ']');
}

}  // namespace

absl::StatusOr<std::vector<MeasuredCollective>> ReadCollectiveBenchmark(
    std::string_view text, const CollectiveBenchmarkOptions& options, const AllReduceLimits& limits,
    std::vector<std::string>* notes) {
  FaultList faults;
  if (options.workers && *options.workers < 2)
    faults.Add("workers", absl::StrCat(*options.workers, " is below 2"));
  MeasuredPoints points(limits, faults);
  const std::string plain = PlainText(AbslView(text));
  const absl::string_view view = plain;
  const absl::string_view content = absl::StripAsciiWhitespace(view);
  const std::string first = absl::AsciiStrToLower(content.substr(0, content.find('\n')));
  const bool is_table =
      absl::StrContains(first, "size_bytes") || absl::StrContains(first, "workers,");
  if (!faults.empty()) {
    // The options are wrong already.
  } else if (IsJson(content)) {
    ReadJson(view, options, faults, points);
  } else if (is_table) {
    ReadPointTable(view, faults, points);
  } else {
    AddSections(ReadBenchmarkLog(view), options, faults, points);
    if (faults.empty() && points.empty()) {
      faults.Add(LineField(static_cast<size_t>(std::count(view.begin(), view.end(), '\n')) + 1),
                 "no line of size, count, type, time: this is to be what nccl-tests, rccl-tests or "
                 "the MPI benchmarks of OSU or Intel print");
    }
  }
  if (notes != nullptr) *notes = std::move(points.notes());
  std::vector<MeasuredCollective> measured = std::move(points).Take();
  if (faults.empty() && measured.empty()) faults.Add(kAtRecording, "it has no points");
  // Tables and lists say the kind of each point themselves.
  if (options.kind != Collective::kUnspecified) {
    std::erase_if(measured,
                  [&](const MeasuredCollective& point) { return point.kind != options.kind; });
    if (faults.empty() && measured.empty())
      faults.Add("kind", "there are points of other collectives only: leave it out to read those");
  }
  if (faults.empty()) return measured;
  std::vector<Fault> told = std::move(faults).Take();
  if (!is_table) told.front().description.append(kOwnTable);
  return FaultsError("IMPORT_INVALID", std::move(told));
}

}  // namespace stepcast
