#include "client/cli/texts/progress.h"

#include <array>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/texts/table.h"

namespace stepcast::client {

Progress::Progress(const Console& console, std::string what, Pace pace)
    : console_(console), what_(std::move(what)) {
  if (console.err_is_terminal) thread_ = std::thread([this, pace] { Show(pace); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

// ", 512 MiB of 1.97 GiB read"; empty: not known.
std::string Progress::ReadText() const {
  const int64_t expected = expected_;
  if (expected < 1) return "";
  return absl::StrCat(", ", BytesText(reached_), " of ", BytesText(expected), " read");
}

void Progress::Show(Pace pace) {
  constexpr std::array kFrames{'|', '/', '-', '\\'};
  constexpr char kStartOfLine[] = "\r\x1b[K";  // back to its start, and clear it
  const auto start = std::chrono::steady_clock::now();
  std::ostream& err = console_.controls == nullptr ? console_.err : *console_.controls;
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, pace.delay, [this] { return done_; })) return;
  for (size_t frame = 0; !done_; ++frame) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    std::array<char, 32> seconds{};
    std::snprintf(seconds.data(), seconds.size(), "%.1f", elapsed.count());
    err << kStartOfLine << kFrames[frame % kFrames.size()] << ' ' << what_ << ' ' << seconds.data()
        << " s" << ReadText() << std::flush;
    changed_.wait_for(lock, pace.interval, [this] { return done_; });
  }
  err << kStartOfLine << std::flush;
}

}  // namespace stepcast::client
