#include "tests/core/importing/chakra_writer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "core/base/random.h"

namespace stepcast::testing {

namespace {

std::string VarintOf(uint64_t value) {
  std::string bytes;
  for (; value > 0x7f; value >>= 7) bytes.push_back(static_cast<char>((value & 0x7f) | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

// Proto3 leaves zeros out.
std::string NumberField(int field, int64_t value) {
  return value == 0 ? ""
                    : absl::StrCat(VarintOf(static_cast<uint64_t>(field) << 3),
                                   VarintOf(static_cast<uint64_t>(value)));
}

std::string TextField(int field, const std::string& text) {
  return absl::StrCat(VarintOf((static_cast<uint64_t>(field) << 3) | 2), VarintOf(text.size()),
                      text);
}

// The value's field says its type, and stands there even if it is zero.
std::string AttributeField(const char* name, int value_field, int64_t value) {
  return TextField(
      10, absl::StrCat(TextField(1, name), VarintOf(static_cast<uint64_t>(value_field) << 3),
                       VarintOf(static_cast<uint64_t>(value))));
}

constexpr int kInt64Field = 9;
constexpr int kUint64Field = 13;
constexpr int kBoolField = 27;

}  // namespace

std::string WriteChakraWire(const std::vector<ChakraNode>& nodes, bool packed) {
  const std::string metadata = TextField(1, "0.0.4");
  std::string bytes = VarintOf(metadata.size()) + metadata;
  for (const ChakraNode& node : nodes) {
    std::string message = absl::StrCat(NumberField(1, node.id), TextField(2, node.name),
                                       NumberField(3, static_cast<int64_t>(node.type)));
    std::string list;
    for (const int64_t id : node.data_dependencies) {
      const std::string number = VarintOf(static_cast<uint64_t>(id));
      list += packed ? number : VarintOf(5 << 3) + number;
    }
    if (!list.empty()) message += packed ? TextField(5, list) : list;
    absl::StrAppend(&message, NumberField(6, node.start_ns / 1000),
                    NumberField(7, node.duration_ns / 1000),
                    TextField(8, TextField(1, "[[64, 3]]")),
                    AttributeField("is_cpu_op", kBoolField, node.on_host ? 1 : 0),
                    AttributeField("stream", kInt64Field, node.stream));
    if (node.collective_type >= 0)
      message += AttributeField("comm_type", kInt64Field, node.collective_type);
    // Files differ in its type.
    if (node.size_bytes >= 0)
      message += AttributeField("comm_size", node.id % 2 == 0 ? kInt64Field : kUint64Field,
                                node.size_bytes);
    absl::StrAppend(&bytes, VarintOf(message.size()), message);
  }
  return bytes;
}

std::string WriteChakraJson(const std::vector<ChakraNode>& nodes, bool attributes) {
  std::string text = attributes ? R"({"nodes": [)" : R"({"workload_graph": [)";
  const char* separator = "\n";
  for (const ChakraNode& node : nodes) {
    absl::StrAppend(&text, std::exchange(separator, ",\n"));
    const std::string ids = absl::StrJoin(node.data_dependencies, ", ");
    const int64_t us = node.duration_ns / 1000;
    const char* host = node.on_host ? "true" : "false";
    if (attributes) {
      absl::StrAppend(&text, R"({"id": ")", node.id, R"(", "name": ")", node.name,
                      R"(", "type": ")",
                      node.type == ChakraNode::Type::kCollective ? "COMM_COLL_NODE" : "COMP_NODE",
                      R"(", "dataDeps": [)", ids, R"(], "startTimeMicros": ")",
                      node.start_ns / 1000, R"(", "durationMicros": ")", us);
      absl::StrAppend(&text, R"(", "attr": [{"name": "is_cpu_op", "boolVal": )", host,
                      R"(}, {"name": "stream", "int64Val": ")", node.stream, R"("})");
      if (node.collective_type >= 0)
        absl::StrAppend(&text, R"(, {"name": "comm_type", "int64Val": ")", node.collective_type,
                        R"("}, {"name": "comm_size", "int64Val": ")", node.size_bytes, R"("})");
      text += "]}";
    } else {
      absl::StrAppend(&text, R"({"Id": )", node.id, R"(, "Name": ")", node.name,
                      R"(", "NodeType": )", static_cast<int>(node.type), R"(, "ctrlDeps": [3],)",
                      R"( "data_deps": [)", ids, R"(], "start_time_micros": )",
                      node.start_ns / 1000, R"(, "runtime": )", us);
      absl::StrAppend(&text, R"(, "is_cpu_op": )", host, R"(, "stream": )", node.stream);
      if (node.collective_type >= 0)
        absl::StrAppend(&text, R"(, "comm_type": )", node.collective_type, R"(, "comm_size": )",
                        node.size_bytes);
      text += "}";
    }
  }
  return text + "]}";
}

std::vector<ChakraNode> RandomChakraTrace(uint64_t seed) {
  Random random({seed, 12});
  std::vector<ChakraNode> nodes;
  const auto layers = static_cast<int64_t>(1 + random.Below(6));
  std::vector<int64_t> ids(static_cast<size_t>(6 * layers + 4));
  std::iota(ids.begin(), ids.end(), int64_t{0});
  for (size_t i = ids.size(); i > 1; --i) std::swap(ids[i - 1], ids[random.Below(i)]);
  int64_t now_us = 100;
  int64_t last_host = -1;
  const auto add = [&](std::string name, ChakraNode node) {
    node.id = ids[nodes.size()];
    node.name = std::move(name);
    node.start_ns = 1000 * now_us++;
    std::erase(node.data_dependencies, -1);
    nodes.push_back(std::move(node));
    return nodes.back().id;
  };
  const auto host = [&](std::string name) {
    last_host = add(std::move(name), {.type = ChakraNode::Type::kComputation,
                                      .data_dependencies = {last_host},
                                      .duration_ns = 1000,
                                      .on_host = true});
  };
  const auto compute = [&](const char* name, std::vector<int64_t> before) {
    host(absl::StrCat("launch ", name));
    before.push_back(last_host);
    return add(absl::StrCat("kernel ", name),
               {.type = ChakraNode::Type::kComputation,
                .data_dependencies = std::move(before),
                .duration_ns = static_cast<int64_t>(1000 * (5 + random.Below(50))),
                .stream = static_cast<int64_t>(7 + random.Below(2))});
  };
  int64_t last = -1;
  for (int64_t layer = 0; layer < layers; ++layer) last = compute("forward", {last});
  std::vector<int64_t> reduced;
  for (int64_t layer = 0; layer < layers; ++layer) {
    last = compute("backward", {last});
    host("c10d::allreduce_");
    // The computation that it reduces, or only its launch.
    reduced.push_back(add("ncclKernel_AllReduce",
                          {.type = ChakraNode::Type::kCollective,
                           .data_dependencies = {random.Below(2) == 0 ? last : last_host},
                           .duration_ns = 90'000,
                           .collective_type = 0,
                           .size_bytes = static_cast<int64_t>(4 * (1 + random.Below(100'000))),
                           .stream = 20}));
  }
  reduced.push_back(last);
  compute("optimizer", std::move(reduced));
  return nodes;
}

}  // namespace stepcast::testing
