#include "core/importing/layers/layer_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

#include "core/base/message_text.h"
#include "core/importing/common/recording_import.h"

namespace stepcast {

namespace {

using Cells = std::vector<std::string>;

enum Column : size_t {
  kName,
  kForward,
  kBackward,
  kBackwardInput,
  kBackwardWeight,
  kActivation,
  kParameters,
  kKept,
  kOptimizer,
  kColumns
};
constexpr std::array<const char*, kColumns> kColumnNames = {"name",
                                                            "forward_ms",
                                                            "backward_ms",
                                                            "backward_input_ms",
                                                            "backward_weight_ms",
                                                            "activation_bytes",
                                                            "parameter_bytes",
                                                            "kept_bytes",
                                                            "optimizer_ms"};
constexpr size_t kMostKeys = 32;  // that are named
constexpr char kSeparators[] = ",;\t";

// The next line of a text, without its end; the text is what follows.
std::string_view NextLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

bool IsPassedOver(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t");
  return begin == std::string_view::npos || line[begin] == '#';
}

// Quotes around a cell are not of it; what divides cells may be within them, and a quote that is
// written twice (RFC 4180). `is_open`: the last quote is not closed.
Cells CellsOf(std::string_view line, bool& is_open) {
  Cells cells(1);
  is_open = false;
  for (size_t i = 0; i < line.size(); ++i) {
    std::string& cell = cells.back();
    const bool is_quote = line[i] == '"';
    const bool is_bare = cell.find_first_not_of(' ') == std::string::npos;
    if (is_quote && is_open && line.substr(i + 1, 1) == "\"") {
      cell.push_back(line[++i]);
    } else if (is_quote && (is_open || is_bare)) {
      is_open = !is_open;
    } else if (!is_open && std::string_view(kSeparators).find(line[i]) != std::string_view::npos) {
      cells.emplace_back();
    } else {
      cell.push_back(line[i]);
    }
  }
  for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
  return cells;
}

class TableParser {
 public:
  TableParser(const ProfileLimits& limits, FaultList& faults) : limits_(limits), faults_(faults) {}

  LayerTable Parse(std::string_view text) && {
    for (; !text.empty() && !faults_.full() && !is_over_limit_; ++line_) {
      const std::string_view line = NextLine(text);
      if (IsPassedOver(line)) continue;
      bool is_open = false;
      const Cells cells = CellsOf(line, is_open);
      if (is_open) {
        Fault("a quote is not closed: a cell ends on its line");
        if (columns_.empty()) return {};
      } else if (columns_.empty()) {
        ReadHeader(cells);
        if (!faults_.empty()) return {};
      } else {
        ReadRow(cells);
      }
    }
    if (table_.layers.empty() && faults_.empty()) Fault("the table has no layer");
    return std::move(table_);
  }

 private:
  void Fault(std::string description) {
    faults_.Add(absl::StrCat("line ", line_), std::move(description));
  }

  void ReadHeader(const Cells& cells) {
    for (const std::string& cell : cells) {
      const auto found =
          std::find_if(kColumnNames.begin(), kColumnNames.end(),
                       [&cell](const char* name) { return absl::AsciiStrToLower(cell) == name; });
      const auto column = static_cast<size_t>(found - kColumnNames.begin());
      if (column == kColumns) {
        Fault(absl::StrCat("the column ", Quoted(cell), " is none of ",
                           absl::StrJoin(kColumnNames, ", ")));
      } else if (std::find(columns_.begin(), columns_.end(), column) != columns_.end()) {
        Fault(absl::StrCat("the column ", Quoted(cell), " is there twice"));
      }
      columns_.push_back(column);
    }
    const bool is_split = Has(kBackwardInput) && Has(kBackwardWeight);
    if (!Has(kForward)) Fault("the table has no column forward_ms");
    if (!Has(kBackward) && !is_split) {
      Fault(
          "the table has no column backward_ms, nor both backward_input_ms and "
          "backward_weight_ms");
    } else if (Has(kBackward) && (Has(kBackwardInput) || Has(kBackwardWeight))) {
      Fault("the table has the column backward_ms, and its parts, too: which?");
    }
  }

  bool Has(Column column) const {
    return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
  }

  void ReadRow(const Cells& cells) {
    if (cells.size() != columns_.size()) {
      return Fault(
          absl::StrCat(cells.size(), " cells, where the first line has ", columns_.size()));
    }
    TrainingLayer layer{.name = absl::StrCat(table_.layers.size())};
    if (!table_.layers.empty()) layer.inputs = {static_cast<int32_t>(table_.layers.size()) - 1};
    int64_t parameter_bytes = 0;
    for (size_t i = 0; i < cells.size(); ++i) {
      const size_t column = columns_[i];
      const std::string& cell = cells[i];
      if (column == kName && !cell.empty()) layer.name = cell;
      if (column == kForward) layer.forward_ns = TimeOf(column, cell);
      if (column == kBackward || column == kBackwardInput) layer.backward_ns = TimeOf(column, cell);
      if (column == kBackwardWeight) layer.backward_weight_ns = TimeOf(column, cell);
      if (column == kOptimizer) layer.optimizer_ns = TimeOf(column, cell);
      if (column == kActivation) layer.output_bytes = BytesOf(column, cell);
      if (column == kKept) layer.kept_bytes = BytesOf(column, cell);
      if (column == kParameters) parameter_bytes = BytesOf(column, cell);
    }
    if (parameter_bytes > 0) layer.parameters = {{layer.name, parameter_bytes}};
    if (layer.name.size() > limits_.max_name_bytes)
      Fault(TooLong(layer.name, "max_name_bytes", limits_.max_name_bytes));
    const auto [earlier, is_new] = line_of_name_.try_emplace(layer.name, line_);
    if (!is_new)
      Fault(
          absl::StrCat("the layer ", Quoted(layer.name), " is already on line ", earlier->second));
    table_.layers.push_back(std::move(layer));
    const auto layers = static_cast<int64_t>(table_.layers.size());
    is_over_limit_ = layers > limits_.max_operations;
    if (is_over_limit_) Fault(OverLimit(layers, "max_operations", limits_.max_operations));
  }

  double NumberOf(size_t column, const std::string& cell, double most) {
    double value = 0;
    if (absl::SimpleAtod(cell, &value) && value >= 0 && value <= most) return value;
    Fault(absl::StrCat(kColumnNames[column], " is ", Quoted(cell),
                       ", which is not a number of 0 to ", most));
    return 0;
  }
  int64_t TimeOf(size_t column, const std::string& cell) {
    const double most = static_cast<double>(limits_.max_step_ns) / kNsPerMs;
    return std::llround(NumberOf(column, cell, most) * kNsPerMs);
  }
  int64_t BytesOf(size_t column, const std::string& cell) {
    const auto most = static_cast<double>(std::min(kMaxKeptBytes, limits_.max_transfer_bytes));
    return std::llround(NumberOf(column, cell, most));
  }

  const ProfileLimits& limits_;
  FaultList& faults_;
  LayerTable table_;
  int64_t line_ = 1;
  bool is_over_limit_ = false;
  std::vector<size_t> columns_;
  absl::flat_hash_map<std::string, int64_t> line_of_name_;
};

using Json = ::nlohmann::json;

// The member of an object by a number; null: there is none.
const Json* MemberOf(const Json& object, int64_t number) {
  const auto found = object.is_object() ? object.find(absl::StrCat(number)) : object.end();
  return found == object.end() ? nullptr : &*found;
}

std::string KeysOf(const Json& object) {
  std::vector<int64_t> keys;
  for (const auto& [key, value] : object.items()) {
    int64_t number = 0;
    if (absl::SimpleAtoi(key, &number)) keys.push_back(number);
  }
  std::sort(keys.begin(), keys.end());
  if (keys.size() > kMostKeys) keys.resize(kMostKeys);
  return absl::StrJoin(keys, ", ");
}

// Sizes of a transformer's layers, of one device of a tensor group.
struct TransformerSizes {
  int64_t hidden = 0;
  int64_t sequence = 0;
  int64_t blocks = 0;
  int64_t vocabulary = 0;
  int64_t positions = 0;

  static constexpr int64_t kBytesOfElement = 4;

  int64_t ParameterBytes(int64_t layer, int64_t width) const {
    int64_t elements = 12 * hidden * hidden + 13 * hidden;
    if (layer == 0) elements = (vocabulary + positions) * hidden;
    if (layer == blocks + 1) elements = (vocabulary + 2) * hidden;
    return kBytesOfElement * elements / width;
  }
  int64_t OutputBytes(int64_t layer, int64_t batch) const {
    return layer > blocks ? 0 : kBytesOfElement * batch * sequence * hidden;
  }
};

std::optional<TransformerSizes> SizesIn(std::string_view text, FaultList& faults) {
  constexpr int64_t kMost = 1 << 20;  // so that bytes of all layers add up
  const Json config = Json::parse(text.begin(), text.end(), nullptr, false);
  TransformerSizes sizes;
  const std::pair<const char*, int64_t*> fields[] = {{"hidden_size", &sizes.hidden},
                                                     {"sequence_length", &sizes.sequence},
                                                     {"num_layers", &sizes.blocks},
                                                     {"vocab_size", &sizes.vocabulary},
                                                     {"max_position_embeddings", &sizes.positions}};
  bool is_sound = true;
  for (const auto& [name, field] : fields) {
    const auto found = config.is_object() ? config.find(name) : config.end();
    const bool is_given = config.is_object() && found != config.end();
    if (is_given && found->is_number_integer() && found->get<int64_t>() >= 1 &&
        found->get<int64_t>() <= kMost) {
      *field = found->get<int64_t>();
    } else if (is_given || field != &sizes.positions) {
      faults.Add(kAtGraph, absl::StrCat(name, " of the configuration is not a number of 1 to ",
                                        kMost, ", which the sizes of layers need"));
      is_sound = false;
    }
  }
  return is_sound ? std::optional(sizes) : std::nullopt;
}

// The layers of a micro-batch and a tensor width; null, with a fault: there are none.
const Json* ChosenLayers(const Json& profile, const SailorChoice& choice, FaultList& faults,
                         int32_t& width) {
  const Json* const widths = MemberOf(profile, choice.batch_size);
  if (widths == nullptr) {
    faults.Add("batch_size", absl::StrCat(choice.batch_size, ": the profile has micro-batches of ",
                                          KeysOf(profile)));
    return nullptr;
  }
  width = choice.tensor_width;
  if (width == 0 && widths->is_object() && widths->size() == 1) {
    const std::string& only = widths->begin().key();
    if (!absl::SimpleAtoi(only, &width)) width = 0;
  }
  const Json* const layers = MemberOf(*widths, width);
  if (layers == nullptr || width < 1) {
    faults.Add(
        "tensor_parallel",
        absl::StrCat(width == 0 ? "not given, and" : absl::StrCat(width, ":"),
                     " of that micro-batch the profile has tensor widths of ", KeysOf(*widths)));
    return nullptr;
  }
  return layers;
}

// Nanoseconds of a layer's forward and backward pass and of the optimizer; none where they are not
// three times of 0 to `longest` seconds.
std::optional<std::array<int64_t, 3>> TimesOf(const Json& layers, int64_t layer, double longest) {
  const Json* const times = MemberOf(layers, layer);
  if (times == nullptr || !times->is_array() || times->size() != 3) return std::nullopt;
  std::array<int64_t, 3> ns = {};
  for (size_t i = 0; i < ns.size(); ++i) {
    const double seconds = (*times)[i].is_number() ? (*times)[i].get<double>() : -1;
    if (!(seconds >= 0 && seconds <= longest)) return std::nullopt;
    ns[i] = std::llround(seconds * 1e9);
  }
  return ns;
}

// Layers by larger micro-batches, of the same tensor width.
std::vector<const Json*> LargerOf(const Json& profile, int32_t batch, int32_t width) {
  std::vector<const Json*> larger;
  for (const auto& [key, widths] : profile.items()) {
    int64_t micro_batch = 0;
    if (!absl::SimpleAtoi(key, &micro_batch) || micro_batch <= batch) continue;
    if (const Json* const layers = MemberOf(widths, width)) larger.push_back(layers);
  }
  return larger;
}

}  // namespace

bool IsSailorProfile(std::string_view text, bool has_configuration) {
  const auto take = [&text](char mark) {
    const size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos || text[begin] != mark) return false;
    text.remove_prefix(begin + 1);
    return true;
  };
  if (!take('{')) return false;
  if (has_configuration) return true;
  if (!take('"')) return false;
  const size_t digits = text.find_first_not_of("0123456789");
  return digits != 0 && digits != std::string_view::npos && text[digits] == '"';
}

LayerTable ParseSailorProfile(std::string_view text, const SailorChoice& choice,
                              const ProfileLimits& limits, FaultList& faults, int32_t& width) {
  const Json profile = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!profile.is_object() || profile.empty()) {
    faults.Add(kAtRecording,
               "no JSON of micro-batches, tensor widths and layers, as Sailor writes");
    return {};
  }
  if (choice.sizes.empty())
    faults.Add(kAtGraph,
               "not given, and the profile has no sizes of layers: give Sailor's training "
               "configuration beside it (--graph), JSON with hidden_size, sequence_length, "
               "num_layers and vocab_size");
  const Json* const layers = ChosenLayers(profile, choice, faults, width);
  const auto sizes = choice.sizes.empty() ? std::nullopt : SizesIn(choice.sizes, faults);
  if (layers == nullptr || !sizes) return {};
  if (!layers->is_object() || static_cast<int64_t>(layers->size()) != sizes->blocks + 2) {
    faults.Add(kAtRecording,
               absl::StrCat("it has ", layers->size(), " layers, where the configuration's ",
                            sizes->blocks, " blocks have an embedding and a head besides"));
    return {};
  }
  LayerTable table;
  const double longest = static_cast<double>(limits.max_step_ns) / 1e9;
  const std::vector<const Json*> larger = LargerOf(profile, choice.batch_size, width);
  for (int64_t layer = 0; layer < sizes->blocks + 2; ++layer) {
    auto times = TimesOf(*layers, layer, longest);
    if (!times) {
      faults.Add(kAtRecording,
                 absl::StrCat("layer ", layer, " is not a list of three times of 0 to ", longest,
                              " seconds"));
      return {};
    }
    const int64_t measured = (*times)[0] + (*times)[1];
    for (const Json* const others : larger) {
      const auto bound = TimesOf(*others, layer, longest);
      if (bound && (*bound)[0] + (*bound)[1] < (*times)[0] + (*times)[1])
        std::copy_n(bound->begin(), 2, times->begin());
    }
    table.bounded += (*times)[0] + (*times)[1] < measured ? 1 : 0;
    TrainingLayer& made = table.layers.emplace_back();
    made.name = absl::StrCat(layer);
    if (layer > 0) made.inputs = {static_cast<int32_t>(layer) - 1};
    made.forward_ns = (*times)[0];
    made.backward_ns = (*times)[1];
    made.output_bytes = sizes->OutputBytes(layer, choice.batch_size);
    made.parameters = {{made.name, sizes->ParameterBytes(layer, width)}};
    table.optimizer_ns = std::max(table.optimizer_ns, (*times)[2]);
  }
  return table;
}

bool IsLayerTable(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = NextLine(text);
    if (IsPassedOver(line)) continue;
    bool is_open = false;
    const Cells cells = CellsOf(line.substr(0, 4096), is_open);
    return cells.size() > 1 && std::any_of(cells.begin(), cells.end(), [](const std::string& cell) {
             const std::string name = absl::AsciiStrToLower(cell);
             return name == kColumnNames[kForward] || name == kColumnNames[kBackward] ||
                    name == kColumnNames[kBackwardInput];
           });
  }
  return false;
}

LayerTable ParseLayerTable(std::string_view text, const ProfileLimits& limits, FaultList& faults) {
  return TableParser(limits, faults).Parse(text);
}

}  // namespace stepcast
