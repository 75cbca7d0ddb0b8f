#include "tests/core/importing/rank_traces.h"

#include <algorithm>
#include <deque>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/random.h"
#include "core/importing/pytorch/pytorch_trace.h"

namespace stepcast::testing {

namespace {

class RankTracesWriter {
 public:
  explicit RankTracesWriter(const RankTracesForm& form)
      : form_(form),
        random_({form.seed, 92}),
        events_(static_cast<size_t>(form.ranks)),
        free_(form.at_once) {}

  RankTraces Write() {
    const auto ranks = static_cast<size_t>(form_.ranks);
    now_.assign(ranks, 5'000'000);
    for (int64_t& now : now_) now += Pick(200'000);
    traces_.step_begins_ns.resize(ranks);
    traces_.step_ends_ns.resize(ranks);
    for (int step = 0; step < form_.steps; ++step) WriteStep(step);
    for (size_t rank = 0; rank < ranks; ++rank) {
      std::string text = R"({"schemaVersion": 1, "deviceProperties": [], )";
      if (form_.names_rank) {
        absl::StrAppend(&text, R"("distributedInfo": {"backend": "gloo", "rank": )", rank,
                        R"(, "world_size": )", form_.ranks, "}, ");
      }
      absl::StrAppend(&text, R"("baseTimeNanoseconds": 1767189312000000000, "traceEvents": [)",
                      R"({"name": "process_name", "ph": "M", "ts": 0, "pid": 1, "args": {}})",
                      events_[rank], R"(], "traceName": "t.json"})");
      traces_.texts.push_back(std::move(text));
    }
    return std::move(traces_);
  }

 private:
  int64_t Pick(int64_t below) {
    return static_cast<int64_t>(random_.Below(static_cast<uint64_t>(below)));
  }
  int64_t Computed(size_t rank, int64_t ns) {
    const double factor = rank + 1 == now_.size() ? form_.straggler : 1;
    return static_cast<int64_t>(static_cast<double>(ns + Pick(ns / 4)) * factor);
  }

  void Event(size_t rank, const char* category, const std::string& name, int64_t start_ns,
             int64_t end_ns, const std::string& arguments = "") {
    const int64_t offset = form_.clock_offsets_ns.empty() ? 0 : form_.clock_offsets_ns[rank];
    const int64_t ns = start_ns - offset;
    const char* const sign = ns < 0 ? "-" : "";
    const int64_t size = std::abs(ns);
    absl::StrAppendFormat(
        &events_[rank],
        ",\n{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": 1, \"tid\": 2, \"ts\": "
        "%s%d.%03d, \"dur\": %d.%03d, \"args\": {%s}}",
        category, name, sign, size / 1000, size % 1000, (end_ns - start_ns) / 1000,
        (end_ns - start_ns) % 1000, arguments);
  }
  static std::string Shape(int64_t elements) {
    return absl::StrCat(R"("Input Dims": [[)", elements,
                        R"(], []], "Input type": ["float", "Scalar"])");
  }

  // All ranks launch at `launches`; returns the end.
  int64_t Meet(const char* kind, const std::vector<int64_t>& launches, int64_t length_ns,
               int64_t elements) {
    const auto first_free = std::min_element(free_.begin(), free_.end());
    const int64_t free = *first_free;
    begun_ = std::max({begun_, free, *std::max_element(launches.begin(), launches.end())});
    const int64_t end = begun_ + length_ns;
    for (size_t rank = 0; rank < launches.size(); ++rank) {
      Event(rank, "cpu_op", absl::StrCat("c10d::", kind, "_"), launches[rank],
            launches[rank] + 100);
      Event(rank, "user_annotation",
            absl::StrCat("gloo:", kind[0] == 'a' ? "all_reduce" : "broadcast"),
            std::max(free, launches[rank]), end, Shape(elements));
    }
    *first_free = end;
    return end;
  }

  void WriteStep(int step) {
    const size_t ranks = now_.size();
    const std::vector<int64_t> begins = now_;
    if (form_.broadcasts) {
      for (size_t rank = 0; rank < ranks; ++rank) now_[rank] += Computed(rank, 20'000);
      const int64_t end = Meet("broadcast", now_, 50'000, 64);
      for (int64_t& now : now_) now = end;
    }
    for (size_t rank = 0; rank < ranks; ++rank) now_[rank] += Computed(rank, 800'000);
    size_t gradient = 0;
    for (size_t bucket = 0; bucket < form_.buckets.size(); ++bucket) {
      int64_t elements = 0;
      std::vector<int64_t> launches(ranks, 0);
      for (size_t i = 0; i < form_.buckets[bucket]; ++i, ++gradient) {
        elements += form_.elements[gradient];
        for (size_t rank = 0; rank < ranks; ++rank) {
          launches[rank] =
              WriteGradient(rank, form_.elements[gradient], i + 1 == form_.buckets[bucket]);
        }
      }
      Meet("allreduce", launches, form_.collective_ns * (static_cast<int64_t>(bucket) + 2) / 2,
           elements);
    }
    for (size_t rank = 0; rank < ranks; ++rank) {
      now_[rank] = std::max(now_[rank], *std::max_element(free_.begin(), free_.end()));
      const int64_t begin = now_[rank];
      now_[rank] += Computed(rank, 100'000);
      Event(rank, "user_annotation", "Optimizer.step#SGD.step", begin, now_[rank]);
      now_[rank] += Computed(rank, 10'000);
      Event(rank, "user_annotation", absl::StrCat("ProfilerStep#", step + 5), begins[rank],
            now_[rank]);
      traces_.step_begins_ns[rank].push_back(begins[rank]);
      traces_.step_ends_ns[rank].push_back(now_[rank]);
    }
  }

  // Returns when its bucket is launched, if it is the last one of it.
  int64_t WriteGradient(size_t rank, int64_t elements, bool is_last) {
    int64_t& now = now_[rank];
    const int64_t begin = now;
    now += Computed(rank, 200'000);
    Event(rank, "cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", begin, now);
    const int64_t scope = now;
    now += 1'000;
    Event(rank, "cpu_op", "torch::autograd::AccumulateGrad", now, now + 3'000, Shape(elements));
    now += 5'000;
    const int64_t launch = now;
    if (is_last) now += 4'000;
    Event(rank, "cpu_op", "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
          scope, now);
    return launch;
  }

  const RankTracesForm& form_;
  Random random_;
  std::vector<std::string> events_;  // by rank
  RankTraces traces_;
  std::vector<int64_t> now_;   // by rank
  int64_t begun_ = 0;          // the last collective, on all ranks
  std::vector<int64_t> free_;  // when each of those that go on at once has ended
};

}  // namespace

RankTraces WriteRankTraces(const RankTracesForm& form) { return RankTracesWriter(form).Write(); }

void MutateOneOf(std::vector<std::string>& texts, Random& random) {
  for (uint64_t i = 1 + random.Below(3); i > 0; --i) {
    std::string& text = texts[random.Below(texts.size())];
    if (text.empty()) continue;
    const size_t at = random.Below(text.size());
    const size_t length = 1 + random.Below(40);
    switch (random.Below(5)) {
      case 0:
        text[at] = static_cast<char>(random.Below(256));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(random.Below(text.size()), length));
        break;
      case 3:
        text.resize(at);
        break;
      default:
        for (size_t k = at; k < text.size(); ++k) {
          if (text[k] < '0' || text[k] > '9') continue;
          text[k] = static_cast<char>('0' + random.Below(10));
          break;
        }
    }
  }
}

MultiRankRecording ImportRankTraces(const RankTraces& traces) {
  std::deque<TextSource> sources;
  std::vector<RankTrace> ranks;
  for (const std::string& text : traces.texts)
    ranks.push_back({.recording = &sources.emplace_back(text), .name = ""});
  return ImportPyTorchRanks(ranks,
                            {.recording = {.model = "toy",
                                           .batch_size = 8,
                                           .platform = {.bandwidth_bytes_per_second = 1e9}}},
                            {}, NeverStop)
      .value();
}

}  // namespace stepcast::testing
