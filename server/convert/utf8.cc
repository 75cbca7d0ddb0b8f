#include "server/convert/utf8.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"

namespace stepcast::server {

namespace {

// The length of the well-formed sequence that `text` begins with; 0: it begins with none.
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
  };
  const auto continues = [&](size_t at, unsigned low = 0x80, unsigned high = 0xBF) {
    return byte(at) >= low && byte(at) <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool second = continues(1, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF);
    return second && continues(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool second = continues(1, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF);
    return second && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string ToUtf8(std::string_view text, size_t max) {
  std::string out;
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    const size_t taken = std::max<size_t>(length, 1);
    if (out.size() + taken > max) break;
    if (length == 0) {
      out.push_back('?');
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(taken);
  }
  return out;
}

std::vector<Fault> FindBrokenText(const ProfileDraft& draft) {
  FaultList faults;
  const auto check = [&](const std::string& text, auto... path) {
    if (!IsUtf8(text)) faults.Add(absl::StrCat(path...), Quoted(text) + " is not UTF-8");
  };
  check(draft.display_name, "display_name");
  check(draft.model, "model");
  check(draft.framework, "framework");
  for (const auto& [key, value] : draft.labels) {
    check(key, "labels");
    check(value, "labels");
  }
  for (size_t i = 0; i < draft.operations.size() && !faults.full(); ++i) {
    check(draft.operations[i].name, "operations[", i, "].name");
    check(draft.operations[i].parameter, "operations[", i, "].parameter");
  }
  for (size_t i = 0; draft.recording && i < draft.recording->workers.size(); ++i)
    check(draft.recording->workers[i].name, "recording.workers[", i, "].name");
  return std::move(faults).Take();
}

}  // namespace stepcast::server
