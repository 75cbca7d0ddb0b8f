#include "deploy/kubernetes/admission/review.h"

#include <map>
#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "deploy/kubernetes/admission/training_job.h"

namespace stepcast::admission {

namespace {

using nlohmann::json;

constexpr std::string_view kReplicatedLimits =
    "request.object.spec.replicatedJobs.*.template.spec.template.spec.containers.*.resources."
    "limits.*";

// The fields that are kept, as paths from the root. "*" is any key of an object or any element of
// an array.
constexpr std::string_view kKeptFields[] = {
    "apiVersion",
    "kind",
    "request.uid",
    "request.kind.group",
    "request.kind.kind",
    "request.operation",
    "request.subResource",
    "request.dryRun",
    "request.name",
    "request.object.metadata.labels.*",
    "request.object.metadata.annotations.*",
    "request.object.spec.parallelism",
    "request.object.spec.completions",
    "request.object.spec.completionMode",
    "request.object.spec.maxFailedIndexes",
    "request.object.spec.successPolicy.rules.*.succeededIndexes",
    "request.object.spec.successPolicy.rules.*.succeededCount",
    "request.object.spec.template.spec.containers.*.resources.limits.*",
    "request.object.spec.nprocPerNode",
    "request.object.spec.runPolicy.schedulingPolicy.minAvailable",
    "request.object.spec.elasticPolicy.minReplicas",
    "request.object.spec.elasticPolicy.maxReplicas",
    "request.object.spec.elasticPolicy.nProcPerNode",
    "request.object.spec.pytorchReplicaSpecs.*.replicas",
    "request.object.spec.pytorchReplicaSpecs.*.template.spec.containers.*.resources.limits.*",
    "request.object.spec.slotsPerWorker",
    "request.object.spec.runLauncherAsWorker",
    "request.object.spec.mpiReplicaSpecs.*.replicas",
    "request.object.spec.trainer.numNodes",
    "request.object.spec.trainer.numProcPerNode",
    "request.object.spec.trainer.resourcesPerNode.limits.*",
    "request.object.spec.replicatedJobs.*.name",
    "request.object.spec.replicatedJobs.*.replicas",
    "request.object.spec.replicatedJobs.*.template.spec.parallelism",
    "request.object.spec.replicatedJobs.*.template.spec.completions",
    "request.object.spec.replicatedJobs.*.template.spec.completionMode",
    "request.object.spec.replicatedJobs.*.template.spec.maxFailedIndexes",
    "request.object.spec.replicatedJobs.*.template.spec.successPolicy.rules.*.succeededIndexes",
    "request.object.spec.replicatedJobs.*.template.spec.successPolicy.rules.*.succeededCount",
    kReplicatedLimits};

// A tree of kKeptFields. A node without children is a field, whose value is kept if it is no object
// or array.
struct KeptNode {
  std::map<std::string, std::unique_ptr<KeptNode>, std::less<>> below;

  const KeptNode* Find(std::string_view key) const {
    auto found = below.find(key);
    if (found == below.end()) found = below.find("*");
    return found == below.end() ? nullptr : found->second.get();
  }
};

const KeptNode& KeptTree() {
  static const KeptNode& tree = *[] {
    auto root = std::make_unique<KeptNode>();
    for (std::string_view path : kKeptFields) {
      KeptNode* at = root.get();
      while (!path.empty()) {
        const size_t dot = std::min(path.find('.'), path.size());
        std::unique_ptr<KeptNode>& next = at->below[std::string(path.substr(0, dot))];
        if (next == nullptr) next = std::make_unique<KeptNode>();
        at = next.get();
        path.remove_prefix(std::min(dot + 1, path.size()));
      }
    }
    return root.release();
  }();
  return tree;
}

// Builds what is kept while the parser reads; stops it at what is too deep or too much.
class KeptFieldsReader final : public nlohmann::json_sax<json> {
 public:
  json Take() { return std::move(root_); }
  const std::string& fault() const { return fault_; }

  bool null() override { return Scalar(nullptr); }
  bool boolean(bool value) override { return Scalar(value); }
  bool number_integer(number_integer_t value) override { return Scalar(value); }
  bool number_unsigned(number_unsigned_t value) override { return Scalar(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    return Scalar(value);
  }
  bool string(string_t& value) override { return Scalar(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return Fail("has binary values"); }

  bool start_object(std::size_t /*elements*/) override { return Open(json::object()); }
  bool key(string_t& value) override {
    if (skipped_ == 0) key_ = std::move(value);
    return true;
  }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t /*elements*/) override { return Open(json::array()); }
  bool end_array() override { return Close(); }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return Fail(absl::StrCat("is not JSON from byte ", position, " on"));
  }

 private:
  struct Level {
    json* value;
    const KeptNode* node;
  };

  bool Fail(std::string why) {
    if (fault_.empty()) fault_ = std::move(why);
    return false;
  }

  // The node of the value that comes next; null: it is not kept.
  const KeptNode* NodeOfNext() const {
    if (levels_.empty()) return &KeptTree();
    const Level& level = levels_.back();
    return level.node->Find(level.value->is_array() ? std::string_view("*") : key_);
  }

  // The place of the value that comes next, which takes `value`. Elements of arrays that are not
  // kept leave a null, so that the others keep their places.
  json* Put(json value) {
    if (++kept_ > kMaxKeptValues) return nullptr;
    if (levels_.empty()) return &(root_ = std::move(value));
    json& parent = *levels_.back().value;
    if (!parent.is_array()) return &(parent[key_] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }

  bool Scalar(json value) {
    if (skipped_ > 0) return true;
    const bool is_element = !levels_.empty() && levels_.back().value->is_array();
    if (NodeOfNext() == nullptr && !is_element) return true;
    return Put(std::move(value)) != nullptr || Fail("has too many values");
  }

  bool Open(json empty) {
    if (++depth_ > kMaxDepth) return Fail(absl::StrCat("is nested deeper than ", kMaxDepth));
    const KeptNode* node = skipped_ > 0 ? nullptr : NodeOfNext();
    if (node == nullptr || (!levels_.empty() && node->below.empty())) {
      ++skipped_;
      return true;
    }
    json* place = Put(std::move(empty));
    if (place == nullptr) return Fail("has too many values");
    levels_.push_back({place, node});
    return true;
  }

  bool Close() {
    --depth_;
    if (skipped_ > 0) {
      --skipped_;
    } else {
      levels_.pop_back();
    }
    return true;
  }

  json root_;
  std::vector<Level> levels_;
  std::string key_;
  std::string fault_;
  int skipped_ = 0;  // levels of a value that is not kept
  int depth_ = 0;
  int kept_ = 0;
};

absl::Status Invalid(const std::string& why) {
  return MakeError(absl::StatusCode::kInvalidArgument, absl::StrCat("the review ", why),
                   {.reason = "REVIEW_INVALID"});
}

// The text at `keys`, empty where there is none.
std::string TextIn(const json& object, std::initializer_list<std::string_view> keys) {
  const json* value = FindIn(object, keys);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

}  // namespace

absl::StatusOr<Review> ReadReview(std::string_view text) {
  KeptFieldsReader reader;
  if (!json::sax_parse(text, &reader)) {
    return Invalid(reader.fault().empty() ? "is not JSON" : reader.fault());
  }
  json root = reader.Take();
  Review review{.api_version = TextIn(root, {"apiVersion"}),
                .uid = TextIn(root, {"request", "uid"}),
                .operation = TextIn(root, {"request", "operation"}),
                .group = TextIn(root, {"request", "kind", "group"}),
                .kind = TextIn(root, {"request", "kind", "kind"}),
                .sub_resource = TextIn(root, {"request", "subResource"}),
                .name = TextIn(root, {"request", "name"})};
  if (TextIn(root, {"kind"}) != "AdmissionReview" ||
      (review.api_version != "admission.k8s.io/v1" &&
       review.api_version != "admission.k8s.io/v1beta1")) {
    return Invalid(absl::StrCat("is of kind ", Quoted(TextIn(root, {"kind"})), " in ",
                                Quoted(review.api_version),
                                ", not an AdmissionReview in admission.k8s.io/v1 or v1beta1"));
  }
  if (review.uid.empty()) return Invalid("has no request.uid");
  const json* dry_run = FindIn(root, {"request", "dryRun"});
  review.dry_run = dry_run != nullptr && *dry_run == true;
  if (const json* object = FindIn(root, {"request", "object"}); object != nullptr)
    review.object = *object;
  return review;
}

std::string WriteAnswer(const Review& review, const ReviewAnswer& answer) {
  json response{{"uid", review.uid}, {"allowed", true}};
  const auto text = [](const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
  };
  if (!answer.patch.empty()) {
    response["patchType"] = "JSONPatch";
    response["patch"] = absl::Base64Escape(text(answer.patch));
  }
  if (!answer.warnings.empty()) response["warnings"] = answer.warnings;
  for (const auto& [key, value] : answer.audit) response["auditAnnotations"][key] = value;
  return text({{"apiVersion", review.api_version},
               {"kind", "AdmissionReview"},
               {"response", std::move(response)}});
}

}  // namespace stepcast::admission
