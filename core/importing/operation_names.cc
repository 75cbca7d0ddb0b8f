#include "core/importing/operation_names.h"

#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

#include "core/importing/transfer_label.h"

namespace stepcast {

namespace {

// The same node's name at three lengths; the last is nobody else's.
enum class Length { kSender, kTensor, kDevices };

std::string NameAt(Length length, const RecordedRows& rows, const RecordedNode& node,
                   Resource resource) {
  const std::string& device = rows.devices()[static_cast<size_t>(node.device)].name;
  if (!node.is_transfer())
    return length == Length::kDevices ? absl::StrCat(node.name, "@", device) : node.name;
  const std::string_view sender = SenderOf(node.name);
  const absl::string_view tensor = length == Length::kSender
                                       ? absl::string_view(sender.data(), sender.size())
                                       : absl::string_view(node.name);
  const std::string name =
      absl::StrCat(resource == Resource::kDownlink ? "recv/" : "send/", tensor);
  return length == Length::kDevices
             ? absl::StrCat(name, "@", rows.devices()[static_cast<size_t>(node.source)].name, ">",
                            device)
             : name;
}

}  // namespace

void NameOperations(const RecordedRows& rows, const std::vector<int32_t>& recorded,
                    std::vector<Operation>& operations) {
  const auto name = [&](Length length, size_t i) {
    return NameAt(length, rows, rows.nodes()[static_cast<size_t>(recorded[i])],
                  operations[i].resource);
  };
  for (size_t i = 0; i < operations.size(); ++i) operations[i].name = name(Length::kSender, i);
  for (const Length length : {Length::kTensor, Length::kDevices}) {
    absl::flat_hash_map<std::string, int64_t> count;
    for (const Operation& operation : operations) ++count[operation.name];
    for (size_t i = 0; i < operations.size(); ++i) {
      if (count.at(operations[i].name) > 1) operations[i].name = name(length, i);
    }
  }
}

}  // namespace stepcast
