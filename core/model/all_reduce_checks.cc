#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

#include "core/base/index.h"
#include "core/base/message_text.h"
#include "core/model/all_reduce.h"
#include "core/model/validate_profile.h"

namespace stepcast {

namespace {

class GroupsCheck {
 public:
  GroupsCheck(const Profile& profile, const std::string& path, FaultList& faults)
      : path_(path), faults_(faults) {
    for (const Operation& operation : profile.operations()) {
      Known& entry = known_[operation.name];
      if (!IsUploadedOrSummed(profile, operation)) continue;
      entry.gradient = static_cast<int32_t>(gradients_.size());
      gradients_.push_back(&operation.name);
    }
  }

  void Run(const std::vector<GradientGroup>& groups) {
    bool all_known = true;
    for (size_t i = 0; i < groups.size(); ++i) {
      const std::string operations = absl::StrCat(path_, "[", i, "].operations");
      if (groups[i].operations.empty()) {
        faults_.Add(operations, "empty: a group has one gradient at least");
        all_known = false;
      }
      for (size_t j = 0; j < groups[i].operations.size(); ++j)
        all_known = Take(groups[i].operations[j], i, j, operations) && all_known;
    }
    if (!all_known) return;
    if (named_.size() < gradients_.size()) {
      TellMissing();
    } else {
      TellOrder();
    }
  }

 private:
  struct Known {
    int32_t gradient = -1;  // -1: none
    std::string seen_at;
  };
  struct Named {
    std::string path;
    int32_t gradient = 0;
  };

  // False, and a fault, where the name is of no gradient, or was there before.
  bool Take(const std::string& name, size_t group, size_t place, const std::string& operations) {
    const std::string path = absl::StrCat(operations, "[", place, "]");
    const auto found = known_.find(name);
    std::string fault;
    if (found == known_.end()) {
      fault = " is not an operation of the profile";
    } else if (found->second.gradient < 0) {
      fault = " is not a gradient that is all-reduced";
    } else if (!found->second.seen_at.empty()) {
      fault = absl::StrCat(" is ", found->second.seen_at, ", too: in which of both?");
    }
    if (!fault.empty()) {
      faults_.Add(path, Quoted(name) + fault);
      return false;
    }
    found->second.seen_at = absl::StrCat("groups[", group, "].operations[", place, "]");
    named_.push_back({.path = path, .gradient = found->second.gradient});
    return true;
  }

  void TellMissing() {
    const auto missing =
        std::find_if(gradients_.begin(), gradients_.end(),
                     [&](const std::string* name) { return known_.at(*name).seen_at.empty(); });
    faults_.Add(path_, absl::StrCat(Quoted(**missing), " is in none of them, one of ",
                                    gradients_.size() - named_.size(), " such of ",
                                    gradients_.size(), " gradients"));
  }

  void TellOrder() {
    for (size_t k = 0; k < named_.size(); ++k) {
      if (Index(named_[k].gradient) == k) continue;
      faults_.Add(named_[k].path,
                  absl::StrCat(Quoted(*gradients_[Index(named_[k].gradient)]), " stands where ",
                               Quoted(*gradients_[k]), " does in graph order"));
      return;
    }
  }

  const std::string& path_;
  FaultList& faults_;
  absl::flat_hash_map<std::string_view, Known> known_;
  std::vector<const std::string*> gradients_;
  std::vector<Named> named_;
};

}  // namespace

bool IsUploadedOrSummed(const Profile& profile, const Operation& operation) {
  return profile.has_collectives() ? SumsGradients(operation)
                                   : operation.resource == Resource::kUplink;
}

std::string WhyNoOtherBuckets(const Profile& profile) {
  const ProfileDraft& content = profile.content();
  const bool are_unknown = content.framework == kPytorchFramework && content.buckets.has_value() &&
                           std::any_of(content.operations.begin(), content.operations.end(),
                                       [](const Operation& operation) {
                                         return operation.collective == Collective::kAllReduce &&
                                                operation.parameter.empty() &&
                                                operation.name.starts_with("bucket/");
                                       });
  if (!are_unknown) return "";
  return absl::StrCat(
      "the recording tells the sizes of its ", content.buckets->sizes_bytes.size(),
      " buckets and not of the gradients in them, so that no others can be made: record with "
      "record_shapes=True and without a hook that compresses, or ask for them as recorded");
}

void CheckGroups(const Profile& profile, const std::vector<GradientGroup>& groups,
                 const std::string& path, FaultList& faults) {
  GroupsCheck(profile, path, faults).Run(groups);
}

namespace {

auto PlaceOf(const MeasuredCollective& point) {
  return std::tuple(point.kind, point.workers, point.size_bytes);
}

void CheckPoint(const MeasuredCollective& point, const std::string& path, FaultList& faults) {
  const auto at_least = [&](const char* field, int64_t value, int64_t least, int64_t most) {
    faults.AddIf(value < least, path + field, value, " is not from ", least, " to ", most);
  };
  if (point.kind == Collective::kUnspecified)
    faults.Add(path + ".kind", "a measured collective needs a kind");
  at_least(".workers", point.workers, 2, INT32_MAX);
  at_least(".size_bytes", point.size_bytes, 1, INT64_MAX);
  faults.AddIf(!(point.seconds > 0 && std::isfinite(point.seconds)), path + ".seconds",
               point.seconds, " is not a time above 0");
}

}  // namespace

int32_t NearestMeasured(const std::vector<MeasuredCollective>& points, Collective kind,
                        int32_t workers) {
  const auto distance = [&](int32_t other) {
    return std::abs(std::log(static_cast<double>(other) / workers));
  };
  int32_t nearest = 0;
  for (const MeasuredCollective& point : points) {
    if (point.kind == kind && (nearest == 0 || distance(point.workers) < distance(nearest)))
      nearest = point.workers;
  }
  return nearest;
}

std::vector<MeasuredCollective> CheckedPoints(std::vector<MeasuredCollective> points, bool are_used,
                                              const std::string& path, int64_t max_points,
                                              FaultList& faults) {
  const auto count = static_cast<int64_t>(points.size());
  if (count > max_points) {
    faults.Add(path, OverLimit(count, "max_measured", max_points));
    return {};
  }
  for (size_t i = 0; i < points.size(); ++i)
    CheckPoint(points[i], absl::StrCat(path, "[", i, "]"), faults);
  std::sort(points.begin(), points.end(),
            [](const auto& a, const auto& b) { return PlaceOf(a) < PlaceOf(b); });
  const auto twice =
      std::adjacent_find(points.begin(), points.end(),
                         [](const auto& a, const auto& b) { return PlaceOf(a) == PlaceOf(b); });
  if (twice != points.end()) {
    faults.Add(path,
               absl::StrCat("two times, ", twice->seconds, " and ", twice[1].seconds, " s, for ",
                            twice->size_bytes, " bytes of ", twice->workers, " workers"));
    return points;
  }
  const bool has_all_reduce = std::any_of(points.begin(), points.end(), [](const auto& point) {
    return point.kind == Collective::kAllReduce;
  });
  if (are_used && !points.empty() && !has_all_reduce)
    faults.Add(path, "has no ALL_REDUCE, from which the others would follow");
  return points;
}

}  // namespace stepcast
