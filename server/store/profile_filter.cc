#include "server/store/profile_filter.h"

#include <algorithm>

namespace stepcast::server {

bool Matches(const ProfileFilter& filter, const ProfileSummary& summary) {
  if (filter.model.has_value() && *filter.model != summary.model) return false;
  const auto has_value = [&](const auto& term) {
    const auto label = summary.labels.find(term.first);
    return label != summary.labels.end() && label->second == term.second;
  };
  const auto is_present = [&](const std::string& key) { return summary.labels.contains(key); };
  return std::all_of(filter.labels.begin(), filter.labels.end(), has_value) &&
         std::all_of(filter.present_labels.begin(), filter.present_labels.end(), is_present);
}

}  // namespace stepcast::server
