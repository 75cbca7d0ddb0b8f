#include "server/convert/earlier_contract.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/unknown_field_set.h"

#include "server/convert/deterministic_bytes.h"
#include "stepcast/v1/allocation.pb.h"
#include "stepcast/v1/order.pb.h"
#include "stepcast/v1/prediction.pb.h"
#include "stepcast/v1/profile.pb.h"
#include "stepcast/v1/recommendation.pb.h"
#include "stepcast/v1/scenario.pb.h"

namespace stepcast::server {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

// Fields of Scenario that were.
enum FormerField : int {
  kParameterServers = 2,
  kParsingOverhead = 4,
  kSynchronization = 5,
  kMultiplexing = 6,
  kWindowBytes = 7,
  kQuantumBytes = 8,
  kLinkSharing = 9,
  kTransferOrder = 10,
  kTransferPriorities = 11,
  kTurnBytes = 14,
};
// Values of its enums.
enum FormerMultiplexing : uint64_t { kWindow = 1, kWholeStream = 2, kRoundRobin = 3 };
enum FormerSharing : uint64_t { kEqual = 1, kFirstCome = 2, kTurns = 3 };

struct FormerName {
  FormerField number;
  const char* name;
  const char* now;  // below parameter_servers
};
constexpr FormerName kFormerNames[] = {
    {kParameterServers, "parameter_servers (a number)", "servers"},
    {kParsingOverhead, "parsing_overhead", "parsing_overhead"},
    {kSynchronization, "synchronization", "synchronization"},
    {kMultiplexing, "multiplexing", "whole_stream, window or round_robin"},
    {kWindowBytes, "window_bytes", "window.bytes or round_robin.window_bytes"},
    {kQuantumBytes, "quantum_bytes", "window.quantum_bytes or round_robin.quantum_bytes"},
    {kLinkSharing, "link_sharing", "equal, first_come or turns"},
    {kTransferOrder, "transfer_order", "transfer_order"},
    {kTransferPriorities, "transfer_priorities", "transfer_priorities"},
    {kTurnBytes, "turn_bytes", "turns.bytes"}};

const UnknownFieldSet& UnknownOf(const Message& message) {
  return message.GetReflection()->GetUnknownFields(message);
}

// The last of that number, as parsers have it; null: none.
const UnknownField* Find(const UnknownFieldSet& fields, int number) {
  for (int i = fields.field_count() - 1; i >= 0; --i) {
    if (fields.field(i).number() == number) return &fields.field(i);
  }
  return nullptr;
}

uint64_t NumberOr(const UnknownFieldSet& fields, int number, uint64_t otherwise) {
  const UnknownField* const field = Find(fields, number);
  return field != nullptr && field->type() == UnknownField::TYPE_VARINT ? field->varint()
                                                                        : otherwise;
}

void UpgradeMultiplexing(const UnknownFieldSet& from, v1::ParameterServers& to) {
  const bool has_window = Find(from, kWindowBytes) != nullptr;
  const bool has_quantum = Find(from, kQuantumBytes) != nullptr;
  const auto window = static_cast<int64_t>(NumberOr(from, kWindowBytes, 0));
  const auto quantum = static_cast<int64_t>(NumberOr(from, kQuantumBytes, 0));
  const uint64_t kind = NumberOr(from, kMultiplexing, 0);
  if (kind == kWholeStream || (kind == 0 && has_window && window == 0)) {
    to.mutable_whole_stream();
  } else if (kind == kRoundRobin) {
    if (has_window) to.mutable_round_robin()->set_window_bytes(window);
    if (has_quantum) to.mutable_round_robin()->set_quantum_bytes(quantum);
    to.mutable_round_robin();
  } else if (kind == kWindow || has_window || quantum != 0) {
    if (has_window) to.mutable_window()->set_bytes(window);
    if (has_quantum) to.mutable_window()->set_quantum_bytes(quantum);
    to.mutable_window();
  }
}

void UpgradeSharing(const UnknownFieldSet& from, v1::ParameterServers& to) {
  switch (NumberOr(from, kLinkSharing, 0)) {
    case kEqual:
      to.mutable_equal();
      break;
    case kFirstCome:
      to.mutable_first_come();
      break;
    case kTurns:
      to.mutable_turns();
      if (Find(from, kTurnBytes) != nullptr)
        to.mutable_turns()->set_bytes(static_cast<int64_t>(NumberOr(from, kTurnBytes, 0)));
      break;
    default:
      break;
  }
}

void UpgradeScenario(v1::Scenario& scenario) {
  UnknownFieldSet from;
  from.MergeFrom(UnknownOf(scenario));
  v1::ParameterServers& to = *scenario.mutable_parameter_servers();
  if (Find(from, kParameterServers) != nullptr)
    to.set_servers(static_cast<int32_t>(NumberOr(from, kParameterServers, 0)));
  if (const UnknownField* const parsing = Find(from, kParsingOverhead);
      parsing != nullptr && parsing->type() == UnknownField::TYPE_LENGTH_DELIMITED)
    to.mutable_parsing_overhead()->ParseFromString(parsing->length_delimited());
  to.set_synchronization(
      static_cast<v1::ParameterServers::Synchronization>(NumberOr(from, kSynchronization, 0)));
  UpgradeMultiplexing(from, to);
  UpgradeSharing(from, to);
  to.set_transfer_order(
      static_cast<v1::ParameterServers::TransferOrder>(NumberOr(from, kTransferOrder, 0)));
  for (int i = 0; i < from.field_count(); ++i) {
    const UnknownField& field = from.field(i);
    if (field.number() != kTransferPriorities ||
        field.type() != UnknownField::TYPE_LENGTH_DELIMITED)
      continue;
    // An entry of a map is a message of key and value, wherever the map stands.
    v1::ParameterServers entry;
    std::string bytes;
    bytes.push_back(static_cast<char>(kTransferPriorities << 3 | 2));
    for (size_t size = field.length_delimited().size();; size >>= 7) {
      bytes.push_back(static_cast<char>((size & 0x7F) | (size > 0x7F ? 0x80 : 0)));
      if (size <= 0x7F) break;
    }
    if (!entry.ParseFromString(bytes + field.length_delimited())) continue;
    for (const auto& [name, rank] : entry.transfer_priorities())
      (*to.mutable_transfer_priorities())[name] = rank;
  }
  scenario.GetReflection()->MutableUnknownFields(&scenario)->Clear();
}

v1::Warning WarningOf(const std::string& text) {
  constexpr struct {
    const char* part;
    v1::Warning::Reason reason;
  } kReasons[] = {{"two regimes", v1::Warning::TWO_REGIMES},
                  {"nothing is random", v1::Warning::NOTHING_RANDOM},
                  {"one replication only", v1::Warning::ONE_REPLICATION},
                  {"as asked for", v1::Warning::FINITE_HORIZON},
                  {"not a steady state", v1::Warning::NOT_STEADY},
                  {"the start still shows", v1::Warning::NOT_STEADY}};
  v1::Warning warning;
  warning.set_message(text);
  for (const auto& [part, reason] : kReasons) {
    if (!absl::StrContains(text, part)) continue;
    warning.set_reason(reason);
    break;
  }
  return warning;
}

// Texts at a number that is no field any more. False where there are none.
template <typename Wire>
bool UpgradeWarnings(Message& message, int number) {
  auto& wire = static_cast<Wire&>(message);
  const UnknownFieldSet& fields = UnknownOf(wire);
  std::vector<std::string> texts;
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    if (field.number() == number && field.type() == UnknownField::TYPE_LENGTH_DELIMITED &&
        !field.length_delimited().empty())
      texts.push_back(field.length_delimited());
  }
  if (Find(fields, number) == nullptr) return false;
  for (const std::string& text : texts) *wire.add_warnings() = WarningOf(text);
  wire.GetReflection()->MutableUnknownFields(&wire)->DeleteByNumber(number);
  return true;
}

bool IsFormer(const v1::Scenario& scenario) {
  const UnknownFieldSet& fields = UnknownOf(scenario);
  for (const FormerName& former : kFormerNames) {
    if (Find(fields, former.number) != nullptr) return true;
  }
  return false;
}

void RefuseIn(const v1::Scenario& scenario, const std::string& path, FaultList& faults) {
  const UnknownFieldSet& fields = UnknownOf(scenario);
  for (const FormerName& former : kFormerNames) {
    if (Find(fields, former.number) == nullptr) continue;
    faults.Add(path, absl::StrCat("field ", static_cast<int>(former.number), ", ", former.name,
                                  ", is of the former contract; today it is parameter_servers.",
                                  former.now));
  }
}

bool UpgradeOne(Message& message) {
  const google::protobuf::Descriptor* const type = message.GetDescriptor();
  if (type == v1::Scenario::descriptor()) {
    auto& scenario = static_cast<v1::Scenario&>(message);
    if (!IsFormer(scenario)) return false;
    UpgradeScenario(scenario);
    return true;
  }
  if (type == v1::Prediction::descriptor()) return UpgradeWarnings<v1::Prediction>(message, 13);
  if (type == v1::RecommendWorkersResponse::descriptor())
    return UpgradeWarnings<v1::RecommendWorkersResponse>(message, 19);
  if (type == v1::OptimizeOrderResponse::descriptor())
    return UpgradeWarnings<v1::OptimizeOrderResponse>(message, 16);
  if (type == v1::JobAllocation::descriptor())
    return UpgradeWarnings<v1::JobAllocation>(message, 12);
  return false;
}

}  // namespace

bool UpgradeStored(Message& message) {
  bool changed = UpgradeOne(message);
  const google::protobuf::Reflection* const reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    // Maps hold no messages of ours.
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
    if (!field->is_repeated()) {
      changed = UpgradeStored(*reflection->MutableMessage(&message, field)) || changed;
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i)
      changed = UpgradeStored(*reflection->MutableRepeatedMessage(&message, field, i)) || changed;
  }
  return changed;
}

std::string UpgradedBytes(std::string_view full_name, std::string bytes) {
  const google::protobuf::Descriptor* const type =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(
          std::string(full_name));
  if (type == nullptr) return bytes;
  const std::unique_ptr<Message> message(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
  if (!message->ParseFromString(bytes) || !UpgradeStored(*message)) return bytes;
  return DeterministicBytes(*message);
}

void RefuseFormerFields(const Message& message, const std::string& path, FaultList& faults) {
  if (message.GetDescriptor() == v1::Profile::descriptor()) return;
  if (message.GetDescriptor() == v1::Scenario::descriptor()) {
    RefuseIn(static_cast<const v1::Scenario&>(message), path, faults);
    return;
  }
  const google::protobuf::Reflection* const reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
    const std::string at = absl::StrCat(path, path.empty() ? "" : ".", field->name());
    if (!field->is_repeated()) {
      RefuseFormerFields(reflection->GetMessage(message, field), at, faults);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      RefuseFormerFields(reflection->GetRepeatedMessage(message, field, i),
                         absl::StrCat(at, "[", i, "]"), faults);
    }
  }
}

}  // namespace stepcast::server
