// A client's conversations as a script: what it does, step by step, on up to four calls at one
// time.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

#include "tests/fuzz/fuzz_target.h"

namespace stepcast::fuzz {

struct ScriptStep {
  // kBegin: a call of the method `bytes`, service/method, which `number` gives a deadline or none.
  // kSend: `bytes` as a message. kRepeat: the call's last message, `number` times more. kRead:
  // `number` messages, which are waited for a moment. kPause: `number` times 100 us, at most 2 ms.
  enum class Kind : uint8_t { kBegin, kSend, kRepeat, kHalfClose, kCancel, kRead, kPause };
  static constexpr size_t kKinds = 7;

  Kind kind = Kind::kPause;
  uint8_t slot = 0;  // of the call, below kSlots; one that begins takes it from another
  uint8_t number = 0;
  std::string bytes;
};

using Script = std::vector<ScriptStep>;

inline constexpr size_t kSlots = 4;
inline constexpr size_t kMaxScriptSteps = 64;

// Any bytes are a script; what is beyond the most steps is left out.
Script ParseScript(std::string_view bytes);
std::string WriteScript(const Script& script);

// A step more, one less, another order, another message, or a part of one of `others`, which are
// scripts. `methods`: service/method, with which calls begin.
Script MutateScript(Script script, absl::Span<const std::string> methods,
                    absl::Span<const std::string> others, const Mutation& mutation);

}  // namespace stepcast::fuzz
