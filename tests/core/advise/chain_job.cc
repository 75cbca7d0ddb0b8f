#include "tests/core/advise/chain_job.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace stepcast {

size_t ChainJob::gradients() const {
  size_t sum = 0;
  for (const std::vector<int64_t>& bytes : gradient_bytes) sum += bytes.size();
  return sum;
}

ChainJob RandomChain(std::mt19937_64& random, size_t most) {
  const auto up_to = [&](int64_t last) {
    return std::uniform_int_distribution<int64_t>(1, last)(random);
  };
  ChainJob job;
  const auto size = static_cast<size_t>(up_to(static_cast<int64_t>(most)));
  const int64_t scale = int64_t{100} << up_to(8);
  for (size_t i = 0; i < size; ++i) {
    job.lengths_ns.push_back(up_to(20'000));
    std::vector<int64_t>& bytes = job.gradient_bytes.emplace_back();
    const int64_t kind = up_to(8);
    if (i + 1 == size || kind > 2) bytes.push_back(up_to(scale));
    if (kind == 8 && job.gradients() < most) bytes.push_back(up_to(scale));
  }
  return job;
}

Profile ProfileOf(const ChainJob& job, const std::vector<double>& factors) {
  ProfileDraft draft{.batch_size = 10, .platform = {.bandwidth_bytes_per_second = 1e9}};
  std::vector<int32_t> gradients;
  int32_t before = -1;
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < job.lengths_ns.size(); ++i) {
    draft.operations.push_back(
        {.name = absl::StrCat("compute/", i), .resource = Resource::kWorker});
    if (before >= 0) draft.operations.back().waiting_for = {before};
    before = static_cast<int32_t>(draft.operations.size()) - 1;
    lengths.push_back(job.lengths_ns[i]);
    for (size_t g = 0; g < job.gradient_bytes[i].size(); ++g) {
      gradients.push_back(static_cast<int32_t>(draft.operations.size()));
      draft.operations.push_back({.name = absl::StrCat("gradient/", i, "/", g),
                                  .resource = Resource::kCollective,
                                  .size_bytes = job.gradient_bytes[i][g],
                                  .waiting_for = {before},
                                  .collective = Collective::kAllReduce});
      lengths.push_back(0);
    }
  }
  gradients.push_back(before);
  draft.operations.push_back(
      {.name = "optimizer", .resource = Resource::kWorker, .waiting_for = gradients});
  lengths.push_back(1000);
  for (const double factor : factors) {
    RecordedStep& step = draft.steps.emplace_back();
    int64_t now = 0;
    for (const int64_t length : lengths) {
      step.start_ns.push_back(now);
      now += std::llround(static_cast<double>(length) * factor);
      step.end_ns.push_back(now);
    }
  }
  return Profile::Create(std::move(draft)).value();
}

ChainGroups GroupsOfBits(const ChainJob& job, uint32_t computations, uint32_t gradients) {
  ChainGroups groups{.computations = std::vector<uint8_t>(job.lengths_ns.size(), 1),
                     .gradients = std::vector<uint8_t>(job.gradients(), 1)};
  for (size_t i = 0; i + 1 < groups.computations.size(); ++i)
    groups.computations[i] = (computations >> i) & 1U;
  for (size_t i = 0; i + 1 < groups.gradients.size(); ++i)
    groups.gradients[i] = (gradients >> i) & 1U;
  return groups;
}

double NaiveEnd(const ChainJob& job, const ChainGroups& groups, double share,
                const std::function<double(int64_t)>& sync) {
  double now = 0;
  std::vector<double> ended(job.lengths_ns.size());
  for (size_t first = 0, i = 0; i < job.lengths_ns.size(); ++i) {
    if (groups.computations[i] == 0) continue;
    double before = 0;
    for (size_t j = first; j < i; ++j) before += static_cast<double>(job.lengths_ns[j]);
    now += std::round(share * before) + static_cast<double>(job.lengths_ns[i]);
    for (size_t j = first; j <= i; ++j) ended[j] = now;
    first = i + 1;
  }
  double end = 0;
  double ready = 0;
  int64_t bytes = 0;
  size_t gradient = 0;
  for (size_t i = 0; i < job.lengths_ns.size(); ++i) {
    for (const int64_t size : job.gradient_bytes[i]) {
      ready = std::max(ready, ended[i]);
      bytes += size;
      if (groups.gradients[gradient++] == 0) continue;
      end = std::max(end, ready) + sync(bytes);
      bytes = 0;
      ready = 0;
    }
  }
  return std::max(now, end);
}

ScenarioDraft RingOf(int32_t workers, double latency_seconds) {
  return {.workers = workers, .communication = AllReduceDraft{.latency_seconds = latency_seconds}};
}

}  // namespace stepcast
