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

Warning Line(const std::string& about, const WarningGroup& group, const std::string& first) {
  const std::string numbers =
      group.alike ? "" : absl::StrCat(", the numbers are those for ", first);
  return {.reason = group.warning.reason,
          .message = absl::StrCat(about, numbers, ": ", group.warning.message)};
}

}  // namespace

std::vector<WarningGroup> GroupWarnings(const std::vector<std::vector<Warning>>& by_item) {
  std::vector<WarningGroup> groups;
  std::vector<std::string> shapes;  // parallel to groups
  for (size_t i = 0; i < by_item.size(); ++i) {
    for (const Warning& warning : by_item[i]) {
      const std::string shape = Shape(warning.message);
      size_t at = 0;
      while (at < groups.size() &&
             (groups[at].warning.reason != warning.reason || shapes[at] != shape))
        ++at;
      if (at == groups.size()) {
        groups.push_back({.warning = warning, .items = {}});
        shapes.push_back(shape);
      }
      groups[at].alike = groups[at].alike && groups[at].warning == warning;
      groups[at].items.push_back(i);
    }
  }
  return groups;
}

std::vector<Warning> WarningsByWorkers(const std::vector<Prediction>& predictions) {
  std::vector<std::vector<Warning>> by_item;
  by_item.reserve(predictions.size());
  for (const Prediction& prediction : predictions) by_item.push_back(prediction.warnings);
  std::vector<Warning> lines;
  for (const WarningGroup& group : GroupWarnings(by_item)) {
    std::vector<int32_t> counts;
    counts.reserve(group.items.size());
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

std::vector<Warning> WarningsByName(const std::vector<std::string>& names,
                                    const std::vector<std::vector<Warning>>& by_item) {
  std::vector<Warning> lines;
  for (const WarningGroup& group : GroupWarnings(by_item)) {
    std::string about;
    for (const size_t item : group.items)
      absl::StrAppend(&about, about.empty() ? "" : ", ", names[item]);
    lines.push_back(Line(about, group, names[group.items.front()]));
  }
  return lines;
}

}  // namespace stepcast
