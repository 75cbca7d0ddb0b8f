// A fair queue: work that waits for threads, in turns of its clients.
//
// Each client gets the same share of the work, as long as it has something waiting, however much
// the others ask for: start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996), of which a
// client's entries are first come, first served.
// A new entry's start tag is the greater of its client's last finish tag and of the start tag of
// what was popped last; its finish tag is its cost later.
// The least start tag leaves first, of equals the oldest.
// Cost: Push O(log clients), Pop O(clients), CostBefore and ExtractIf O(entries).
// Threads: none; the owner locks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepcast::server {

template <typename Value>
class FairQueue {
 public:
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Sum over all entries.
  double cost() const { return size_ == 0 ? 0 : cost_; }
  // Entries of the client.
  size_t SizeOf(const std::string& client) const {
    const auto at = lanes_.find(client);
    return at == lanes_.end() ? 0 : at->second.entries.size();
  }

  // REQUIRES: cost > 0.
  void Push(const std::string& client, double cost, Value value) {
    Lane& lane = lanes_[client];
    const double start = StartTag(lane);
    lane.finish = start + cost;
    lane.entries.push_back(
        {.start = start, .number = next_number_++, .cost = cost, .value = std::move(value)});
    cost_ += cost;
    ++size_;
  }

  // REQUIRES: not empty.
  Value Pop() {
    auto first = lanes_.end();
    for (auto at = lanes_.begin(); at != lanes_.end(); ++at) {
      if (!at->second.entries.empty() &&
          (first == lanes_.end() ||
           IsBefore(at->second.entries.front(), first->second.entries.front())))
        first = at;
    }
    Entry entry = std::move(first->second.entries.front());
    first->second.entries.pop_front();
    now_ = entry.start;
    Forget(entry.cost);
    // A client's past counts only while it puts its next start off.
    std::erase_if(lanes_, [this](const auto& lane) {
      return lane.second.entries.empty() && lane.second.finish <= now_;
    });
    return std::move(entry.value);
  }

  // The cost of all that would leave before an entry that the client pushed now.
  double CostBefore(const std::string& client) const {
    const auto own = lanes_.find(client);
    const double start = own == lanes_.end() ? now_ : StartTag(own->second);
    double before = 0;
    for (const auto& [name, lane] : lanes_) {
      for (const Entry& entry : lane.entries) {
        if (entry.start <= start) before += entry.cost;
      }
    }
    return before;
  }

  // True if some client has more entries than `count`.
  bool HasLongerThan(size_t count) const {
    const auto longest = std::max_element(lanes_.begin(), lanes_.end(), HasFewer);
    return longest != lanes_.end() && longest->second.entries.size() > count;
  }
  // Takes out the newest entry of the client that has the most (the first by name), if they are
  // more than `count`.
  std::optional<Value> TakeFromLongest(size_t count) {
    const auto longest = std::max_element(lanes_.begin(), lanes_.end(), HasFewer);
    if (!HasLongerThan(count)) return std::nullopt;
    Lane& lane = longest->second;
    Entry entry = std::move(lane.entries.back());
    lane.entries.pop_back();
    lane.finish = entry.start;
    Forget(entry.cost);
    return std::move(entry.value);
  }

  // Takes out what `is_taken(value)`, in no particular order.
  template <typename Predicate>
  std::vector<Value> ExtractIf(Predicate is_taken) {
    std::vector<Value> taken;
    for (auto& [name, lane] : lanes_) {
      std::erase_if(lane.entries, [&](Entry& entry) {
        if (!is_taken(std::as_const(entry.value))) return false;
        Forget(entry.cost);
        taken.push_back(std::move(entry.value));
        return true;
      });
      // Work that was never served is not held against its client.
      lane.finish =
          lane.entries.empty() ? now_ : lane.entries.back().start + lane.entries.back().cost;
    }
    return taken;
  }

  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const auto& [name, lane] : lanes_) {
      for (const Entry& entry : lane.entries) visit(entry.value);
    }
  }

 private:
  struct Entry {
    double start = 0;
    uint64_t number = 0;
    double cost = 0;
    Value value;
  };
  struct Lane {
    std::deque<Entry> entries;
    double finish = 0;  // tag of the last one
  };

  static bool HasFewer(const std::pair<const std::string, Lane>& a,
                       const std::pair<const std::string, Lane>& b) {
    return a.second.entries.size() < b.second.entries.size();
  }
  static bool IsBefore(const Entry& a, const Entry& b) {
    return a.start != b.start ? a.start < b.start : a.number < b.number;
  }
  double StartTag(const Lane& lane) const { return std::max(now_, lane.finish); }
  void Forget(double cost) {
    --size_;
    cost_ = size_ == 0 ? 0 : cost_ - cost;  // so that rounding does not add up
  }

  std::map<std::string, Lane> lanes_;
  size_t size_ = 0;
  double cost_ = 0;
  double now_ = 0;
  uint64_t next_number_ = 0;
};

}  // namespace stepcast::server
