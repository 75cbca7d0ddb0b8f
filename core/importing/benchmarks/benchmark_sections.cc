#include "core/importing/benchmarks/benchmark_sections.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "core/base/message_text.h"

namespace stepcast {

namespace {

constexpr char kFourKinds[] = "an all-reduce, a reduce-scatter, an all-gather or a broadcast";

struct TestRow {
  absl::string_view name;  // in small letters alone
  Collective kind;
};
constexpr TestRow kTests[] = {
    {"allreduce", Collective::kAllReduce},   {"reducescatter", Collective::kReduceScatter},
    {"allgather", Collective::kAllGather},   {"broadcast", Collective::kBroadcast},
    {"bcast", Collective::kBroadcast},       {"alltoall", Collective::kUnspecified},
    {"alltoallv", Collective::kUnspecified}, {"sendrecv", Collective::kUnspecified},
    {"reduce", Collective::kUnspecified},    {"gather", Collective::kUnspecified},
    {"scatter", Collective::kUnspecified},   {"hypercube", Collective::kUnspecified}};

const char* NameOf(Collective kind) {
  switch (kind) {
    case Collective::kReduceScatter:
      return "a reduce-scatter";
    case Collective::kAllGather:
      return "an all-gather";
    case Collective::kBroadcast:
      return "a broadcast";
    default:
      return "an all-reduce";
  }
}

// Bus over algorithm bandwidth, which nccl-tests print: 2 (W - 1) / W of an all-reduce,
// (W - 1) / W of a reduce-scatter, an all-gather or an all-to-all, and 1 of all others.
class RateRatio {
 public:
  explicit RateRatio(const BenchmarkSection& section)
      : row_(*std::max_element(section.rows.begin(), section.rows.end(),
                               [](const BenchmarkRow& a, const BenchmarkRow& b) {
                                 return a.algorithm_rate < b.algorithm_rate;
                               })) {
    constexpr double kLeastRate = 0.1;  // below it rounding decides
    is_told_ = section.has_rates && row_.algorithm_rate >= kLeastRate && row_.bus_rate >= 0;
  }

  bool is_told() const { return is_told_; }
  const BenchmarkRow& row() const { return row_; }
  double value() const { return row_.bus_rate / row_.algorithm_rate; }
  bool Is(double expected) const {
    return std::abs(value() - expected) <= 0.003 + 0.01 / row_.algorithm_rate;
  }
  static double Expected(Collective kind, int32_t workers) {
    const double share = (workers - 1) / static_cast<double>(workers);
    if (kind == Collective::kBroadcast) return 1;
    return kind == Collective::kAllReduce ? 2 * share : share;
  }

 private:
  const BenchmarkRow& row_;
  bool is_told_ = false;
};

// A kind that rates allow, or the reason why they allow none.
struct KindOfRates {
  Collective kind = Collective::kUnspecified;
  std::string why;
};

// An all-to-all and a point-to-point exchange are not checked in place.
KindOfRates KindByRates(const RateRatio& ratio, int32_t workers) {
  if (!ratio.is_told()) return {.why = "its rates are too low to tell it"};
  const BenchmarkRow& row = ratio.row();
  if (row.reduces && row.has_root) return {.why = "it has a root, as a reduce has"};
  const bool is_unchecked_in_place = row.is_checked && !row.is_checked_in_place;
  const bool is_unchecked = !row.is_checked && !row.is_checked_in_place;
  const bool is_share = ratio.Is(RateRatio::Expected(Collective::kAllGather, workers));
  const bool is_whole = ratio.Is(1);
  if (is_share && is_whole)
    return {.why = "of so many workers its rates are like those of several kinds"};
  if (row.reduces && ratio.Is(RateRatio::Expected(Collective::kAllReduce, workers))) {
    if (is_whole && is_unchecked_in_place) return {.why = "its rates are those of a sendrecv"};
    if (is_whole && is_unchecked)
      return {.why = "two workers' rates are alike in an all-reduce, a reduce and a sendrecv"};
    return {.kind = Collective::kAllReduce};
  }
  if (row.reduces && is_share) return {.kind = Collective::kReduceScatter};
  if (row.reduces && is_whole) return {.why = "its rates are those of a reduce or a sendrecv"};
  if (is_share && is_unchecked_in_place) return {.why = "its rates are those of an all-to-all"};
  if (is_share && is_unchecked)
    return {.why = "rates of an all-gather and an all-to-all are alike, and nothing was checked"};
  if (is_share) return {.kind = Collective::kAllGather};
  if (!row.reduces && is_whole) return {.kind = Collective::kBroadcast};
  return {.why = absl::StrCat("bus over algorithm bandwidth is ", ratio.value(),
                              ", as of none of them among ", workers, " workers")};
}

// The fault of a kind and workers that are said, and that the rates or the ranks contradict.
std::string Contradiction(const BenchmarkSection& section, const RateRatio& ratio, Collective kind,
                          int32_t workers) {
  const double expected = RateRatio::Expected(kind, workers);
  if (ratio.is_told() && !ratio.Is(expected)) {
    return absl::StrFormat(
        "bus over algorithm bandwidth is %.4g, and of %s among %d workers it is %.4g: the kind or "
        "the workers are others than is said",
        ratio.value(), NameOf(kind), workers, expected);
  }
  const bool has_others = section.workers > 1 && section.workers != workers;
  if (!has_others || (ratio.is_told() && !ratio.Is(RateRatio::Expected(kind, section.workers))))
    return "";
  return absl::StrCat(workers, " workers are given, and the benchmark says ", section.workers);
}

// The measurements of sections, of which those that add up are of one type of elements: others
// take other times.
class Measurements {
 public:
  void Add(const BenchmarkSection& section, Collective kind, int32_t workers, FaultList& faults) {
    const bool has_in_place = std::any_of(section.rows.begin(), section.rows.end(),
                                          [](const BenchmarkRow& row) { return row.is_in_place; });
    const bool is_share = section.sizes_are_shares && kind == Collective::kAllGather;
    const bool adds = kind == Collective::kAllReduce || kind == Collective::kReduceScatter;
    for (const BenchmarkRow& row : section.rows) {
      if (row.size_bytes < 1 || row.is_in_place != has_in_place) continue;
      if (adds && !row.type.empty()) {
        const std::string& first = types_.try_emplace({kind, workers}, row.type).first->second;
        if (first != row.type) {
          faults.Add(
              row.field,
              absl::StrCat("its elements are ", Quoted(row.type), ", and before them ",
                           Quoted(first), ", whose times are others: give the tables of one type"));
          return;
        }
      }
      const bool fits = !is_share || row.size_bytes <= INT64_MAX / workers;
      measured_.emplace_back(
          row.field, MeasuredCollective{
                         .kind = kind,
                         .workers = workers,
                         .size_bytes = is_share && fits ? row.size_bytes * workers : row.size_bytes,
                         .seconds = row.micros / 1e6});
    }
  }
  std::vector<std::pair<std::string, MeasuredCollective>> Take() && { return std::move(measured_); }

 private:
  std::vector<std::pair<std::string, MeasuredCollective>> measured_;
  std::map<std::pair<Collective, int32_t>, std::string> types_;
};

// Adds the rows of a section that is to be read.
void Read(const BenchmarkSection& section, const CollectiveBenchmarkOptions& options,
          Measurements& measured, FaultList& faults) {
  for (const Fault& fault : section.faults) faults.Add(fault.field, fault.description);
  if (section.rows.empty()) return;
  const RateRatio ratio(section);
  if (ratio.is_told() && ratio.row().bus_rate == 0) {
    return faults.Add(section.field,
                      "its bus bandwidth is 0, as of one worker alone: run the benchmark with "
                      "several (nccl-tests are built with MPI=1 for several processes)");
  }
  const int32_t found = section.workers > 0 ? section.workers : section.likely_workers;
  const int32_t workers = options.workers.value_or(found);
  if (workers < 2) {
    return faults.Add("workers",
                      absl::StrCat(workers, " found at ", section.field,
                                   " (in lines of the form `# Rank 0 ...`, of processes, or of "
                                   "the command that started them): "
                                   "say how many took part, at least 2, where no table is of "
                                   "another number"));
  }
  KindOfRates kind{.kind = section.test ? section.test->kind : options.kind};
  if (kind.kind == Collective::kUnspecified) kind = KindByRates(ratio, workers);
  if (kind.kind == Collective::kUnspecified) {
    return faults.Add("kind",
                      absl::StrCat("not told by the text at ", section.field, ": ", kind.why,
                                   "; say what was measured if it is ", kFourKinds));
  }
  const std::string contradiction = Contradiction(section, ratio, kind.kind, workers);
  if (!contradiction.empty()) return faults.Add(section.field, contradiction);
  measured.Add(section, kind.kind, workers, faults);
}

}  // namespace

std::optional<BenchmarkTest> TestNamed(absl::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)))
      letters += absl::ascii_tolower(static_cast<unsigned char>(c));
  }
  for (const TestRow& row : kTests) {
    if (row.name == letters) return BenchmarkTest{.name = std::string(name), .kind = row.kind};
  }
  return std::nullopt;
}

bool IsLauncher(absl::string_view word) {
  word.remove_prefix(word.rfind('/') + 1);  // npos + 1 is 0
  return word == "mpirun" || word == "mpiexec" || word == "srun" || word == "orterun";
}

std::optional<BenchmarkTest> TestOfProgram(absl::string_view path) {
  constexpr char kEnd[] = "_perf";
  absl::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  if (!absl::ConsumeSuffix(&name, kEnd)) return std::nullopt;
  std::optional<BenchmarkTest> test = TestNamed(name);
  if (test) test->name.append(kEnd);
  return test;
}

namespace {

// The kind that "./osu_allreduce", "osu_xccl_bcast" measure; none of other programs.
std::optional<Collective> KindOfOsuProgram(absl::string_view path) {
  absl::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  if (!absl::ConsumePrefix(&name, "osu_")) return std::nullopt;
  absl::ConsumePrefix(&name, "xccl_");
  const std::optional<BenchmarkTest> test = TestNamed(name);
  return test ? test->kind : Collective::kUnspecified;
}

// The number that an option of a launcher gives; 0 where it is another option.
int32_t ProcessesOf(absl::string_view word, absl::string_view next) {
  for (const char* const name : {"--ntasks", "--np", "--n", "-np", "-n"}) {
    absl::string_view value = word;
    int32_t workers = 0;
    if (!absl::ConsumePrefix(&value, name)) continue;
    absl::ConsumePrefix(&value, "=");
    if (absl::SimpleAtoi(value.empty() ? next : value, &workers) && workers > 0) return workers;
  }
  return 0;
}

}  // namespace

std::vector<LaunchedTest> LaunchesIn(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  std::vector<LaunchedTest> launches;
  for (auto begin = std::find_if(words.begin(), words.end(), IsLauncher); begin != words.end();) {
    const auto end = std::find_if(begin + 1, words.end(), IsLauncher);
    std::set<Collective> kinds;
    int64_t sum = 0;
    bool is_told = true;
    int32_t part = 0;  // of the programs between colons, which run together; 0: not told
    bool has_program = false;
    for (auto word = begin + 1; word != end; ++word) {
      const std::optional<Collective> kind = KindOfOsuProgram(*word);
      if (kind) kinds.insert(*kind);
      has_program = has_program || kind;
      // Words behind a program are its own.
      if (part == 0 && !has_program)
        part = ProcessesOf(*word, word + 1 == end ? absl::string_view() : *(word + 1));
      if (*word != ":" && word + 1 != end) continue;
      is_told = is_told && part > 0;
      sum += part;
      part = 0;
      has_program = false;
    }
    const auto workers = static_cast<int32_t>(is_told && sum <= INT32_MAX ? sum : 0);
    for (const Collective kind : kinds) launches.push_back({.kind = kind, .workers = workers});
    begin = end;
  }
  return launches;
}

// A program is run where it stands first, after a prompt or variables, or after a launcher or
// before options, unless it is what a compiler makes.
std::optional<BenchmarkTest> TestRun(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  std::optional<BenchmarkTest> found;
  bool may_begin = true;
  bool is_launched = false;
  for (size_t i = 0; i < words.size(); ++i) {
    is_launched = is_launched || IsLauncher(words[i]);
    const bool has_options = i + 1 < words.size() && words[i + 1].front() == '-';
    const bool is_made = i > 0 && words[i - 1] == "-o";
    if (!is_made && (may_begin || is_launched || has_options)) {
      std::optional<BenchmarkTest> test = TestOfProgram(words[i]);
      if (test && found && found->name != test->name) return std::nullopt;
      if (test) found = std::move(test);
    }
    may_begin = absl::StrContains("$#%>+:&|;", words[i].substr(words[i].size() - 1)) ||
                absl::StrContains(words[i], "=");
  }
  return found;
}

std::vector<std::pair<std::string, MeasuredCollective>> MeasurementsOf(
    std::vector<BenchmarkSection> sections, const CollectiveBenchmarkOptions& options,
    FaultList& faults, std::vector<std::string>& notes) {
  Measurements measured;
  std::erase_if(sections, [](const BenchmarkSection& section) {
    return section.rows.empty() && section.faults.empty();
  });
  std::set<int32_t> told;
  for (const BenchmarkSection& section : sections) {
    const int32_t workers = section.workers > 0 ? section.workers : section.likely_workers;
    if (workers > 0) told.insert(workers);
  }
  if (options.workers && told.size() > 1) {
    faults.Add("workers", absl::StrCat(*options.workers, " given, and its tests are of ",
                                       absl::StrJoin(told, ", "), " workers"));
  }
  const bool has_others =
      std::any_of(sections.begin(), sections.end(), [](const BenchmarkSection& section) {
        return section.test && section.test->kind != Collective::kUnspecified;
      });
  std::set<std::string> others;
  std::set<std::string> places;
  bool is_any_read = false;
  for (const BenchmarkSection& section : sections) {
    if (section.test) {
      const bool is_asked = options.kind != Collective::kUnspecified;
      if (is_asked && section.test->kind != options.kind) {
        others.insert(section.test->name);
        continue;
      }
      if (section.test->kind == Collective::kUnspecified) {
        faults.Add(section.field,
                   absl::StrCat(Quoted(section.test->name), " is not ", kFourKinds,
                                has_others ? ": say which kind to read of this log" : ""));
        continue;
      }
    }
    is_any_read = true;
    Read(section, options, measured, faults);
    if (!section.by_host.empty()) {
      const int32_t most = *std::max_element(section.by_host.begin(), section.by_host.end());
      const size_t hosts = section.by_host.size();
      places.insert(absl::StrCat(
          "Its ", section.workers, " ranks are on ",
          hosts == 1 ? "one host" : absl::StrCat(hosts, " hosts, ", most, " at most on each"),
          ": workers_per_node is ", most, "."));
    }
    if (!section.not_run.empty()) {
      notes.push_back(absl::StrCat("Left out: ", section.not_run.size(),
                                   " sizes that the benchmark did not run (",
                                   absl::StrJoin(section.not_run, "; "), ")."));
    }
  }
  notes.insert(notes.end(), places.begin(), places.end());
  if (!others.empty() && !is_any_read && faults.empty())
    faults.Add("kind", absl::StrCat("its tests are others: ", absl::StrJoin(others, ", ")));
  return std::move(measured).Take();
}

}  // namespace stepcast
