#include "core/model/validate_profile.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

#include "core/base/bandwidth.h"
#include "core/base/message_text.h"
#include "core/model/dependency_cycle.h"

namespace stepcast {

namespace {

std::string Below(std::string_view path, const char* field) {
  return std::string(path).append(".").append(field);
}

void CheckCoefficient(std::string path, double value, double max, FaultList& faults) {
  if (!std::isfinite(value)) {
    faults.Add(std::move(path), absl::StrCat(value, " is not a finite number"));
  } else if (value < 0) {
    faults.Add(std::move(path), absl::StrCat(value, " is a negative time"));
  } else if (value > max) {
    faults.Add(std::move(path), absl::StrCat(value, " is above the maximum of ", max));
  }
}

}  // namespace

void CheckBandwidth(std::string_view path, double bytes_per_second, FaultList& faults) {
  if (!std::isfinite(bytes_per_second)) {
    faults.Add(std::string(path), absl::StrCat(bytes_per_second, " is not a finite number"));
  } else if (bytes_per_second < Bandwidth::kMinBytesPerSecond ||
             bytes_per_second > Bandwidth::kMaxBytesPerSecond) {
    faults.Add(std::string(path),
               absl::StrCat(bytes_per_second, " is not from ", Bandwidth::kMinBytesPerSecond,
                            " to ", Bandwidth::kMaxBytesPerSecond, " bytes per second"));
  }
}

void CheckParsingOverhead(std::string_view path, const ParsingOverhead& overhead,
                          FaultList& faults) {
  CheckCoefficient(Below(path, "seconds_per_byte"), overhead.seconds_per_byte,
                   kMaxOverheadSecondsPerByte, faults);
  CheckCoefficient(Below(path, "seconds"), overhead.seconds, kMaxOverheadSeconds, faults);
}

void CheckPlatform(std::string_view path, const Platform& platform, FaultList& faults) {
  CheckBandwidth(Below(path, "bandwidth_bytes_per_second"), platform.bandwidth_bytes_per_second,
                 faults);
  CheckParsingOverhead(Below(path, "parsing_overhead"), platform.parsing_overhead, faults);
  if (platform.window_bytes < 0)
    faults.Add(Below(path, "window_bytes"),
               absl::StrCat(platform.window_bytes, " is a negative size"));
}

void CheckBuckets(std::string_view path, const Buckets& buckets, FaultList& faults) {
  for (const auto& [field, bytes] :
       {std::pair("first_bytes", buckets.first_bytes), std::pair("cap_bytes", buckets.cap_bytes)}) {
    if (bytes < 1) faults.Add(Below(path, field), absl::StrCat(bytes, " is below 1"));
  }
}

namespace {

constexpr size_t kMaxCycleNames = 20;

class OperationRules {
 public:
  OperationRules(const ProfileDraft& draft, const ProfileLimits& limits, FaultList& faults)
      : draft_(draft),
        limits_(limits),
        faults_(faults),
        operation_count_(static_cast<int64_t>(draft.operations.size())),
        servers_known_(draft.parameter_servers >= 1 &&
                       draft.parameter_servers <= limits.max_parameter_servers) {}

  void Check() {
    if (operation_count_ == 0) faults_.Add("operations", "a profile needs at least one operation");
    if (operation_count_ > limits_.max_operations) {
      faults_.Add("operations",
                  OverLimit(operation_count_, "max_operations", limits_.max_operations));
      return;
    }
    index_of_name_.reserve(draft_.operations.size());
    for (size_t i = 0; i < draft_.operations.size() && !faults_.full(); ++i) CheckOperation(i);
    CheckDependencies();
  }

 private:
  void CheckOperation(size_t index) {
    const Operation& operation = draft_.operations[index];
    CheckName(index, operation.name);
    const Resource resource = operation.resource;
    const bool known = IsTransfer(resource) || resource == Resource::kWorker ||
                       resource == Resource::kParameterServer || resource == Resource::kCollective;
    if (!known)
      faults_.Add(PathOf(index, "resource"),
                  absl::StrCat(static_cast<int>(resource), " is not a known resource"));
    if (resource != Resource::kWorker) CheckServer(index, operation.parameter_server);
    if (known && resource != Resource::kWorker) CheckKind(index, resource);
    CheckSize(index, operation);
    CheckCollective(index, operation);
    CheckBytesOfWorker(index, "kept_bytes", operation.kept_bytes, "keeps", resource);
    CheckBytesOfWorker(index, "output_bytes", operation.output_bytes, "hands on", resource);
    CheckPassAndGroup(index, operation);
    if (operation.parameter.size() > limits_.max_name_bytes) {
      faults_.Add(PathOf(index, "parameter"),
                  TooLong(operation.parameter, "max_name_bytes", limits_.max_name_bytes));
    }
  }

  static absl::string_view Text(Resource resource) {
    const std::string_view name = ResourceName(resource);
    return {name.data(), name.size()};
  }

  // Workers meet at servers or in collectives; the first operation that does either says in which.
  void CheckKind(size_t index, Resource resource) {
    if (first_meeting_ < 0) first_meeting_ = static_cast<int64_t>(index);
    const Operation& first = draft_.operations[static_cast<size_t>(first_meeting_)];
    if ((first.resource == Resource::kCollective) == (resource == Resource::kCollective)) return;
    if (mixes_) return;
    mixes_ = true;
    faults_.Add(PathOf(index, "resource"),
                absl::StrCat(Text(resource), ", and operations[", first_meeting_, "] is ",
                             Text(first.resource),
                             ": a profile has either collectives or parameter servers"));
  }

  void CheckCollective(size_t index, const Operation& operation) {
    const bool is_collective = operation.resource == Resource::kCollective;
    if (operation.collective > Collective::kBroadcast) {
      faults_.Add(PathOf(index, "collective"), absl::StrCat(static_cast<int>(operation.collective),
                                                            " is not a known collective"));
    } else if (is_collective && operation.collective == Collective::kUnspecified) {
      faults_.Add(PathOf(index, "collective"), "a COLLECTIVE needs a kind");
    } else if (!is_collective && operation.collective != Collective::kUnspecified) {
      faults_.Add(PathOf(index, "collective"), "only a COLLECTIVE has a kind");
    }
    if (operation.stream != 0 && operation.resource != Resource::kWorker) {
      faults_.Add(PathOf(index, "stream"),
                  absl::StrCat(operation.stream, ": only a WORKER has streams"));
    } else if (operation.stream < 0 || operation.stream >= limits_.max_streams) {
      faults_.Add(PathOf(index, "stream"),
                  absl::StrCat(operation.stream, " is not the index of one of max_streams = ",
                               limits_.max_streams, " streams"));
    }
  }

  void CheckName(size_t index, const std::string& name) {
    if (name.empty()) {
      faults_.Add(PathOf(index, "name"), "an operation needs a name");
    } else if (name.size() > limits_.max_name_bytes) {
      faults_.Add(PathOf(index, "name"), TooLong(name, "max_name_bytes", limits_.max_name_bytes));
    } else {
      const auto [earlier, is_new] = index_of_name_.try_emplace(name, index);
      if (!is_new)
        faults_.Add(PathOf(index, "name"),
                    absl::StrCat(Quoted(name), " is already the name of operations[",
                                 earlier->second, "]"));
    }
  }

  void CheckServer(size_t index, int32_t server) {
    if (server < 0 || (servers_known_ && server >= draft_.parameter_servers)) {
      faults_.Add(PathOf(index, "parameter_server"),
                  absl::StrCat(server, " is not the index of one of ", draft_.parameter_servers,
                               " parameter servers"));
    }
  }

  void CheckSize(size_t index, const Operation& operation) {
    const int64_t size = operation.size_bytes;
    const bool is_collective = operation.resource == Resource::kCollective;
    const bool has_size = IsTransfer(operation.resource) || is_collective;
    if (size < 0) {
      faults_.Add(PathOf(index, "size_bytes"), absl::StrCat(size, " is a negative size"));
    } else if (has_size && size == 0) {
      faults_.Add(
          PathOf(index, "size_bytes"),
          absl::StrCat("0: a ", is_collective ? "collective" : "transfer", " needs a size"));
    } else if (!has_size && size > 0 && operation.resource != Resource::kUnspecified) {
      faults_.Add(PathOf(index, "size_bytes"),
                  absl::StrCat(size, ": only a transfer or a collective has a size"));
    } else if (size > limits_.max_transfer_bytes) {
      faults_.Add(PathOf(index, "size_bytes"),
                  OverLimit(size, "max_transfer_bytes", limits_.max_transfer_bytes));
    }
  }

  void CheckBytesOfWorker(size_t index, const char* field, int64_t bytes, const char* verb,
                          Resource resource) {
    if (bytes < 0) {
      faults_.Add(PathOf(index, field), absl::StrCat(bytes, " is a negative size"));
    } else if (bytes > kMaxKeptBytes) {
      faults_.Add(PathOf(index, field),
                  absl::StrCat(bytes, " is above the maximum of ", kMaxKeptBytes));
    } else if (bytes > 0 && resource != Resource::kWorker && resource != Resource::kUnspecified) {
      faults_.Add(PathOf(index, field), absl::StrCat(bytes, ": only a WORKER ", verb, " anything"));
    }
  }

  void CheckPassAndGroup(size_t index, const Operation& operation) {
    if (operation.pass > Pass::kDataLoading)
      faults_.Add(PathOf(index, "pass"),
                  absl::StrCat(static_cast<int>(operation.pass), " is not a known pass"));
    if (operation.group.size() > limits_.max_name_bytes)
      faults_.Add(PathOf(index, "group"),
                  TooLong(operation.group, "max_name_bytes", limits_.max_name_bytes));
    else if (!operation.group.empty() && operation.resource != Resource::kCollective)
      faults_.Add(PathOf(index, "group"),
                  absl::StrCat(Quoted(operation.group), ": only a COLLECTIVE has a group"));
  }

  void CheckDependencies() {
    int64_t dependencies = 0;
    for (const Operation& operation : draft_.operations)
      dependencies += static_cast<int64_t>(operation.waiting_for.size());
    if (dependencies > limits_.max_dependencies) {
      faults_.Add("operations", absl::StrCat("all waiting_for together: ",
                                             OverLimit(dependencies, "max_dependencies",
                                                       limits_.max_dependencies)));
      return;
    }
    std::vector<Listed> listed(draft_.operations.size());
    for (size_t i = 0; i < draft_.operations.size() && !faults_.full(); ++i)
      CheckWaitingFor(i, listed);
    CheckCycle();
  }

  // The last listing of an index: at waiting_for[position] of `by`.
  struct Listed {
    size_t by = SIZE_MAX;
    size_t position = 0;
  };

  void CheckWaitingFor(size_t index, std::vector<Listed>& listed) {
    const std::vector<int32_t>& waiting_for = draft_.operations[index].waiting_for;
    for (size_t at = 0; at < waiting_for.size(); ++at) {
      const int64_t before = waiting_for[at];
      if (before < 0 || before >= operation_count_) {
        faults_.Add(
            PathOf(index, "waiting_for", at),
            absl::StrCat(before, " is not the index of one of ", operation_count_, " operations"));
        continue;
      }
      Listed& last = listed[static_cast<size_t>(before)];
      if (last.by == index) {
        faults_.Add(PathOf(index, "waiting_for", at),
                    absl::StrCat(before, " is already listed at waiting_for[", last.position, "]"));
      } else if (static_cast<size_t>(before) == index) {
        faults_.Add(
            PathOf(index, "waiting_for"),
            absl::StrCat("a cycle: ", Quoted(draft_.operations[index].name), " waits for itself"));
      }
      last = {.by = index, .position = at};
    }
  }

  void CheckCycle() {
    const std::vector<int32_t> cycle = FindDependencyCycle(draft_.operations);
    if (cycle.empty()) return;
    std::string names;
    for (size_t i = 0; i < cycle.size() && i < kMaxCycleNames; ++i)
      absl::StrAppend(&names, NameOf(cycle[i]), " waits for ");
    absl::StrAppend(&names, cycle.size() > kMaxCycleNames ? "..." : NameOf(cycle[0]));
    faults_.Add(PathOf(static_cast<size_t>(cycle[0]), "waiting_for"),
                absl::StrCat("a cycle of ", cycle.size(), " operations: ", names));
  }

  std::string NameOf(int32_t index) const {
    return Quoted(draft_.operations[static_cast<size_t>(index)].name);
  }

  static std::string PathOf(size_t operation, const char* field) {
    return absl::StrCat("operations[", operation, "].", field);
  }
  static std::string PathOf(size_t operation, const char* field, size_t at) {
    return absl::StrCat(PathOf(operation, field), "[", at, "]");
  }

  const ProfileDraft& draft_;
  const ProfileLimits& limits_;
  FaultList& faults_;
  const int64_t operation_count_;
  const bool servers_known_;  // else a server's index can only be too small
  absl::flat_hash_map<absl::string_view, size_t> index_of_name_;
  int64_t first_meeting_ = -1;  // operation in which workers meet, of either kind
  bool mixes_ = false;          // and has been said to
};

// Adds a fault for each rule of ValidateProfile that an operation, or the graph of them all,
// breaks. Cost: linear in operations and dependencies; a number of them above its limit is one
// fault and costs nothing more.
void CheckOperations(const ProfileDraft& draft, const ProfileLimits& limits, FaultList& faults) {
  OperationRules(draft, limits, faults).Check();
}

void CheckText(std::string path, const std::string& text, const ProfileLimits& limits,
               FaultList& faults) {
  if (text.size() > limits.max_text_bytes)
    faults.Add(std::move(path), TooLong(text, "max_text_bytes", limits.max_text_bytes));
}

void CheckLabels(const ProfileDraft& draft, const ProfileLimits& limits, FaultList& faults) {
  if (draft.labels.size() > limits.max_labels) {
    faults.Add("labels", OverLimit(static_cast<int64_t>(draft.labels.size()), "max_labels",
                                   static_cast<int64_t>(limits.max_labels)));
    return;
  }
  for (const auto& [key, value] : draft.labels) {
    const std::string path = absl::StrCat("labels[", Quoted(key), "]");
    if (key.empty()) faults.Add(path, "a label needs a key");
    if (key.size() > limits.max_label_key_bytes)
      faults.Add(path, TooLong(key, "max_label_key_bytes", limits.max_label_key_bytes));
    CheckText(path, value, limits, faults);
  }
}

// Sizes must be what consecutive all-reduces of gradients add up to, or nobody could say what is in
// a bucket.
void CheckBucketSizes(const ProfileDraft& draft, FaultList& faults) {
  const std::vector<int64_t>& sizes = draft.buckets->sizes_bytes;
  size_t bucket = 0;
  int64_t left = sizes.front();
  for (size_t i = 0; i < draft.operations.size(); ++i) {
    const Operation& operation = draft.operations[i];
    if (!SumsGradients(operation)) continue;
    if (left == 0 && ++bucket < sizes.size()) left = sizes[bucket];
    left = bucket < sizes.size() ? left - operation.size_bytes : -1;
    if (left >= 0) continue;
    faults.Add(bucket < sizes.size() ? absl::StrCat("buckets.sizes_bytes[", bucket, "]")
                                     : "buckets.sizes_bytes",
               bucket < sizes.size()
                   ? absl::StrCat(sizes[bucket], " ends within operations[", i, "], ",
                                  Quoted(operation.name), ", of ", operation.size_bytes, " bytes")
                   : absl::StrCat("end before operations[", i, "], ", Quoted(operation.name)));
    return;
  }
  if (left != 0 || bucket + 1 != sizes.size()) {
    faults.Add(absl::StrCat("buckets.sizes_bytes[", bucket, "]"),
               absl::StrCat(sizes[bucket],
                            ": the all-reduces end before it is full, or before "
                            "the last bucket"));
  }
}

void CheckRecordedBuckets(const ProfileDraft& draft, FaultList& faults) {
  if (!draft.buckets.has_value()) return;
  const double share = draft.buckets->sent_share;
  if (!(share > 0 && share <= 1))
    faults.Add("buckets.sent_share", absl::StrCat(share, " is not above 0 and at most 1"));
  const bool has_sizes = !draft.buckets->sizes_bytes.empty();
  if (has_sizes == draft.buckets->rule.has_value()) {
    faults.Add("buckets", has_sizes ? "has both sizes and a rule: which of both?"
                                    : "has neither sizes nor a rule");
    return;
  }
  if (draft.buckets->rule.has_value()) {
    CheckBuckets("buckets.rule", *draft.buckets->rule, faults);
  } else {
    CheckBucketSizes(draft, faults);
  }
}

void CheckCount(const char* path, int64_t value, const char* limit, int64_t max,
                FaultList& faults) {
  if (value < 1) faults.Add(path, absl::StrCat(value, " is below 1"));
  if (value > max) faults.Add(path, OverLimit(value, limit, max));
}

}  // namespace

std::vector<Fault> ValidateProfile(const ProfileDraft& draft, const ProfileLimits& limits) {
  FaultList faults;
  CheckText("display_name", draft.display_name, limits, faults);
  CheckText("model", draft.model, limits, faults);
  CheckText("framework", draft.framework, limits, faults);
  CheckLabels(draft, limits, faults);
  CheckCount("batch_size", draft.batch_size, "max_batch_size", limits.max_batch_size, faults);
  CheckPlatform("platform", draft.platform, faults);
  CheckCount("parameter_servers", draft.parameter_servers, "max_parameter_servers",
             limits.max_parameter_servers, faults);
  const bool has_collectives =
      std::any_of(draft.operations.begin(), draft.operations.end(),
                  [](const Operation& o) { return o.resource == Resource::kCollective; });
  if (has_collectives && draft.parameter_servers > 1) {
    faults.Add("parameter_servers",
               absl::StrCat(draft.parameter_servers, ": a profile with collectives has none"));
  }
  CheckCount("devices_per_worker", draft.devices_per_worker, "max_devices_per_worker",
             kMaxDevicesPerWorker, faults);
  CheckOperations(draft, limits, faults);
  CheckSteps(draft, limits, faults);
  CheckRecordedBuckets(draft, faults);
  if (draft.recording.has_value()) CheckRecording(draft, has_collectives, limits, faults);
  // Not so of a NaN, either.
  if (const double idle = draft.device_idle_fraction.value_or(0); !(idle >= 0 && idle <= 1))
    faults.Add("device_idle_fraction", absl::StrCat(idle, " is not from 0 to 1"));
  return std::move(faults).Take();
}

}  // namespace stepcast
