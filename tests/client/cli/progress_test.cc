#include "client/cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <sstream>
#include <streambuf>

namespace stepcast::client::progress_test {
namespace {

// Collects what is written, and tells when something is.
class WatchedBuffer : public std::stringbuf {
 public:
  std::future<void> first_flush() { return flushed_.get_future(); }

 protected:
  int sync() override {
    if (!done_) flushed_.set_value();
    done_ = true;
    return 0;
  }

 private:
  std::promise<void> flushed_;
  bool done_ = false;
};

constexpr Progress::Pace kAtOnce{.delay = std::chrono::milliseconds(0),
                                 .interval = std::chrono::milliseconds(1)};

TEST(ProgressTest, AtATerminalTheLineComesAndGoes) {
  WatchedBuffer buffer;
  std::ostream err(&buffer);
  std::future<void> shown = buffer.first_flush();
  {
    const Console console{.out = err, .err = err, .err_is_terminal = true};
    const Progress progress(console, "predicting", kAtOnce);
    shown.wait();
  }
  const std::string text = buffer.str();
  EXPECT_THAT(text, testing::StartsWith("\r\x1b[K| predicting 0.0 s"));
  EXPECT_THAT(text, testing::EndsWith("\r\x1b[K")) << "nothing is left of it";
}

TEST(ProgressTest, SaysHowMuchOfAFileWasRead) {
  WatchedBuffer buffer;
  std::ostream err(&buffer);
  std::future<void> shown = buffer.first_flush();
  {
    const Console console{.out = err, .err = err, .err_is_terminal = true};
    Progress progress(console, "importing",
                      {.delay = std::chrono::milliseconds(50), .interval = std::chrono::hours(1)});
    progress.ExpectBytes(3 << 20);
    progress.ReachBytes(1 << 20);
    shown.wait();
  }
  EXPECT_THAT(buffer.str(), testing::HasSubstr(" s, 1.000 MiB of 3.000 MiB read"));
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
