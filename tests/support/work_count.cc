#include "tests/support/work_count.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

int64_t work = 0;

}  // namespace

// Called by the compiler at the beginning of every block.
extern "C" void __sanitizer_cov_trace_pc() { ++work; }

void* operator new(size_t size) {
  work += static_cast<int64_t>(size / sizeof(int64_t));
  if (void* const block = std::malloc(size)) return block;
  throw std::bad_alloc();
}
// The library's temporary buffers come from here.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  work += static_cast<int64_t>(size / sizeof(int64_t));
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace stepcast {

int64_t WorkSoFar() { return work; }

}  // namespace stepcast
