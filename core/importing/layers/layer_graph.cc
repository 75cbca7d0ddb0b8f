#include "core/importing/layers/layer_graph.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <queue>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "core/importing/common/recording_import.h"
#include "core/model/dependency_cycle.h"

namespace stepcast {

namespace {

constexpr size_t kMaxCycleNames = 20;

struct Edge {
  int64_t from = 0;  // numbers of layers
  int64_t to = 0;
  int64_t line = 0;
};

std::string Line(int64_t line) { return absl::StrCat("line ", line); }

class Parser {
 public:
  Parser(const ProfileLimits& limits, FaultList& faults) : limits_(limits), faults_(faults) {}

  std::vector<MeasuredLayer> Parse(std::string_view text) && {
    ReadLines(text);
    if (layers_.empty() && faults_.empty()) faults_.Add(Line(1), "the text has no layer");
    for (const Edge& edge : edges_) Connect(edge);
    if (faults_.empty()) CheckCycle();
    return faults_.empty() ? Sorted() : std::vector<MeasuredLayer>{};
  }

 private:
  void ReadLines(std::string_view text) {
    for (int64_t line = 1; !text.empty() && !faults_.full() && !over_limit_; ++line) {
      const size_t end = std::min(text.find('\n'), text.size());
      std::string_view one = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (!one.empty() && one.back() == '\r') one.remove_suffix(1);
      if (one.find_first_not_of(" \t") == std::string_view::npos) continue;
      if (one.front() == '\t') {
        ReadEdge(one.substr(1), line);
      } else {
        ReadLayer(one, line);
      }
    }
  }

  void ReadLayer(std::string_view text, int64_t line) {
    std::vector<std::string> wrong;
    MeasuredLayer layer = ParseLayerLine(text, limits_, wrong);
    layer.line = line;
    if (wrong.empty() && layer.is_input() && layer.parameter_bytes > 0)
      wrong.push_back("Input is data loading, which has no parameters");
    for (std::string& what : wrong) faults_.Add(Line(line), std::move(what));
    const std::optional<int64_t> number = ParseNode(text.substr(0, text.find(kLayerSeparator)));
    if (!number.has_value()) return;
    // Also with faults, so that its edges are not reported as well.
    const auto [earlier, is_new] = index_of_.try_emplace(*number, layers_.size());
    if (!is_new) {
      faults_.Add(Line(line), absl::StrCat("node", *number, " is already on line ",
                                           layers_[earlier->second].line));
      return;
    }
    layers_.push_back(std::move(layer));
    Limit(line, static_cast<int64_t>(layers_.size()), "max_operations", limits_.max_operations);
  }

  void ReadEdge(std::string_view text, int64_t line) {
    const size_t middle = text.find(kLayerSeparator);
    const std::optional<int64_t> from = ParseNode(text.substr(0, middle));
    const std::optional<int64_t> to =
        middle == std::string_view::npos
            ? std::nullopt
            : ParseNode(text.substr(middle + std::string_view(kLayerSeparator).size()));
    if (!from.has_value() || !to.has_value()) {
      faults_.Add(Line(line), absl::StrCat(Quoted(text), " is not an edge `nodeA -- nodeB`"));
      return;
    }
    edges_.push_back({.from = *from, .to = *to, .line = line});
    Limit(line, static_cast<int64_t>(edges_.size()), "max_dependencies", limits_.max_dependencies);
  }

  void Limit(int64_t line, int64_t value, const char* limit, int64_t max) {
    if (value <= max) return;
    faults_.Add(Line(line), OverLimit(value, limit, max));
    over_limit_ = true;
  }

  void Connect(const Edge& edge) {
    if (over_limit_ || faults_.full()) return;
    const auto from = index_of_.find(edge.from);
    const auto to = index_of_.find(edge.to);
    for (const auto& [found, number] : {std::pair(from, edge.from), std::pair(to, edge.to)}) {
      if (found == index_of_.end())
        faults_.Add(Line(edge.line), absl::StrCat("node", number, " is not a layer of the text"));
    }
    if (from == index_of_.end() || to == index_of_.end()) return;
    if (edge.from == edge.to) {
      faults_.Add(Line(edge.line), absl::StrCat("node", edge.from, " feeds itself"));
    } else if (layers_[to->second].is_input()) {
      faults_.Add(Line(edge.line),
                  absl::StrCat("node", edge.to, " is data loading, which waits for nothing"));
    } else if (const auto [earlier, is_new] =
                   line_of_edge_.try_emplace({edge.from, edge.to}, edge.line);
               !is_new) {
      faults_.Add(Line(edge.line), absl::StrCat("this edge is already on line ", earlier->second));
    } else {
      layers_[to->second].inputs.push_back(static_cast<int32_t>(from->second));
    }
  }

  void CheckCycle() {
    std::vector<Operation> operations(layers_.size());
    for (size_t i = 0; i < layers_.size(); ++i) operations[i].waiting_for = layers_[i].inputs;
    const std::vector<int32_t> cycle = FindDependencyCycle(operations);
    if (cycle.empty()) return;
    const auto number = [&](size_t at) {
      return layers_[static_cast<size_t>(cycle[at % cycle.size()])].number;
    };
    std::string names = absl::StrCat("node", number(0));
    for (size_t i = 1; i < cycle.size() && i < kMaxCycleNames; ++i)
      absl::StrAppend(&names, ", node", number(i));
    const int64_t line = line_of_edge_.at({number(1), number(0)});
    faults_.Add(Line(line), absl::StrCat("a cycle of ", cycle.size(), " layers: ", names,
                                         cycle.size() > kMaxCycleNames ? ", ..." : ""));
  }

  // Kahn's order with a heap, so that the lowest number comes first. REQUIRES: no cycle.
  std::vector<MeasuredLayer> Sorted() {
    using Ready = std::pair<int64_t, size_t>;  // number, index
    std::vector<size_t> unmet(layers_.size());
    std::vector<std::vector<size_t>> followers(layers_.size());
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    for (size_t i = 0; i < layers_.size(); ++i) {
      unmet[i] = layers_[i].inputs.size();
      for (const int32_t input : layers_[i].inputs)
        followers[static_cast<size_t>(input)].push_back(i);
      if (unmet[i] == 0) ready.emplace(layers_[i].number, i);
    }
    std::vector<int32_t> place(layers_.size());
    std::vector<MeasuredLayer> sorted;
    while (!ready.empty()) {
      const size_t index = ready.top().second;
      ready.pop();
      place[index] = static_cast<int32_t>(sorted.size());
      sorted.push_back(std::move(layers_[index]));
      for (int32_t& input : sorted.back().inputs) input = place[static_cast<size_t>(input)];
      std::sort(sorted.back().inputs.begin(), sorted.back().inputs.end());
      for (const size_t follower : followers[index]) {
        if (--unmet[follower] == 0) ready.emplace(layers_[follower].number, follower);
      }
    }
    return sorted;
  }

  const ProfileLimits& limits_;
  FaultList& faults_;
  bool over_limit_ = false;
  std::vector<MeasuredLayer> layers_;
  std::vector<Edge> edges_;
  std::map<int64_t, size_t> index_of_;  // by number
  std::map<std::pair<int64_t, int64_t>, int64_t> line_of_edge_;
};

}  // namespace

std::vector<MeasuredLayer> ParseLayerGraph(std::string_view text, const ProfileLimits& limits,
                                           FaultList& faults) {
  return Parser(limits, faults).Parse(text);
}

namespace {

// Longest operation word that is taken; leaves room in a name for what is put around it.
constexpr size_t kMaxTypeBytes = 128;

std::string_view StdView(absl::string_view text) { return {text.data(), text.size()}; }
// The leading letters, digits and underscores: of `Conv2d(3, 64)` the `Conv2d`.
std::string_view LeadingWord(std::string_view text) {
  size_t end = 0;
  while (end < text.size() &&
         (absl::ascii_isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
    ++end;
  return text.substr(0, end);
}

// The attributes of a layer: each wanted key is found once, and has a number that is finite and not
// negative.
class Attributes {
 public:
  Attributes(std::string_view text, std::vector<std::string>& wrong) : wrong_(wrong) {
    for (const absl::string_view part : absl::StrSplit(AbslView(text), ", ")) {
      const std::pair<absl::string_view, absl::string_view> pair =
          absl::StrSplit(part, absl::MaxSplits('=', 1));
      if (pair.first.empty() || pair.first.size() == part.size()) {
        wrong_.push_back(absl::StrCat(Quoted(StdView(part)), " is not of the form key=value"));
        return;
      }
      entries_.emplace_back(StdView(pair.first), StdView(absl::StripAsciiWhitespace(pair.second)));
    }
  }

  double Number(std::string_view key, double max) const {
    const std::optional<std::string_view> text = Find(key);
    if (!text.has_value()) return 0;
    double value = 0;
    if (!absl::SimpleAtod(AbslView(*text), &value) || !std::isfinite(value)) {
      Add(key, Quoted(*text), " is not a finite number");
    } else if (value < 0) {
      Add(key, Quoted(*text), " is negative");
    } else if (value > max) {
      Add(key, Quoted(*text), absl::StrCat(" is above the limit of ", max));
    } else {
      return value;
    }
    return 0;
  }

  int64_t WholeNumber(std::string_view key, int64_t max) const {
    const double value = Number(key, static_cast<double>(max));
    if (value != std::floor(value)) Add(key, absl::StrCat(value), " is not a whole number");
    return static_cast<int64_t>(value);
  }

 private:
  std::optional<std::string_view> Find(std::string_view key) const {
    std::optional<std::string_view> found;
    for (const auto& [name, value] : entries_) {
      if (name != key) continue;
      if (found.has_value()) Add(key, "", "is there twice");
      found = value;
    }
    if (!found.has_value()) Add(key, "", "is missing");
    return found;
  }

  void Add(std::string_view key, std::string_view value, std::string_view what) const {
    std::string text(key);
    text.append(value.empty() ? " " : " = ").append(value).append(what);
    wrong_.push_back(std::move(text));
  }

  std::vector<std::pair<std::string_view, std::string_view>> entries_;
  std::vector<std::string>& wrong_;
};

}  // namespace

std::optional<int64_t> ParseNode(std::string_view text) {
  constexpr std::string_view kPrefix = "node";
  if (text.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  const std::string_view digits = text.substr(kPrefix.size());
  // SimpleAtoi also takes signs and spaces.
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  int64_t number = 0;
  return absl::SimpleAtoi(AbslView(digits), &number) ? std::optional(number) : std::nullopt;
}

MeasuredLayer ParseLayerLine(std::string_view line, const ProfileLimits& limits,
                             std::vector<std::string>& wrong) {
  const std::vector<absl::string_view> fields = absl::StrSplit(AbslView(line), kLayerSeparator);
  if (fields.size() != 3) {
    wrong.push_back(
        absl::StrCat(Quoted(line), " is neither `nodeK -- Op -- key=value, ...` nor an edge"));
    return {};
  }
  MeasuredLayer layer;
  const std::optional<int64_t> number = ParseNode(StdView(fields[0]));
  if (!number.has_value())
    wrong.push_back(absl::StrCat(Quoted(StdView(fields[0])), " is not of the form nodeK"));
  const std::string_view type = LeadingWord(StdView(fields[1]));
  if (type.empty() || type.size() > kMaxTypeBytes) {
    wrong.push_back(absl::StrCat(Quoted(StdView(fields[1])), " does not begin with a word of 1 to ",
                                 kMaxTypeBytes, " letters and digits"));
  }
  layer.number = number.value_or(0);
  layer.type = type;
  const Attributes attributes(StdView(fields[2]), wrong);
  const double max_ms = static_cast<double>(limits.max_step_ns) / kNsPerMs;
  if (!wrong.empty()) return layer;
  layer.forward_ms = attributes.Number("forward_compute_time", max_ms);
  layer.backward_ms = attributes.Number("backward_compute_time", max_ms);
  layer.parameter_bytes = attributes.WholeNumber("parameter_size", limits.max_transfer_bytes);
  return layer;
}

}  // namespace stepcast
