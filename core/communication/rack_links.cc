#include <cstddef>
#include <vector>

#include "core/communication/collective_time.h"

namespace stepcast {

namespace {

// The member above another in the in-order binary tree whose root is 0. REQUIRES: member > 0.
int32_t ParentOf(int32_t member, int32_t members) {
  const int32_t bit = member & -member;
  const int64_t parent = (int64_t{member} ^ bit) | (int64_t{bit} << 1);
  return parent < members ? static_cast<int32_t>(parent) : member ^ bit;
}

}  // namespace

double RackLinks::OfPairs(double link, int32_t distance) const {
  if (!are_several()) return link;
  int32_t most = 0;
  int32_t leaving = 0;
  for (int32_t member = 0; member < members_; ++member) {
    if (member % per_rack_ == 0) leaving = 0;
    leaving += RackOf(member) != RackOf(member ^ distance) ? 1 : 0;
    most = std::max(most, leaving);
  }
  return most == 0 ? link : std::min(link, bytes_per_second_ / most);
}

double RackLinks::OfDoubleTree(double link) const {
  if (!are_several()) return link;
  struct Crossing {
    int32_t out = 0;
    int32_t in = 0;
  };
  std::vector<Crossing> racks(static_cast<size_t>(RackOf(members_ - 1)) + 1);
  const bool mirrors = members_ % 2 == 0;
  const auto second = [&](int32_t member) {
    return mirrors ? members_ - 1 - member : (member + 1) % members_;
  };
  int32_t most = 0;
  const auto take = [&](int32_t from, int32_t to) {
    if (RackOf(from) == RackOf(to)) return;
    most = std::max({most, ++racks[static_cast<size_t>(RackOf(from))].out,
                     ++racks[static_cast<size_t>(RackOf(to))].in});
  };
  for (int32_t member = 1; member < members_; ++member) {
    const int32_t parent = ParentOf(member, members_);
    take(member, parent);
    take(second(member), second(parent));
  }
  // Each message has half of the bytes.
  return std::min(link, 2 * bytes_per_second_ / most);
}

}  // namespace stepcast
