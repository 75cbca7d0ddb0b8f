#include "tests/core/engine/run_digest.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

namespace stepcast::testing {

namespace {

constexpr uint64_t kPrime = 0x100000001b3;

int64_t Count(size_t size) { return static_cast<int64_t>(size); }

bool ComesFirst(const ChunkRecord& a, const ChunkRecord& b) {
  if (a.worker != b.worker) return a.worker < b.worker;
  if (a.step != b.step) return a.step < b.step;
  if (a.op != b.op) return a.op < b.op;
  return a.service < b.service;
}

void AddTrace(std::vector<ChunkRecord> trace, Digest& digest) {
  std::sort(trace.begin(), trace.end(), ComesFirst);
  digest.Add(Count(trace.size()));
  for (const ChunkRecord& record : trace) {
    for (const int32_t key : {record.worker, record.step, record.op, record.service})
      digest.Add(int64_t{key});
    digest.Add(record.start.ticks);
    digest.Add(record.end.ticks);
  }
}

}  // namespace

void Digest::Add(uint64_t value) {
  value_ = (value_ ^ value) * kPrime;
  value_ ^= value_ >> 32;  // a product moves nothing down
}

void Digest::Add(double value) { Add(std::bit_cast<uint64_t>(value)); }

uint64_t DigestOf(const RunResult& result, std::vector<ChunkRecord> trace) {
  Digest digest;
  for (const std::vector<Instant>& own : result.step_ends) {
    digest.Add(Count(own.size()));
    for (const Instant end : own) digest.Add(end.ticks);
  }
  AddTrace(std::move(trace), digest);
  for (const double rate :
       {result.steps_per_second, result.first_half_steps_per_second,
        result.second_half_steps_per_second, result.exposed_communication_fraction,
        result.straggler_fraction, result.step_times.MeanSeconds()}) {
    digest.Add(rate);
  }
  for (const double fraction : result.utilization) digest.Add(fraction);
  for (const int64_t number :
       {int64_t{result.measured}, result.counted_from.ticks, result.counted.ticks,
        result.step_times.count(), result.completions.stride(), result.simulated_operations}) {
    digest.Add(number);
  }
  for (const Instant mark : result.completions.marks()) digest.Add(mark.ticks);
  return digest.value();
}

}  // namespace stepcast::testing
