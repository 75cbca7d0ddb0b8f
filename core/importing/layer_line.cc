#include "core/importing/layer_line.h"

#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "core/base/quoted.h"
#include "core/importing/units.h"

namespace stepcast {

namespace {

// Longest operation word that is taken; leaves room in a name for what is put around it.
constexpr size_t kMaxTypeBytes = 128;

std::string_view View(absl::string_view text) { return {text.data(), text.size()}; }
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
        wrong_.push_back(absl::StrCat(Quoted(View(part)), " is not of the form key=value"));
        return;
      }
      entries_.emplace_back(View(pair.first), View(absl::StripAsciiWhitespace(pair.second)));
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
  const std::optional<int64_t> number = ParseNode(View(fields[0]));
  if (!number.has_value())
    wrong.push_back(absl::StrCat(Quoted(View(fields[0])), " is not of the form nodeK"));
  const std::string_view type = LeadingWord(View(fields[1]));
  if (type.empty() || type.size() > kMaxTypeBytes) {
    wrong.push_back(absl::StrCat(Quoted(View(fields[1])), " does not begin with a word of 1 to ",
                                 kMaxTypeBytes, " letters and digits"));
  }
  layer.number = number.value_or(0);
  layer.type = type;
  const Attributes attributes(View(fields[2]), wrong);
  const double max_ms = static_cast<double>(limits.max_step_ns) / kNsPerMs;
  if (!wrong.empty()) return layer;
  layer.forward_ms = attributes.Number("forward_compute_time", max_ms);
  layer.backward_ms = attributes.Number("backward_compute_time", max_ms);
  layer.parameter_bytes = attributes.WholeNumber("parameter_size", limits.max_transfer_bytes);
  return layer;
}

}  // namespace stepcast
