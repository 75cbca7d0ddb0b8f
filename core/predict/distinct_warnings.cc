#include "core/predict/distinct_warnings.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace stepcast {

namespace {

// The same for warnings that differ only in their numbers.
std::string Shape(const std::string& warning) {
  std::string shape;
  for (const char c : warning) {
    if (absl::ascii_isdigit(static_cast<unsigned char>(c)) == 0 && c != '.') shape.push_back(c);
  }
  return shape;
}

// 1, 2, 3, 5 as `1-3, 5`. REQUIRES: ascending.
std::string CountsText(const std::vector<int32_t>& counts) {
  std::string text;
  for (size_t i = 0; i < counts.size();) {
    size_t last = i;
    while (last + 1 < counts.size() && counts[last + 1] == counts[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ", ", counts[i]);
    if (last > i) absl::StrAppend(&text, "-", counts[last]);
    i = last + 1;
  }
  return text;
}

std::string Line(const std::string& about, const WarningGroup& group, const std::string& first) {
  return absl::StrCat(about, group.alike ? "" : absl::StrCat(", the numbers are those for ", first),
                      ": ", group.text);
}

}  // namespace

std::vector<WarningGroup> GroupWarnings(const std::vector<std::string>& warnings) {
  std::vector<WarningGroup> groups;
  std::vector<std::string> shapes;  // parallel to groups
  for (size_t i = 0; i < warnings.size(); ++i) {
    if (warnings[i].empty()) continue;
    std::string shape = Shape(warnings[i]);
    const auto at =
        static_cast<size_t>(std::find(shapes.begin(), shapes.end(), shape) - shapes.begin());
    if (at == groups.size()) {
      groups.push_back({.text = warnings[i], .items = {}});
      shapes.push_back(std::move(shape));
    }
    groups[at].alike = groups[at].alike && groups[at].text == warnings[i];
    groups[at].items.push_back(i);
  }
  return groups;
}

std::vector<std::string> WarningsByWorkers(const std::vector<Prediction>& predictions) {
  std::vector<std::string> texts;
  for (const Prediction& prediction : predictions) texts.push_back(prediction.warning);
  std::vector<std::string> lines;
  for (const WarningGroup& group : GroupWarnings(texts)) {
    std::vector<int32_t> counts;
    for (const size_t item : group.items) counts.push_back(predictions[item].scenario.workers);
    const std::string first = absl::StrCat(counts.front());
    // With several numbers of servers a number of workers comes several times.
    std::sort(counts.begin(), counts.end());
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    lines.push_back(
        Line(absl::StrCat(CountsText(counts), counts.back() == 1 ? " worker" : " workers"), group,
             first));
  }
  return lines;
}

std::vector<std::string> WarningsByName(const std::vector<std::string>& names,
                                        const std::vector<std::string>& warnings) {
  std::vector<std::string> lines;
  for (const WarningGroup& group : GroupWarnings(warnings)) {
    std::string about;
    for (const size_t item : group.items)
      absl::StrAppend(&about, about.empty() ? "" : ", ", names[item]);
    lines.push_back(Line(about, group, names[group.items.front()]));
  }
  return lines;
}

}  // namespace stepcast
