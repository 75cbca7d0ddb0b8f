#include "core/importing/chakra/chakra_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/importing/common/json_reader.h"
#include "core/importing/common/recording_import.h"
#include "core/importing/common/wire_reader.h"
#include "core/importing/file_kind.h"

namespace stepcast {

namespace {

constexpr size_t kMaxChakraNameBytes = 200;
constexpr int64_t kMaxChakraMicros = int64_t{1} << 51;
constexpr int kMaxChakraDepth = 64;

// Nodes as they come, within the limits.
class ChakraNodes {
 public:
  explicit ChakraNodes(const ProfileLimits& limits) : limits_(limits) {}

  absl::Status Add(ChakraNode node) {
    if (node.name.size() > kMaxChakraNameBytes) node.name.resize(kMaxChakraNameBytes);
    for (char& c : node.name) {
      if (absl::ascii_isprint(static_cast<unsigned char>(c)) == 0) c = '?';
    }
    dependencies_ += static_cast<int64_t>(node.data_dependencies.size());
    if (dependencies_ > limits_.max_dependencies) {
      return ImportFault(kAtRecording, absl::StrCat("data dependencies: ",
                                                    OverLimit(dependencies_, "max_dependencies",
                                                              limits_.max_dependencies)));
    }
    nodes_.push_back(std::move(node));
    // Most are the host's, and become no operations.
    constexpr int64_t kMostPerOperation = 4;
    if (static_cast<int64_t>(nodes_.size()) <= kMostPerOperation * limits_.max_operations)
      return absl::OkStatus();
    return ImportFault(kAtRecording,
                       absl::StrCat("more nodes than four times the limit max_operations = ",
                                    limits_.max_operations));
  }

  std::vector<ChakraNode> Take() && { return std::move(nodes_); }

 private:
  const ProfileLimits& limits_;
  int64_t dependencies_ = 0;
  std::vector<ChakraNode> nodes_;
};

// False: no time that can be.
bool SetMicros(uint64_t micros, int64_t& ns) {
  if (micros > kMaxChakraMicros) return false;
  ns = static_cast<int64_t>(micros) * 1000;
  return true;
}

// An attribute that a node is asked for, by its name in any spelling.
void SetAttribute(std::string_view name, int64_t value, ChakraNode& node) {
  if (name == "is_cpu_op" || name == "iscpuop") node.on_host = value != 0;
  if (name == "comm_type" || name == "commtype") node.collective_type = value;
  if (name == "comm_size" || name == "commsize") node.size_bytes = value;
  if (name == "stream") node.stream = value;
}

constexpr uint32_t Varint(int field) { return static_cast<uint32_t>(field) << 3; }

class ChakraWireReader {
 public:
  ChakraWireReader(ByteSource& source, const ProfileLimits& limits, StopCheck stop)
      : reader_(source, kAtRecording, stop), nodes_(limits) {}

  absl::StatusOr<std::vector<ChakraNode>> Read() {
    bool is_first = true;
    const absl::Status status = reader_.ReadDelimited([&] {
      ChakraNode node;
      bool is_metadata = false;
      absl::Status read = reader_.ReadFields([&](uint32_t tag) {
        // GlobalMetadata's version is a text where a node's id is a number.
        if (is_first && tag == Nested(1)) is_metadata = true;
        return is_metadata ? reader_.Skip(tag) : ReadNodeField(tag, node);
      });
      const bool is_empty = std::exchange(is_first, false) && node.name.empty();
      if (!read.ok() || is_metadata || is_empty) return read;
      return nodes_.Add(std::move(node));
    });
    if (!status.ok()) return status;
    return std::move(nodes_).Take();
  }

 private:
  absl::Status ReadNumber(uint64_t& value) { return reader_.ReadVarint(value); }

  absl::Status ReadNodeField(uint32_t tag, ChakraNode& node) {
    uint64_t value = 0;
    switch (tag) {
      case Varint(1): {
        absl::Status status = ReadNumber(value);
        node.id = static_cast<int64_t>(value);
        return status;
      }
      case Nested(2):
        return reader_.ReadBytes(node.name);
      case Varint(3): {
        absl::Status status = ReadNumber(value);
        if (status.ok() && value > static_cast<uint64_t>(ChakraNode::kLastType))
          return reader_.Fail(absl::StrCat("a node of type ", value, ", which is none"));
        node.type = static_cast<ChakraNode::Type>(value);
        return status;
      }
      case Varint(5): {
        absl::Status status = ReadNumber(value);
        node.data_dependencies.push_back(static_cast<int64_t>(value));
        return status;
      }
      case Nested(5):
        return reader_.ReadPacked(
            [&node](uint64_t id) { node.data_dependencies.push_back(static_cast<int64_t>(id)); });
      case Varint(6):
      case Varint(7): {
        if (absl::Status status = ReadNumber(value); !status.ok()) return status;
        if (SetMicros(value, tag == Varint(6) ? node.start_ns : node.duration_ns))
          return absl::OkStatus();
        return reader_.Fail(absl::StrCat(value, " us are not a time"));
      }
      case Nested(10):
        return ReadAttribute(node);
      default:
        return reader_.Skip(tag);
    }
  }

  // Its value is a oneof; of the numbers only the plain ones matter, whatever their type.
  absl::Status ReadAttribute(ChakraNode& node) {
    std::string name;
    uint64_t value = 0;
    bool has_value = false;
    absl::Status status = reader_.ReadNested([&](uint32_t tag) {
      if (tag == Nested(1)) return reader_.ReadBytes(name);
      // int32, int64, uint32, uint64 and bool.
      for (const int field : {7, 9, 11, 13, 27}) {
        if (tag != Varint(field)) continue;
        has_value = true;
        return ReadNumber(value);
      }
      return reader_.Skip(tag);
    });
    if (status.ok() && has_value) SetAttribute(name, static_cast<int64_t>(value), node);
    return status;
  }

  WireReader reader_;
  ChakraNodes nodes_;
};

class ChakraJsonReader : public JsonReader {
 public:
  explicit ChakraJsonReader(const ProfileLimits& limits)
      : JsonReader(kMaxChakraDepth), nodes_(limits) {}

  absl::StatusOr<std::vector<ChakraNode>> ReadAll(ByteSource& source, StopCheck stop) {
    if (absl::Status status = Read(source, stop); !status.ok()) return status;
    if (!found_) return ImportFault(kAtRecording, "it has neither a workload_graph nor nodes");
    if (has_schema_ && !has_type_) {
      return ImportFault(kAtRecording,
                         "it is PyTorch's execution trace (ExecutionTraceObserver), whose nodes "
                         "have neither type nor time: link it with the profile of the same run "
                         "(chakra_trace_link, chakra_converter), or import that profile as "
                         "pytorch");
    }
    return std::move(nodes_).Take();
  }

 protected:
  int BeginObject() override {
    if (place() == kTop) return kDocument;
    if (place() == kNodes) {
      node_ = {};
      return kNode;
    }
    if (place() != kAttributes) return kPassOver;
    attribute_.clear();
    value_.reset();
    return kAttribute;
  }

  int BeginList() override {
    if (place() == kDocument && (key() == "workloadgraph" || key() == "nodes")) {
      found_ = true;
      return kNodes;
    }
    if (place() == kNode && key() == "datadeps") return kDependencies;
    return place() == kNode && (key() == "attr" || key() == "attrs") ? kAttributes : kPassOver;
  }

  void End() override {
    if (place() == kAttribute && value_) SetAttribute(attribute_, *value_, node_);
    if (place() != kNode) return;
    has_type_ = has_type_ || node_.type != ChakraNode::Type::kInvalid;
    if (absl::Status status = nodes_.Add(std::move(node_)); !status.ok()) Fail(std::move(status));
  }

  // Without underscores, in lower case.
  void TakeKey(const std::string& key, std::string& kept) override {
    kept.clear();
    for (const char c : key) {
      if (c != '_') kept.push_back(absl::ascii_tolower(static_cast<unsigned char>(c)));
    }
  }

  void Text(std::string& value) override {
    if (place() == kDocument && key() == "schema") has_schema_ = true;
    if (place() == kNode && key() == "name") node_.name = value;
    if (place() == kAttribute && key() == "name") {
      attribute_ = value;
    } else if (place() == kNode && (key() == "type" || key() == "nodetype")) {
      Type(value);
    } else if (int64_t number = 0; absl::SimpleAtoi(value, &number)) {
      Whole(number);  // proto JSON has 64-bit numbers as texts
    }
  }

  void Boolean(bool value) override { Whole(value ? 1 : 0); }

  void Number(double value, std::optional<int64_t> whole) override {
    if (whole) {
      Whole(*whole);
    } else if (std::abs(value) < static_cast<double>(kMaxChakraMicros)) {
      Whole(std::llround(value));
    }
  }

 private:
  enum Place { kDocument = 1, kNodes, kNode, kDependencies, kAttributes, kAttribute };

  void Type(const std::string& name) {
    constexpr std::array<std::string_view, 8> kNames = {
        "INVALID_NODE", "METADATA_NODE",  "MEM_LOAD_NODE",  "MEM_STORE_NODE",
        "COMP_NODE",    "COMM_SEND_NODE", "COMM_RECV_NODE", "COMM_COLL_NODE"};
    const auto found = std::find(kNames.begin(), kNames.end(), std::string_view(name));
    if (found != kNames.end()) node_.type = static_cast<ChakraNode::Type>(found - kNames.begin());
  }

  void Whole(int64_t value) {
    if (place() == kDependencies) node_.data_dependencies.push_back(value);
    if (place() == kAttribute) value_ = value;
    if (place() != kNode) return;
    if (key() == "id") node_.id = value;
    if (key() == "type" || key() == "nodetype") {
      if (value < 0 || value > static_cast<int64_t>(ChakraNode::kLastType))
        return FailAtByte(absl::StrCat("a node of type ", value, ", which is none"));
      node_.type = static_cast<ChakraNode::Type>(value);
    }
    const bool is_length = key() == "runtime" || key() == "durationmicros";
    if (is_length || key() == "starttimemicros") {
      if (value < 0 ||
          !SetMicros(static_cast<uint64_t>(value), is_length ? node_.duration_ns : node_.start_ns))
        return FailAtByte(absl::StrCat(value, " us are not a time"));
    }
    SetAttribute(key(), value, node_);
  }

  ChakraNodes nodes_;
  bool found_ = false;
  bool has_schema_ = false;  // as PyTorch's own execution traces have
  bool has_type_ = false;    // of a node
  ChakraNode node_;
  std::string attribute_;
  std::optional<int64_t> value_;
};

// A source whose first bytes have been looked at.
class LookedAtSource final : public ByteSource {
 public:
  explicit LookedAtSource(ByteSource& source) : source_(source) {}

  // Up to kKindBytes.
  absl::StatusOr<std::string_view> First() {
    std::array<char, kKindBytes> block;
    while (first_.size() < kKindBytes) {
      const absl::StatusOr<size_t> read = source_.Read(block.data(), kKindBytes - first_.size());
      if (!read.ok()) return read.status();
      if (*read == 0) break;
      first_.append(block.data(), *read);
    }
    return std::string_view(first_);
  }

  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    if (at_ == first_.size()) return source_.Read(buffer, size);
    const size_t taken = first_.copy(buffer, size, at_);
    at_ += taken;
    return taken;
  }

 private:
  ByteSource& source_;
  std::string first_;
  size_t at_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<ChakraNode>> ReadChakraTrace(ByteSource& source,
                                                        const ProfileLimits& limits,
                                                        StopCheck stop) {
  LookedAtSource whole(source);
  const absl::StatusOr<std::string_view> first = whole.First();
  if (!first.ok()) return first.status();
  const FileKind kind = KindOf(*first);
  if (kind == FileKind::kBinary || kind == FileKind::kChakra)
    return ChakraWireReader(whole, limits, stop).Read();
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(AbslView(*first));
  if (!text.empty() && text.front() == '{') return ChakraJsonReader(limits).ReadAll(whole, stop);
  return ImportFault(kAtRecording, "neither Chakra's protobuf messages nor its JSON");
}

}  // namespace stepcast
