#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "core/base/message_text.h"
#include "core/importing/benchmarks/benchmark_sections.h"

namespace stepcast {

namespace {

// Reader of what nccl-tests, rccl-tests, OSU's and Intel's MPI benchmarks print. The numbers of a
// line stand below the names of its columns.
class BenchmarkLog {
 public:
  std::vector<BenchmarkSection> Read(absl::string_view text) {
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      ++number_;
      ReadLine(line);
    }
    EndHead();
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
    size_t type = SIZE_MAX;
    size_t defects = SIZE_MAX;
    bool ends_in_verdict = false;
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

  // "node0:42:42 [0] NCCL INFO ...", "NCCL version 2.18.3".
  static bool IsDebug(absl::string_view line) {
    constexpr absl::string_view kName = "NCCL ";
    for (size_t at = line.find(kName); at != absl::string_view::npos;
         at = line.find(kName, at + 1)) {
      const absl::string_view rest = line.substr(at + kName.size());
      for (const char* const word :
           {"INFO", "WARN", "TRACE", "CALL", "ABORT", "VERSION", "version"}) {
        if (absl::StartsWith(rest, word)) return true;
      }
    }
    return false;
  }

  void ReadLine(absl::string_view line) {
    const size_t hash = line.find('#');
    const bool is_debug = IsDebug(line);
    if (hash != absl::string_view::npos && !is_debug) {
      EndHead();
      return ReadComment(line.substr(0, hash), line.substr(hash + 1));
    }
    if (const std::optional<BenchmarkTest> test = TestRun(line)) test_ = test;
    if (is_debug) ReadDebug(line);
    for (const LaunchedTest& launch : LaunchesIn(line)) {
      launched_[launch.kind].insert(launch.workers);
      is_over_ = true;
    }
    if (columns_.times.empty()) return;
    if (!is_over_ && IsFailure(line)) {
      return AddFault(absl::StrCat(Quoted(std::string(absl::StripAsciiWhitespace(line))),
                                   ": the benchmark failed"),
                      number_);
    }
    Tokens tokens = TokensOf(WithoutPrefix(line));
    int64_t size_bytes = 0;
    if (!is_debug && !tokens.empty() && EndsRow(tokens)) return;
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
          "NCCL_DEBUG_FILE",
          number_);
    }
    AddRow(tokens, size_bytes);
  }

  // The rest of a row whose head stands on a line before, as where a library printed between. Where
  // it is none, the head is a fault.
  bool EndsRow(const Tokens& tokens) {
    if (head_.empty()) return false;
    Tokens row = head_;
    row.insert(row.end(), tokens.begin(), tokens.end());
    int64_t size_bytes = 0;
    const bool is_whole = tokens.size() < columns_.count && row.size() + 1 >= columns_.count &&
                          absl::SimpleAtoi(row.front(), &size_bytes);
    if (!is_whole) {
      EndHead();
      return false;
    }
    head_.clear();
    AddRow(row, size_bytes);
    return true;
  }

  void EndHead() {
    if (head_.empty()) return;
    const std::string fault =
        absl::StrCat(head_.size(), " columns of ", columns_.count, ": the line is cut short");
    head_.clear();
    AddFault(fault, head_number_);
  }

  // "... NCCL INFO comm 0x5 rank 0 nranks 2 ...".
  void ReadDebug(absl::string_view line) {
    const Tokens tokens = TokensOf(line);
    const auto name = std::find(tokens.begin(), tokens.end(), "nranks");
    int32_t ranks = 0;
    if (tokens.end() - name > 1 && absl::SimpleAtoi(*(name + 1), &ranks)) debug_ranks_ = ranks;
  }

  // Processes of the one launch of a test since its table before; 0: there is none, or several
  // that differ, as where a script is printed first.
  int32_t TakeLaunch() {
    const auto found = launched_.find(test_->kind);
    if (found == launched_.end()) return 0;
    const std::set<int32_t> workers = std::move(found->second);
    launched_.erase(found);
    return workers.size() == 1 ? *workers.begin() : 0;
  }

  // Lines with which a program ends that failed: nccl-tests', MPI's and launchers'.
  static bool IsFailure(absl::string_view line) {
    for (const char* const mark : {"Test failure", "Test timeout", "Test NCCL failure",
                                   "Test CUDA failure", "Test HIP failure", "MPI_ABORT was invoked",
                                   "BAD TERMINATION", "exited on signal", "DUE TO TIME LIMIT"}) {
      if (absl::StrContains(line, mark)) return true;
    }
    return false;
  }

  // A launcher's mark is the same in each line, or has as many words (a time). Where it ends within
  // a word, what is after its last digit is the same: "[1,12]<stdout>:".
  absl::string_view WithoutPrefix(absl::string_view line) const {
    if (prefix_.empty() || absl::ConsumePrefix(&line, prefix_)) return line;
    absl::string_view end = prefix_;
    end.remove_prefix(end.find_last_of("0123456789 \t") + 1);  // npos + 1 is 0
    const bool ends_within = prefix_.back() != ' ' && prefix_.back() != '\t';
    for (size_t left = TokensOf(prefix_).size() - (ends_within ? 1 : 0); left > 0; --left) {
      line = absl::StripLeadingAsciiWhitespace(line);
      line.remove_prefix(std::min(line.size(), line.find_first_of(" \t")));
    }
    if (!ends_within) return line;
    const size_t at = end.empty() ? absl::string_view::npos : line.find(end);
    return at == absl::string_view::npos ? "" : line.substr(at + end.size());
  }

  void ReadComment(absl::string_view before, absl::string_view comment) {
    const Tokens tokens = TokensOf(comment);
    const auto begins = [&tokens](std::initializer_list<absl::string_view> words) {
      return tokens.size() >= words.size() &&
             std::equal(words.begin(), words.end(), tokens.begin());
    };
    if (begins({"Collective", "test"}) || begins({"Out", "of", "bounds", "values"}))
      is_over_ = true;
    if (begins({"Collective", "test", "concluded:"})) return;
    if (begins({"Collective", "test", "starting:"}) && tokens.size() > 3) {
      test_ = TestOfProgram(tokens[3]).value_or(BenchmarkTest{.name = std::string(tokens[3])});
      return;
    }
    if (begins({"Rank"}) && tokens.size() > 2) return AddRank(tokens);
    if (begins({"Benchmarking"}) && tokens.size() > 1) return BeginTest(tokens[1]);
    if (begins({"#processes", "="}) && tokens.size() > 2) {
      if (!absl::SimpleAtoi(tokens[2], &processes_)) processes_ = 0;
      return;
    }
    if (begins({"OSU"})) return BeginOsuTest(tokens);
    if (begins({"size", "count"}) && tokens.size() >= 5) return BeginTable(before, tokens);
    if (begins({"Datatype:"}) && tokens.size() > 1) {
      type_ = std::string(absl::StripSuffix(tokens[1], "."));
      test_is_read_ = false;
      return;
    }
    if (begins({"Size"}) || begins({"bytes"})) return BeginTimes(before, tokens);
    if (begins({"Out", "of", "bounds", "values"}) && tokens.back() == "FAILED" &&
        !sections_.empty())
      return AddFault("values are out of bounds: the benchmark failed", number_);
    if (const std::optional<BenchmarkTest> test = TestRun(comment)) test_ = test;
  }

  void AddRank(const Tokens& tokens) {
    int32_t rank = 0;
    if (!absl::SimpleAtoi(tokens[1], &rank) || rank < 0 || rank == INT32_MAX) return;
    // A table is below all its ranks.
    if (std::exchange(ranks_have_table_, false)) {
      ranks_.clear();
      hosts_.clear();
      last_rank_ = -1;
    }
    const auto on = std::find(tokens.begin(), tokens.end(), "on");
    if (tokens.end() - on > 1) ++hosts_[std::string(*(on + 1))];
    const bool has_group = tokens.size() > 3 && tokens[2] == "Group";
    ++ranks_[has_group ? std::string(tokens[3]) : ""][rank];
    last_rank_ = std::max(last_rank_, rank);
  }

  // A rank that is listed several times has as many jobs' output around it.
  void CountRanks(BenchmarkSection& section) {
    ranks_have_table_ = true;
    int32_t jobs = 1;
    for (const auto& [group, ranks] : ranks_) {
      section.workers = std::max(section.workers, static_cast<int32_t>(ranks.size()));
      for (const auto& [rank, count] : ranks) jobs = std::max(jobs, count);
    }
    // The first lines of a group may be missing.
    if (ranks_.size() == 1) section.workers = std::max(section.workers, last_rank_ + 1);
    int64_t placed = 0;
    for (const auto& [host, ranks] : hosts_) {
      placed += ranks;
      section.by_host.push_back(ranks);
    }
    if (placed != section.workers) section.by_host.clear();
    if (jobs == 1) return;
    AddFault(absl::StrCat("its ranks are listed ", jobs, " times, as in the mixed output of ", jobs,
                          section.workers == 1
                              ? " jobs of one rank: build nccl-tests with MPI=1 for several "
                                "processes that work together"
                              : " jobs: give each job's log by itself"),
             number_);
  }

  void BeginTest(absl::string_view name) {
    test_ = TestNamed(name).value_or(BenchmarkTest{.name = std::string(name)});
    columns_ = {};
    processes_ = 0;
    test_launched_ = 0;
    type_.clear();
    test_is_read_ = false;
  }

  // "OSU MPI-CUDA Allreduce Latency Test v7.0".
  void BeginOsuTest(const Tokens& tokens) {
    const auto test = std::find(tokens.begin(), tokens.end(), "Test");
    if (test == tokens.end() || test - tokens.begin() < 3) return;  // it has no name
    auto last = test;
    if (last - tokens.begin() > 3 && *(last - 1) == "Latency") --last;
    BeginTest(absl::StrJoin(tokens.begin() + 2, last, " "));
    test_launched_ = TakeLaunch();
  }

  BenchmarkSection& BeginSection(absl::string_view before) {
    prefix_ = std::string(before);
    columns_ = {};
    is_over_ = false;
    is_broken_ = false;
    sections_.push_back({.field = LineField(number_)});
    return sections_.back();
  }

  // Table of nccl-tests.
  void BeginTable(absl::string_view before, const Tokens& tokens) {
    BenchmarkSection& section = BeginSection(before);
    section.test = std::exchange(test_, std::nullopt);
    CountRanks(section);
    section.likely_workers = debug_ranks_;
    if (std::find(tokens.begin(), tokens.end(), "cputime") != tokens.end())
      return AddFault(kTimesOfCpu, number_);
    columns_.count = tokens.size();
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] == "type") columns_.type = i;
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
    columns_ = {};
    if (!test_ || test_is_read_) return;
    BenchmarkSection& section = BeginSection(before);
    test_is_read_ = true;
    section.test = test_;
    section.workers = processes_;
    section.likely_workers = test_launched_;
    section.has_rates = false;
    section.sizes_are_shares = true;
    columns_ = {.count = 2, .times = {1}};
    columns_.ends_in_verdict = tokens.back() == "Validation";
    const auto defects = std::find(tokens.begin(), tokens.end(), "defects");
    if (defects != tokens.end()) columns_.defects = static_cast<size_t>(defects - tokens.begin());
    const auto mean = std::find(tokens.begin(), tokens.end(), "t_avg[usec]");
    if (mean == tokens.end()) return;
    columns_.times = {static_cast<size_t>(mean - tokens.begin())};
    columns_.count = columns_.times.front() + 1;
  }

  void AddFault(std::string description, size_t number) {
    BenchmarkSection& section = sections_.back();
    if (section.faults.size() < kMostFaults)
      section.faults.push_back({.field = LineField(number), .description = std::move(description)});
  }

  // "268435456 10 ---- out-of-mem.; needed X= 1 GB", as Intel's say of a size that did not run.
  bool IsNotRun(const Tokens& tokens) {
    for (const absl::string_view token : tokens) {
      if (token != "time-out.;" && token != "out-of-mem.;" && token != "int-overflow.;") continue;
      std::vector<std::string>& not_run = sections_.back().not_run;
      if (not_run.size() < kMostFaults)
        not_run.push_back(absl::StrCat(tokens.front(), " bytes: ", absl::StripSuffix(token, ".;")));
      return true;
    }
    return false;
  }

  void AddRow(Tokens& tokens, int64_t size_bytes) {
    if (IsNotRun(tokens)) return;
    // Some print nothing where nothing is added up.
    if (tokens.size() + 1 == columns_.count && columns_.reduction < tokens.size() &&
        IsNumber(tokens[columns_.reduction])) {
      tokens.insert(tokens.begin() + static_cast<ptrdiff_t>(columns_.reduction), "none");
    }
    if (tokens.size() < columns_.count) {
      if (is_broken_) return;  // the rest of such a row
      head_ = std::move(tokens);
      head_number_ = number_;
      return;
    }
    is_broken_ = false;
    BenchmarkRow row{.field = LineField(number_), .size_bytes = size_bytes};
    FillRow(tokens, row);
  }

  void FillRow(const Tokens& tokens, BenchmarkRow& row) {
    double defects = 0;
    if (columns_.defects < tokens.size() && absl::SimpleAtod(tokens[columns_.defects], &defects) &&
        defects > 0)
      return AddFault(absl::StrCat(defects, " defects: the benchmark failed"), number_);
    if (columns_.ends_in_verdict && absl::StartsWithIgnoreCase(tokens.back(), "fail"))
      return AddFault("its results are not valid: the benchmark failed", number_);
    row.type = columns_.type < tokens.size() ? std::string(tokens[columns_.type]) : type_;
    for (const size_t at : columns_.wrongs) {
      (at == columns_.wrongs.back() ? row.is_checked_in_place : row.is_checked) =
          IsNumber(tokens[at]);
      int64_t wrong = 0;
      if (columns_.counts_wrongs && absl::SimpleAtoi(tokens[at], &wrong) && wrong > 0)
        return AddFault(absl::StrCat(wrong, " wrong values: the benchmark failed"), number_);
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
        AddFault(std::move(fault), number_);
      sections_.back().rows.push_back(std::move(row));
      return;
    }
    const absl::string_view time = tokens[columns_.times[0]];
    if (row.size_bytes > 0) {
      AddFault(
          absl::StrCat(Quoted(std::string(time)), " is not a time above 0",
                       absl::StrContains(time, ",") ? ": write its decimals after a point" : ""),
          number_);
    }
  }

  size_t number_ = 0;
  std::string prefix_;  // of each line, by a launcher
  Columns columns_;
  std::optional<BenchmarkTest> test_;                 // the one named last
  bool test_is_read_ = false;                         // of OSU's and Intel's
  bool is_over_ = false;                              // its table, and what fails is another
  bool is_broken_ = false;                            // a row had something inside
  Tokens head_;                                       // of a row whose rest is to come
  size_t head_number_ = 0;                            // its line
  std::string type_;                                  // OSU's, of the elements
  int32_t processes_ = 0;                             // Intel's
  std::map<Collective, std::set<int32_t>> launched_;  // by commands whose test is to come
  int32_t test_launched_ = 0;                         // OSU's, of the test named last; 0: not told
  std::map<std::string, std::map<int32_t, int32_t>> ranks_;  // times listed, by group and rank
  std::map<std::string, int32_t> hosts_;                     // ranks on each
  int32_t last_rank_ = -1;                                   // of all of them
  bool ranks_have_table_ = false;
  int32_t debug_ranks_ = 0;  // as NCCL_DEBUG's output says
  std::vector<BenchmarkSection> sections_;
};

}  // namespace

std::string LineField(size_t line) { return absl::StrCat("line ", line); }

std::string RateFault(const BenchmarkRow& row) {
  const double rate = static_cast<double>(row.size_bytes) / row.micros / 1e3;
  constexpr double kShare = 0.02;
  constexpr double kRounding = 0.02;
  if (std::abs(rate - row.algorithm_rate) <= kShare * row.algorithm_rate + kRounding) return "";
  return absl::StrCat(row.size_bytes, " bytes in ", row.micros, " us are ", rate, " GB/s, not ",
                      row.algorithm_rate, ": are the units others?");
}

std::vector<BenchmarkSection> ReadBenchmarkLog(absl::string_view text) {
  return BenchmarkLog().Read(text);
}

}  // namespace stepcast
