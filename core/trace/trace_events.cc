#include "core/trace/trace_events.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace stepcast {

void TextPieces::Append(std::string_view text) {
  while (status_.ok() && !text.empty()) {
    if (piece_.capacity() < kPieceBytes) piece_.reserve(kPieceBytes);
    const size_t taken = std::min(kPieceBytes - piece_.size(), text.size());
    piece_.append(text.substr(0, taken));
    text.remove_prefix(taken);
    if (piece_.size() == kPieceBytes) PassOn();
  }
}

void TextPieces::Finish() {
  if (status_.ok() && !piece_.empty()) PassOn();
}

void TextPieces::PassOn() { status_ = sink_(std::exchange(piece_, {})); }

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

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool Within(char c, uint8_t least, uint8_t most) {
  return static_cast<uint8_t>(c) >= least && static_cast<uint8_t>(c) <= most;
}

// Length of the well-formed sequence that `text` begins with (Unicode 15, table 3-7); 0 where it
// begins with none. REQUIRES: !text.empty().
size_t SequenceLength(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  // No overlong forms, no surrogates, nothing past U+10FFFF.
  const uint8_t least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (!Within(text[1], least, most)) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (!Within(text[i], 0x80, 0xBF)) return 0;
  }
  return length;
}

void AppendAscii(char c, std::string& json) {
  constexpr char kHex[] = "0123456789abcdef";
  const auto byte = static_cast<uint8_t>(c);
  if (c == '"' || c == '\\') {
    json += '\\';
    json += c;
  } else if (byte < 0x20 || byte == 0x7F) {
    json += "\\u00";
    json += kHex[byte >> 4];
    json += kHex[byte & 0xF];
  } else {
    json += c;
  }
}

}  // namespace

void AppendJsonString(std::string_view text, std::string& json) {
  json += '"';
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    if (length == 1) {
      AppendAscii(text[0], json);
    } else {
      json += length == 0 ? kReplacement : text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  json += '"';
}

void TraceEvents::End() {
  pieces_.Append("\n]}\n");
  pieces_.Finish();
}

void TraceEvents::BeginEvent(const char* phase, int32_t process, int32_t thread) {
  event_.clear();
  absl::StrAppend(&event_, events_ > 0 ? ",\n" : "", R"({"ph":")", phase, R"(","pid":)",
                  process + 1, R"(,"tid":)", thread);
}

void TraceEvents::EndEvent() {
  event_ += '}';
  pieces_.Append(event_);
  ++events_;
}

void TraceEvents::WriteMetadata(const char* kind, int32_t process, int32_t thread,
                                const std::string& name, int32_t sort_index) {
  BeginEvent("M", process, thread);
  absl::StrAppend(&event_, R"(,"name":")", kind, R"(_name","args":{"name":)");
  AppendJsonString(name, event_);
  event_ += '}';
  EndEvent();
  BeginEvent("M", process, thread);
  absl::StrAppend(&event_, R"(,"name":")", kind, R"(_sort_index","args":{"sort_index":)",
                  sort_index, "}");
  EndEvent();
}

void TraceEvents::WriteStep(int32_t process, int32_t step, Instant begin, Instant end) {
  BeginEvent("X", process, kStepsThread);
  absl::StrAppend(&event_, R"(,"cat":"step","name":"step )", step, "\"");
  AppendTimes(begin, end);
  absl::StrAppend(&event_, R"(,"args":{"step":)", step, "}");
  EndEvent();
}

void TraceEvents::AppendTimes(Instant begin, Instant end) {
  const int64_t from = ToPicoseconds(begin);
  event_ += R"(,"ts":)";
  AppendMicroseconds(from, event_);
  event_ += R"(,"dur":)";
  AppendMicroseconds(ToPicoseconds(end) - from, event_);
}

}  // namespace stepcast
