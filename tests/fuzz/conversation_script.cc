#include "tests/fuzz/conversation_script.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <utility>

#include "tests/fuzz/message_mutator.h"

namespace stepcast::fuzz {

namespace {

using Kind = ScriptStep::Kind;

constexpr size_t kStepBytes = 3;    // kind, slot, number
constexpr size_t kLengthBytes = 2;  // of the bytes that follow
constexpr size_t kByteValues = 256;

bool HasBytes(Kind kind) { return kind == Kind::kBegin || kind == Kind::kSend; }

// The type of the method's requests; null: there is no such method.
const google::protobuf::Message* RequestOf(std::string method) {
  std::replace(method.begin(), method.end(), '/', '.');
  const auto* found = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(method);
  return found == nullptr ? nullptr
                          : google::protobuf::MessageFactory::generated_factory()->GetPrototype(
                                found->input_type());
}

// The type of the message that is sent there; null: it has none.
const google::protobuf::Message* RequestAt(const Script& script, size_t at) {
  for (size_t i = at; i-- > 0;) {
    if (script[i].kind == Kind::kBegin && script[i].slot == script[at].slot)
      return RequestOf(script[i].bytes);
  }
  return nullptr;
}

ScriptStep RandomStep(absl::Span<const std::string> methods, Random& random) {
  ScriptStep step;
  step.kind = static_cast<Kind>(random.Below(ScriptStep::kKinds));
  step.slot = static_cast<uint8_t>(random.Below(kSlots));
  step.number = static_cast<uint8_t>(random.Below(random.Below(4) == 0 ? kByteValues : 4));
  if (step.kind == Kind::kBegin) step.bytes = methods[random.Below(methods.size())];
  return step;
}

void MutateStep(Script& script, size_t at, absl::Span<const std::string> methods,
                const Mutation& mutation) {
  ScriptStep& step = script[at];
  if (step.kind == Kind::kBegin) {
    step.bytes = mutation.random.Below(16) == 0 ? mutation.bytes(std::move(step.bytes))
                                                : methods[mutation.random.Below(methods.size())];
  } else if (step.kind == Kind::kSend) {
    const google::protobuf::Message* request = RequestAt(script, at);
    step.bytes = request == nullptr ? mutation.bytes(std::move(step.bytes))
                                    : MutateSerialised(*request, std::move(step.bytes), mutation);
  } else {
    step = RandomStep(methods, mutation.random);
  }
}

}  // namespace

Script ParseScript(std::string_view bytes) {
  Script script;
  while (bytes.size() >= kStepBytes && script.size() < kMaxScriptSteps) {
    ScriptStep& step = script.emplace_back();
    const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
    step.kind = static_cast<Kind>(at(0) % ScriptStep::kKinds);
    step.slot = static_cast<uint8_t>(at(1) % kSlots);
    step.number = at(2);
    size_t taken = kStepBytes;
    if (HasBytes(step.kind)) {
      const size_t length = bytes.size() < kStepBytes + kLengthBytes
                                ? 0
                                : at(kStepBytes) + kByteValues * at(kStepBytes + 1);
      taken = std::min(kStepBytes + kLengthBytes, bytes.size());
      step.bytes = bytes.substr(taken, length);
      taken += step.bytes.size();
    }
    bytes.remove_prefix(taken);
  }
  return script;
}

std::string WriteScript(const Script& script) {
  std::string bytes;
  for (const ScriptStep& step : script) {
    bytes += static_cast<char>(step.kind);
    bytes += static_cast<char>(step.slot);
    bytes += static_cast<char>(step.number);
    if (!HasBytes(step.kind)) continue;
    bytes += static_cast<char>(step.bytes.size() % kByteValues);
    bytes += static_cast<char>(step.bytes.size() / kByteValues);
    bytes += step.bytes;
  }
  return bytes;
}

Script MutateScript(Script script, absl::Span<const std::string> methods,
                    absl::Span<const std::string> others, const Mutation& mutation) {
  Random& random = mutation.random;
  if (script.empty()) script.push_back(RandomStep(methods, random));
  const size_t at = random.Below(script.size());
  const auto here = script.begin() + static_cast<std::ptrdiff_t>(at);
  switch (random.Below(8)) {
    case 0:
      script.insert(here, RandomStep(methods, random));
      break;
    case 1:
      script.erase(here);
      break;
    case 2:
      script.insert(here, ScriptStep(script[random.Below(script.size())]));
      break;
    case 3:
      std::swap(script[at], script[random.Below(script.size())]);
      break;
    case 4: {
      // Between its own steps, on other calls.
      const Script other = ParseScript(others[random.Below(others.size())]);
      const auto shift = static_cast<uint8_t>(random.Below(kSlots));
      size_t place = at;
      for (ScriptStep step : other) {
        step.slot = static_cast<uint8_t>((step.slot + shift) % kSlots);
        place = std::min<size_t>(place + random.Below(2), script.size());
        script.insert(script.begin() + static_cast<std::ptrdiff_t>(place++), std::move(step));
      }
      break;
    }
    default:
      MutateStep(script, at, methods, mutation);
  }
  if (script.size() > kMaxScriptSteps) script.resize(kMaxScriptSteps);
  return script;
}

}  // namespace stepcast::fuzz
