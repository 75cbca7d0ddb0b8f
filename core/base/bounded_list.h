// A list whose greatest length is known beforehand, so that adding to it is a store and nothing
// else.
//
// For the scratch lists of inner loops, where a vector's check for room is felt: they made the
// plain engine a sixth slower. Threads: none.
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>

namespace stepcast {

template <typename T>
class BoundedList {
 public:
  explicit BoundedList(size_t most)
      : items_(std::make_unique<T[]>(most)), end_(items_.get()), most_(most) {}

  // REQUIRES: size() is less than the greatest length.
  void Add(T item) {
    assert(size() < most_);
    *end_++ = item;
  }
  // Without a branch. REQUIRES, even where it is not added: as Add.
  void AddIf(bool wanted, T item) {
    assert(size() < most_);
    *end_ = item;
    end_ += static_cast<std::ptrdiff_t>(wanted);
  }
  void Clear() { end_ = items_.get(); }

  bool empty() const { return end_ == items_.get(); }
  size_t size() const { return static_cast<size_t>(end_ - items_.get()); }
  const T& operator[](size_t i) const { return items_[i]; }
  T* begin() { return items_.get(); }
  T* end() { return end_; }
  const T* begin() const { return items_.get(); }
  const T* end() const { return end_; }

 private:
  std::unique_ptr<T[]> items_;
  T* end_;
  size_t most_;
};

}  // namespace stepcast
