// The memory that an import takes: counted by the allocator, so this is a program of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/importing/pytorch/pytorch_trace.h"
#include "core/importing/tensorflow/tensorflow_profile.h"
#include "tests/core/importing/pytorch_writer.h"
#include "tests/core/importing/random_training.h"
#include "tests/core/importing/rank_traces.h"
#include "tests/support/live_bytes.h"
#include "tests/support/recorded_data.h"
#include "tests/support/run_metadata_writer.h"

namespace stepcast::import_memory_test {
namespace {

using testing::live_bytes;
using testing::most_live_bytes;

constexpr int64_t kAllowance = 30'000'000;

// The same bytes again and again, without holding more than one copy of them.
class RepeatedSource final : public ByteSource {
 public:
  RepeatedSource(const std::string& text, int64_t times) : text_(text), left_(times) {}

  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    if (at_ == text_.size()) {
      --left_;
      at_ = 0;
    }
    if (left_ <= 0) return size_t{0};
    const size_t taken = std::min(size, text_.size() - at_);
    std::memcpy(buffer, text_.data() + at_, taken);
    at_ += taken;
    return taken;
  }

 private:
  const std::string& text_;
  int64_t left_;
  size_t at_ = 0;
};

struct Held {
  int64_t most = 0;     // at any time, beyond what there was before
  int64_t profile = 0;  // in the end
};

template <typename Import>
Held MeasureHeld(const Import& import) {
  const int64_t before = live_bytes;
  most_live_bytes = before;
  const absl::StatusOr<ImportedProfile> imported = import();
  EXPECT_TRUE(imported.ok()) << imported.status();
  return {.most = most_live_bytes - before, .profile = live_bytes - before};
}

const RecordingOptions kOptions = {
    .model = "m", .batch_size = 8, .platform = {.bandwidth_bytes_per_second = 1e8}};

TEST(ImportMemoryTest, OfARecordingNoMoreIsHeldThanItsProfileAndAnAllowance) {
  const Profile training = testing::RandomTraining(7, {.servers = 2, .variables = 60, .steps = 1});
  const std::string step = testing::WriteRunMetadata(training).value();
  for (const int64_t steps : {100, 4000}) {
    const Held held = MeasureHeld([&] {
      RepeatedSource source(step, steps);
      return ImportRunMetadata(source, nullptr, kOptions, {}, NeverStop);
    });
    const auto recording = static_cast<int64_t>(step.size()) * steps;
    std::cout << "recording " << recording << " bytes, profile " << held.profile << ", most held "
              << held.most << "\n";
    EXPECT_LE(held.most, held.profile + kAllowance);
    if (steps > 1000) {
      EXPECT_GT(recording, 5 * held.most) << "of a recording this large nothing is shown";
    }
  }
}

TEST(ImportMemoryTest, OfAConstantInTheGraphNothingIsHeld) {
  const Profile training = testing::RandomTraining(7);
  const std::string recording =
      testing::WriteRunMetadata(training, {.partition_graphs = false, .whole_graph = true}).value();
  // A node whose attribute `value` has 64 MiB.
  const std::string value = std::string("\x42\x80\x80\x80\x20", 5) + std::string(64 << 20, 'x');
  const auto nested = [](char tag, const std::string& content) {
    std::string length;
    for (size_t rest = content.size(); rest > 0 || length.empty(); rest >>= 7)
      length.push_back(static_cast<char>((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0)));
    return std::string(1, tag) + length + content;
  };
  const std::string attribute = nested('\x0a', "value") + nested('\x12', value);
  const std::string graph =
      nested('\x0a', nested('\x0a', "big") + nested('\x12', "Const") + nested('\x2a', attribute)) +
      testing::WriteWholeGraph(training).value();
  const Held held = MeasureHeld([&] {
    TextSource source(recording);
    TextSource graph_source(graph);
    return ImportRunMetadata(source, &graph_source, kOptions, {}, NeverStop);
  });
  EXPECT_LE(held.most, held.profile + (4 << 20));
}

TEST(ImportMemoryTest, OfARecordedTimelineNoMoreIsHeldThanItsProfileAndAnAllowance) {
  const std::filesystem::path folder = testing::RecordedDataFolder() / "tf_timeline";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no timelines in " << folder;
  TimelineOptions options{.recording = kOptions};
  for (const char* layer : {"layer_1", "layer_2", "layer_3"}) {
    for (const char* variable : {"weights", "biases"})
      options.variable_bytes[std::string(layer) + "/fully_connected/" + variable] = 4000;
  }
  for (const char* name :
       {"CPU_timeline_01", "CPU_timeline_02_step_0", "GPU_timeline_01", "GPU_timeline_02_step_0"}) {
    std::ifstream file(folder / (std::string(name) + ".json"), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const int64_t before = live_bytes;
    most_live_bytes = before;
    int64_t profile = 0;
    {
      TextSource source(text);
      const absl::StatusOr<ImportedProfile> imported =
          ImportTimeline(source, nullptr, options, {}, NeverStop);
      if (imported.ok()) profile = live_bytes - before;
      // Two of them have no variable.
      EXPECT_EQ(imported.ok(), std::string(name).find("_02_") != std::string::npos)
          << name << " " << imported.status();
    }
    std::cout << name << ": " << text.size() << " bytes, profile " << profile << ", most held "
              << most_live_bytes - before << "\n";
    EXPECT_LE(most_live_bytes - before, profile + kAllowance) << name;
  }
}

// A trace of which most is what nobody needs: Python's functions, and operations inside others.
class PaddedTraceSource final : public ByteSource {
 public:
  // `events` more before the last one of the trace.
  PaddedTraceSource(const std::string& trace, int64_t events)
      : trace_(trace), split_(trace.rfind(",\n")), left_(events) {
    for (int i = 0; i < 100; ++i) {
      absl::StrAppend(
          &block_, R"(, {"ph": "X", "cat": ")", i % 2 == 0 ? "python_function" : "cpu_op",
          R"(", "name": "aten::add_ of module 17", "pid": 1, "tid": 1, "ts": 1712195495648967.125, )",
          R"("dur": 3.5, "args": {"Python id": 7, "Input Dims": [[64, 3, 7, 7], []], "Call stack": )",
          R"("a/long/one.py(17): forward;another.py(18): call", "Input type": ["float", "Scalar"]}})");
    }
  }

  int64_t size() const {
    return static_cast<int64_t>(trace_.size()) + blocks() * static_cast<int64_t>(block_.size());
  }

  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    while (true) {
      const std::string_view part = Part();
      if (at_ < part.size()) {
        const size_t taken = part.copy(buffer, size, at_);
        at_ += taken;
        return taken;
      }
      if (part_ > blocks()) return size_t{0};
      ++part_;
      at_ = 0;
    }
  }

 private:
  int64_t blocks() const { return left_ / 100; }
  std::string_view Part() const {
    const std::string_view trace = trace_;
    if (part_ == 0) return trace.substr(0, split_);
    return part_ <= blocks() ? std::string_view(block_) : trace.substr(split_);
  }

  const std::string& trace_;
  const size_t split_;
  const int64_t left_;
  std::string block_;
  int64_t part_ = 0;  // the beginning, the blocks, the rest
  size_t at_ = 0;
};

TEST(ImportMemoryTest, OfATraceOfPyTorchOnlyTheEventsThatAreNeededAreHeld) {
  const std::string trace =
      testing::WritePyTorchTrace(
          {.gpu = true, .steps = 40, .elements = std::vector<int64_t>(160, 150'000)})
          .text;
  for (const int64_t events : {int64_t{0}, int64_t{1'000'000}}) {
    PaddedTraceSource source(trace, events);
    const Held held = MeasureHeld(
        [&] { return ImportPyTorchTrace(source, {.recording = kOptions}, {}, NeverStop); });
    std::cout << "trace " << source.size() << " bytes, profile " << held.profile << ", most held "
              << held.most << "\n";
    EXPECT_LE(held.most, held.profile + kAllowance);
    if (events > 0) {
      EXPECT_GT(source.size(), 10 * held.most) << "of a trace this large nothing is shown";
    }
  }
}

// A trace among so many bytes of events that an import does not need.
class PaddedSource final : public ByteSource {
 public:
  PaddedSource(const std::string& text, size_t padding)
      : text_(text),
        begin_(text.find("[{") + 1),
        padding_(padding / kEvent.size() * kEvent.size()) {}

  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    size_t taken = 0;
    for (; taken < size && at_ < text_.size() + padding_; ++taken, ++at_) {
      buffer[taken] = at_ < begin_              ? text_[at_]
                      : at_ < begin_ + padding_ ? kEvent[(at_ - begin_) % kEvent.size()]
                                                : text_[at_ - padding_];
    }
    return taken;
  }

 private:
  static constexpr std::string_view kEvent =
      R"({"ph": "X", "cat": "python_function", "name": "nn.Module: Linear_0", "pid": 1, )"
      R"("tid": 2, "ts": 1.250, "dur": 3.500, "args": {"Python id": 4, "Python parent id": 3}},)";

  const std::string& text_;
  const size_t begin_;
  const size_t padding_;
  size_t at_ = 0;
};

TEST(ImportMemoryTest, OfEightRanksNoMoreIsHeldThanTheirStepsHowLongTheirTracesMayBe) {
  const testing::RankTraces made = testing::WriteRankTraces({.ranks = 8, .steps = 12});
  std::map<size_t, int64_t> most;
  for (const size_t padding : {size_t{0}, size_t{20'000'000}}) {
    std::deque<PaddedSource> sources;
    std::vector<RankTrace> traces;
    for (const std::string& text : made.texts)
      traces.push_back({.recording = &sources.emplace_back(text, padding), .name = ""});
    const int64_t before = live_bytes;
    most_live_bytes = before;
    const absl::StatusOr<MultiRankRecording> found =
        ImportPyTorchRanks(traces, {.recording = kOptions}, {}, NeverStop);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->worker_count(), 8);
    most[padding] = most_live_bytes - before;
    std::cout << "8 ranks with " << padding / 1'000'000 << " MB more each: at most "
              << most[padding] / 1000 << " kB\n";
  }
  EXPECT_LT(most[20'000'000], most[0] + 500'000);
}

}  // namespace
}  // namespace stepcast::import_memory_test
