#include "tests/support/live_bytes.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace stepcast::testing {

std::atomic<int64_t> live_bytes{0};
std::atomic<int64_t> most_live_bytes{0};

}  // namespace stepcast::testing

namespace {

constexpr size_t kHeaderBytes = alignof(std::max_align_t);

}  // namespace

// Each block begins with its size.
void* operator new(size_t size) {
  auto* const block = static_cast<char*>(std::malloc(size + kHeaderBytes));
  if (block == nullptr) throw std::bad_alloc();
  std::memcpy(block, &size, sizeof(size));
  const int64_t live = stepcast::testing::live_bytes += static_cast<int64_t>(size);
  if (live > stepcast::testing::most_live_bytes) stepcast::testing::most_live_bytes = live;
  return block + kHeaderBytes;
}
// The library's temporary buffers come from here; a sanitizer has one of its own, whose blocks the
// delete below would not know.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  char* const block = static_cast<char*>(memory) - kHeaderBytes;
  size_t size = 0;
  std::memcpy(&size, block, sizeof(size));
  stepcast::testing::live_bytes -= static_cast<int64_t>(size);
  std::free(block);
}
void operator delete(void* memory, size_t) noexcept { operator delete(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { operator delete(memory); }
