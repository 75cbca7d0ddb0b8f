#include "client/cli/texts/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <sstream>
#include <streambuf>
#include <string>
#include <utility>

namespace stepcast::client::progress_test {
namespace {

// Collects what is written, and tells when a text is part of it.
class WatchedBuffer : public std::stringbuf {
 public:
  explicit WatchedBuffer(std::string awaited) : awaited_(std::move(awaited)) {}
  void Wait() { flushed_.get_future().wait(); }

 protected:
  int sync() override {
    if (!done_ && str().find(awaited_) != std::string::npos) {
      done_ = true;
      flushed_.set_value();
    }
    return 0;
  }

 private:
  const std::string awaited_;
  std::promise<void> flushed_;
  bool done_ = false;
};

constexpr Progress::Pace kAtOnce{.delay = std::chrono::milliseconds(0),
                                 .interval = std::chrono::milliseconds(1)};

TEST(ProgressTest, AtATerminalTheLineComesAndGoes) {
  WatchedBuffer buffer(" s");
  std::ostream err(&buffer);
  {
    const Console console{.out = err, .err = err, .err_is_terminal = true};
    const Progress progress(console, "predicting", kAtOnce);
    buffer.Wait();
  }
  const std::string text = buffer.str();
  EXPECT_THAT(text, testing::ContainsRegex("^\r\x1b\\[K[|] predicting [0-9.]+ s"));
  EXPECT_THAT(text, testing::EndsWith("\r\x1b[K")) << "nothing is left of it";
}

TEST(ProgressTest, SaysHowMuchOfAFileWasRead) {
  // What would never come would hang.
  WatchedBuffer buffer(" s, 1.000 MiB of 3.000 MiB read");
  std::ostream err(&buffer);
  const Console console{.out = err, .err = err, .err_is_terminal = true};
  Progress progress(console, "importing", kAtOnce);
  progress.ExpectBytes(3 << 20);
  progress.ReachBytes(1 << 20);
  buffer.Wait();
}

TEST(ProgressTest, ElsewhereNothingIsWritten) {
  std::ostringstream err;
  {
    const Console console{.out = err, .err = err, .err_is_terminal = false};
    const Progress progress(console, "predicting", kAtOnce);
  }
  EXPECT_EQ(err.str(), "");
}

TEST(ProgressTest, WhatIsQuickShowsNothing) {
  std::ostringstream err;
  {
    const Console console{.out = err, .err = err, .err_is_terminal = true};
    const Progress progress(console, "predicting", {.delay = std::chrono::hours(1)});
  }
  EXPECT_EQ(err.str(), "");
}

}  // namespace
}  // namespace stepcast::client::progress_test
