// Closed until it is opened; jobs wait at it.
#pragma once

#include <future>
#include <utility>

namespace stepcast::server {

class Gate {
 public:
  void Open() {
    if (!std::exchange(is_open_, true)) opened_.set_value();
  }
  void Wait() const { open_.wait(); }

 private:
  bool is_open_ = false;
  std::promise<void> opened_;
  std::shared_future<void> open_{opened_.get_future()};
};

// Opens a gate before the pool that is declared above it drains, so that a failed assertion ends
// the test and does not hang it.
class OpenAtEnd {
 public:
  explicit OpenAtEnd(Gate& gate) : gate_(gate) {}
  ~OpenAtEnd() { gate_.Open(); }
  OpenAtEnd(const OpenAtEnd&) = delete;
  OpenAtEnd& operator=(const OpenAtEnd&) = delete;

 private:
  Gate& gate_;
};

}  // namespace stepcast::server
