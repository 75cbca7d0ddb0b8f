#include "tests/support/work_count.h"

#include <cstddef>

namespace {

int64_t work = 0;

void CountWords(size_t bytes) { work += static_cast<int64_t>(bytes / sizeof(int64_t)); }

}  // namespace

// The linker's --wrap gives every call here, and the function itself the other name.
extern "C" {

void* __real_memcpy(void* to, const void* from, size_t bytes);
void* __real_memmove(void* to, const void* from, size_t bytes);
void* __real_memset(void* to, int value, size_t bytes);

void* __wrap_memcpy(void* to, const void* from, size_t bytes) {
  CountWords(bytes);
  return __real_memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, size_t bytes) {
  CountWords(bytes);
  return __real_memmove(to, from, bytes);
}
void* __wrap_memset(void* to, int value, size_t bytes) {
  CountWords(bytes);
  return __real_memset(to, value, bytes);
}

// Called at the beginning of every block that the compiler counts.
void __sanitizer_cov_trace_pc() { ++work; }
}

namespace stepcast {

int64_t WorkSoFar() { return work; }

}  // namespace stepcast
