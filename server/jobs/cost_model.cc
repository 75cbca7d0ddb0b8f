#include "server/jobs/cost_model.h"

#include <iterator>

namespace stepcast::server {

double CostModel::ExpectedSeconds(const Work& work) const {
  MutexLock lock(mutex_);
  auto at = by_key_.find(KeyOf(work));
  if (at == by_key_.end()) at = by_key_.find(work.group);
  return at == by_key_.end() ? 0 : at->second->second * work.size;
}

void CostModel::Observe(const Work& work, double seconds) {
  if (work.size <= 0) return;
  MutexLock lock(mutex_);
  Learn(KeyOf(work), seconds / work.size);
  Learn(work.group, seconds / work.size);
}

void CostModel::Learn(const std::string& key, double unit_seconds) {
  if (const auto at = by_key_.find(key); at != by_key_.end()) {
    at->second->second += kWeight * (unit_seconds - at->second->second);
    units_.splice(units_.begin(), units_, at->second);
    return;
  }
  units_.emplace_front(key, unit_seconds);
  by_key_[key] = units_.begin();
  if (units_.size() <= kMaxKinds) return;
  by_key_.erase(units_.back().first);
  units_.pop_back();
}

}  // namespace stepcast::server
