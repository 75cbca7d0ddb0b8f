#include "core/pipeline/fair_links.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/index.h"

namespace stepcast {

void FairLinks::Add(Name name, double bytes, std::vector<int32_t> links, int64_t now) {
  flows_.push_back({.name = name,
                    .left = bytes,
                    .since = now,
                    .ends = std::numeric_limits<int64_t>::max(),
                    .links = std::move(links)});
  changed_ = true;
}

std::vector<FairLinks::Name> FairLinks::TakeEnded(int64_t now) {
  std::vector<Name> ended;
  std::erase_if(flows_, [&](const Flow& flow) {
    if (flow.ends > now) return false;
    ended.push_back(flow.name);
    return true;
  });
  changed_ = true;
  return ended;
}

std::optional<int64_t> FairLinks::Share(int64_t now) {
  changed_ = false;
  std::vector<double> left(links_, bytes_per_tick_);
  std::vector<int32_t> users(links_);
  for (Flow& flow : flows_) {
    flow.settled = false;
    for (const int32_t link : flow.links) ++users[Index(link)];
  }
  std::optional<int64_t> next;
  for (size_t settled = 0; settled < flows_.size();) {
    double least = std::numeric_limits<double>::infinity();
    for (size_t link = 0; link < left.size(); ++link)
      if (users[link] > 0) least = std::min(least, left[link] / users[link]);
    std::vector<Flow*> now_settled;
    for (Flow& flow : flows_)
      if (!flow.settled && std::any_of(flow.links.begin(), flow.links.end(), [&](int32_t link) {
            return left[Index(link)] / users[Index(link)] <= least * (1 + 1e-12);
          }))
        now_settled.push_back(&flow);
    for (Flow* flow : now_settled) {
      flow->settled = true;
      ++settled;
      for (const int32_t link : flow->links) {
        left[Index(link)] = std::max(0.0, left[Index(link)] - least);
        --users[Index(link)];
      }
      if (flow->rate != least) {
        flow->left -= flow->rate * static_cast<double>(now - flow->since);
        flow->since = now;
        flow->rate = least;
        flow->ends = now + std::max<int64_t>(0, std::llround(std::ceil(flow->left / least)));
      }
      next = std::min(next.value_or(flow->ends), flow->ends);
    }
  }
  return next;
}

double FairLinks::LeftOn(int32_t link, int64_t now) const {
  double left = 0;
  for (const Flow& flow : flows_)
    if (std::find(flow.links.begin(), flow.links.end(), link) != flow.links.end())
      left += std::max(0.0, flow.left - flow.rate * static_cast<double>(now - flow.since));
  return left;
}

}  // namespace stepcast
