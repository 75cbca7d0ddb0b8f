// An LRU cache bounded by bytes.
//
// Values are immutable and shared: one that goes while it is in use lives on with its users.
// An entry counts as its value's bytes, its key's and kEntryBytes for what holds it.
// Cost: a hash of the key and a lock, O(1) but for what goes.
// Threads: safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "server/base/mutex.h"

namespace stepcast::server {

// An observer of a cache, told outside its lock. For metrics.
// Threads: called by any.
class CacheObserver {
 public:
  virtual ~CacheObserver() = default;
  virtual void OnAsked(bool found) = 0;
  // The changes of its content, and the number of entries that went to make room.
  virtual void OnChanged(int64_t entries, int64_t bytes, int64_t dropped) = 0;
};

template <typename Value>
class BoundedCache {
 public:
  static constexpr size_t kEntryBytes = 128;

  // `observer` is borrowed; may be null.
  explicit BoundedCache(size_t max_bytes, CacheObserver* observer = nullptr)
      : max_bytes_(max_bytes), observer_(observer) {}
  BoundedCache(const BoundedCache&) = delete;
  BoundedCache& operator=(const BoundedCache&) = delete;

  // Null where there is none.
  std::shared_ptr<const Value> Find(const std::string& key) {
    std::shared_ptr<const Value> found;
    {
      MutexLock lock(mutex_);
      if (const auto at = by_key_.find(key); at != by_key_.end()) {
        entries_.splice(entries_.begin(), entries_, at->second);
        found = at->second->value;
      }
    }
    if (observer_ != nullptr) observer_->OnAsked(found != nullptr);
    return found;
  }

  // In place of what the key had. What does not fit even alone is not kept.
  void Keep(const std::string& key, std::shared_ptr<const Value> value, size_t value_bytes) {
    const size_t bytes = value_bytes + key.size() + kEntryBytes;
    if (bytes > max_bytes_) return;
    std::list<Entry> gone;  // destroyed outside the lock
    size_t replaced = 0;
    int64_t change = static_cast<int64_t>(bytes);
    {
      MutexLock lock(mutex_);
      if (const auto at = by_key_.find(key); at != by_key_.end()) MoveOut(at->second, gone);
      replaced = gone.size();
      while (bytes_ + bytes > max_bytes_) MoveOut(std::prev(entries_.end()), gone);
      entries_.push_front({.key = key, .value = std::move(value), .bytes = bytes});
      by_key_[key] = entries_.begin();
      bytes_ += bytes;
    }
    if (observer_ == nullptr) return;
    for (const Entry& entry : gone) change -= static_cast<int64_t>(entry.bytes);
    observer_->OnChanged(1 - static_cast<int64_t>(gone.size()), change,
                         static_cast<int64_t>(gone.size() - replaced));
  }

  size_t bytes() const {
    MutexLock lock(mutex_);
    return bytes_;
  }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Value> value;
    size_t bytes = 0;
  };
  using Place = typename std::list<Entry>::iterator;

  void MoveOut(Place entry, std::list<Entry>& gone) STEPCAST_REQUIRES(mutex_) {
    bytes_ -= entry->bytes;
    by_key_.erase(entry->key);
    gone.splice(gone.end(), entries_, entry);
  }

  const size_t max_bytes_;
  CacheObserver* const observer_;
  mutable Mutex mutex_;
  std::list<Entry> entries_ STEPCAST_GUARDED_BY(mutex_);  // the last asked for first
  std::unordered_map<std::string, Place> by_key_ STEPCAST_GUARDED_BY(mutex_);
  size_t bytes_ STEPCAST_GUARDED_BY(mutex_) = 0;
};

}  // namespace stepcast::server
