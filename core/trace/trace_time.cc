#include "core/trace/trace_time.h"

#include <array>
#include <charconv>

namespace stepcast {

namespace {

constexpr int64_t kPicosecondsPerMicrosecond = 1'000'000;
constexpr int kFractionDigits = 6;
// 25 picoseconds are 63 ticks.
constexpr int64_t kTicks = 63;
constexpr int64_t kPicoseconds = 25;
static_assert(kTicks * 1000 == kPicoseconds * kTicksPerNanosecond);

}  // namespace

// In two parts, because all of it times 25 does not fit.
int64_t ToPicoseconds(Instant at) {
  return at.ticks / kTicks * kPicoseconds +
         (at.ticks % kTicks * kPicoseconds + kTicks / 2) / kTicks;
}

void AppendMicroseconds(int64_t picoseconds, std::string& json) {
  std::array<char, 20> whole{};
  const auto [end, error] = std::to_chars(whole.data(), whole.data() + whole.size(),
                                          picoseconds / kPicosecondsPerMicrosecond);
  json.append(whole.data(), end);
  int64_t fraction = picoseconds % kPicosecondsPerMicrosecond;
  if (fraction == 0) return;
  std::array<char, kFractionDigits> digits{};
  for (int i = kFractionDigits - 1; i >= 0; --i, fraction /= 10)
    digits[static_cast<size_t>(i)] = static_cast<char>('0' + fraction % 10);
  size_t shown = digits.size();
  while (digits[shown - 1] == '0') --shown;
  json += '.';
  json.append(digits.data(), shown);
}

}  // namespace stepcast
