#include "core/importing/benchmark_sections.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "core/base/quoted.h"

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

bool IsWordCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// A kind that rates allow, or the reason why they allow none.
struct KindOfRates {
  Collective kind = Collective::kUnspecified;
  std::string why;
};

// nccl-tests' bus over algorithm bandwidth is 2 (W - 1) / W of an all-reduce, (W - 1) / W of a
// reduce-scatter, an all-gather or an all-to-all, and 1 of all others. An all-to-all and a
// point-to-point exchange are not checked in place.
KindOfRates KindByRates(const BenchmarkSection& section, int32_t workers) {
  const BenchmarkRow& row = *std::max_element(section.rows.begin(), section.rows.end(),
                                              [](const BenchmarkRow& a, const BenchmarkRow& b) {
                                                return a.algorithm_rate < b.algorithm_rate;
                                              });
  constexpr double kLeastRate = 0.1;  // below it rounding decides
  if (!section.has_rates || row.algorithm_rate < kLeastRate)
    return {.why = "its rates are too low to tell it"};
  if (row.reduces && row.has_root) return {.why = "it has a root, as a reduce has"};
  const double share = (workers - 1) / static_cast<double>(workers);
  const double ratio = row.bus_rate / row.algorithm_rate;
  const double rounding = 0.003 + 0.01 / row.algorithm_rate;
  const auto is = [&](double expected) { return std::abs(ratio - expected) <= rounding; };
  const bool is_unchecked_in_place = row.is_checked && !row.is_checked_in_place;
  const bool is_unchecked = !row.is_checked && !row.is_checked_in_place;
  const bool is_share = is(share);
  const bool is_whole = is(1);
  if (is_share && is_whole)
    return {.why = "of so many workers its rates are like those of several kinds"};
  if (row.reduces && is(2 * share)) {
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
  return {.why = absl::StrCat("bus over algorithm bandwidth is ", ratio,
                              ", as of none of them among ", workers, " workers")};
}

void AddRows(const BenchmarkSection& section, Collective kind, int32_t workers,
             std::vector<std::pair<std::string, MeasuredCollective>>& measured) {
  const bool has_in_place = std::any_of(section.rows.begin(), section.rows.end(),
                                        [](const BenchmarkRow& row) { return row.is_in_place; });
  const bool is_share = section.sizes_are_shares && kind == Collective::kAllGather;
  for (const BenchmarkRow& row : section.rows) {
    if (row.size_bytes < 1 || row.is_in_place != has_in_place) continue;
    const bool fits = !is_share || row.size_bytes <= INT64_MAX / workers;
    measured.emplace_back(
        row.field, MeasuredCollective{
                       .kind = kind,
                       .workers = workers,
                       .size_bytes = is_share && fits ? row.size_bytes * workers : row.size_bytes,
                       .seconds = row.micros / 1e6});
  }
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

std::optional<BenchmarkTest> TestMentioned(absl::string_view line) {
  constexpr char kEnd[] = "_perf";
  std::optional<BenchmarkTest> found;
  for (size_t at = line.find(kEnd); at != absl::string_view::npos; at = line.find(kEnd, at + 1)) {
    size_t begin = at;
    while (begin > 0 && IsWordCharacter(line[begin - 1])) --begin;
    std::optional<BenchmarkTest> test = TestNamed(line.substr(begin, at - begin));
    if (!test) continue;
    test->name.append(kEnd);
    if (found && found->name != test->name) return std::nullopt;
    found = std::move(test);
  }
  return found;
}

std::vector<std::pair<std::string, MeasuredCollective>> MeasurementsOf(
    std::vector<BenchmarkSection> sections, const CollectiveBenchmarkOptions& options,
    FaultList& faults) {
  std::vector<std::pair<std::string, MeasuredCollective>> measured;
  std::erase_if(sections, [](const BenchmarkSection& section) {
    return section.rows.empty() && section.faults.empty();
  });
  std::set<int32_t> told;
  for (const BenchmarkSection& section : sections)
    if (section.workers > 0) told.insert(section.workers);
  if (options.workers && told.size() > 1) {
    faults.Add("workers", absl::StrCat(*options.workers, " given, and its tests are of ",
                                       absl::StrJoin(told, ", "), " workers"));
  }
  const bool has_others =
      std::any_of(sections.begin(), sections.end(), [](const BenchmarkSection& section) {
        return section.test && section.test->kind != Collective::kUnspecified;
      });
  std::set<std::string> others;
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
    for (const Fault& fault : section.faults) faults.Add(fault.field, fault.description);
    if (section.rows.empty()) continue;
    const int32_t workers = options.workers.value_or(section.workers);
    if (workers < 2) {
      faults.Add("workers",
                 absl::StrCat(workers, " found at ", section.field,
                              " (in lines of the form `# Rank 0 ...`, of processes, or of "
                              "the command that started them): "
                              "say how many took part, at least 2"));
      continue;
    }
    KindOfRates kind{.kind = section.test ? section.test->kind : options.kind};
    if (kind.kind == Collective::kUnspecified) kind = KindByRates(section, workers);
    if (kind.kind == Collective::kUnspecified) {
      faults.Add("kind", absl::StrCat("not told by the text at ", section.field, ": ", kind.why,
                                      "; say what was measured if it is ", kFourKinds));
      continue;
    }
    AddRows(section, kind.kind, workers, measured);
  }
  if (!others.empty() && !is_any_read && faults.empty())
    faults.Add("kind", absl::StrCat("its tests are others: ", absl::StrJoin(others, ", ")));
  return measured;
}

}  // namespace stepcast
