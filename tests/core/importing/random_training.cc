#include "tests/core/importing/random_training.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/random.h"

namespace stepcast::testing {

namespace {

class Builder {
 public:
  Builder(uint64_t seed, const TrainingSize& size) : random_({seed}), size_(size) {}

  Profile Build() && {
    const auto servers = static_cast<int32_t>(1 + random_.Below(size_.servers));
    const uint64_t variables = 1 + random_.Below(size_.variables);
    std::vector<int32_t> bytes;
    for (uint64_t i = 0; i < variables; ++i)
      Download(i, i == 0 ? servers - 1
                         : static_cast<int32_t>(random_.Below(static_cast<uint64_t>(servers))));
    for (uint64_t i = 2 + random_.Below(10); i > 0; --i) Compute(i);
    for (uint64_t i = 0; i < variables; ++i) Update(i);
    ProfileDraft draft{
        .display_name = "m", .model = "m", .framework = "tensorflow", .batch_size = 8};
    draft.platform.bandwidth_bytes_per_second = 1e8;
    draft.parameter_servers = servers;
    for (uint64_t i = 1 + random_.Below(size_.steps); i > 0; --i) draft.steps.push_back(Step());
    draft.operations = std::move(operations_);
    return Profile::Create(std::move(draft)).value();
  }

 private:
  int32_t Add(Operation operation) {
    operations_.push_back(std::move(operation));
    return static_cast<int32_t>(operations_.size()) - 1;
  }

  // Some of the worker's operations and downloads; at least one of `from`, if there are any.
  std::vector<int32_t> Some(const std::vector<int32_t>& from) {
    std::vector<int32_t> some;
    for (const int32_t index : from) {
      if (random_.Below(3) == 0) some.push_back(index);
    }
    if (some.empty() && !from.empty()) some.push_back(from[random_.Below(from.size())]);
    return some;
  }

  void Download(uint64_t i, int32_t server) {
    const std::string variable = absl::StrCat("var", i);
    Operation download{.name = absl::StrCat("recv/", variable),
                       .resource = Resource::kDownlink,
                       .parameter_server = server,
                       .parameter = variable};
    download.size_bytes = 1 + static_cast<int64_t>(random_.Below(i == 0 ? 10 : 1 << 22));
    if (size_.reads && i > 0 && random_.Below(2) == 0) {
      const Operation read{.name = absl::StrCat("read/", variable),
                           .resource = Resource::kParameterServer,
                           .parameter_server = server,
                           .parameter = variable};
      download.waiting_for.push_back(Add(read));
    }
    downloads_.push_back(Add(download));
  }

  void Compute(uint64_t i) {
    std::vector<int32_t> before = Some(downloads_);
    for (const int32_t worker : worker_.empty() ? std::vector<int32_t>{} : Some(worker_))
      before.push_back(worker);
    std::sort(before.begin(), before.end());
    worker_.push_back(Add({.name = absl::StrCat("compute/", i),
                           .resource = Resource::kWorker,
                           .waiting_for = before}));
  }

  void Update(uint64_t i) {
    const Operation& download = operations_[static_cast<size_t>(downloads_[i])];
    const std::string variable = download.parameter;
    const int32_t server = download.parameter_server;
    const int64_t bytes = download.size_bytes;
    const int32_t upload = Add({.name = absl::StrCat("send/", variable),
                                .resource = Resource::kUplink,
                                .parameter_server = server,
                                .size_bytes = bytes,
                                .waiting_for = Some(worker_),
                                .parameter = variable});
    Add({.name = absl::StrCat("update/", variable),
         .resource = Resource::kParameterServer,
         .parameter_server = server,
         .waiting_for = {upload},
         .parameter = variable});
  }

  RecordedStep Step() {
    RecordedStep step;
    for (const Operation& operation : operations_) {
      int64_t ready = 0;
      for (const int32_t before : operation.waiting_for)
        ready = std::max(ready, step.end_ns[static_cast<size_t>(before)]);
      if (operation.name != "recv/var0")
        ready += static_cast<int64_t>(random_.Below(3)) * size_.tick_ns;
      step.start_ns.push_back(ready);
      step.end_ns.push_back(ready + static_cast<int64_t>(1 + random_.Below(5000)) * size_.tick_ns);
    }
    return step;
  }

  Random random_;
  const TrainingSize& size_;
  std::vector<Operation> operations_;
  std::vector<int32_t> downloads_;
  std::vector<int32_t> worker_;
};

}  // namespace

Profile RandomTraining(uint64_t seed, const TrainingSize& size) {
  return Builder(seed, size).Build();
}

std::vector<std::string> Described(const Profile& profile) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < profile.operations().size(); ++i) {
    const Operation& operation = profile.operations()[i];
    std::vector<std::string> before;
    for (const int32_t index : operation.waiting_for)
      before.push_back(profile.operations()[static_cast<size_t>(index)].name);
    std::sort(before.begin(), before.end());
    std::string line =
        absl::StrCat(operation.name, " ", static_cast<int>(operation.resource), " server ",
                     operation.parameter_server, " ", operation.size_bytes, " bytes of ",
                     operation.parameter, " after");
    for (const std::string& name : before) absl::StrAppend(&line, " ", name);
    for (const RecordedStep& step : profile.steps())
      absl::StrAppend(&line, " [", step.start_ns[i], ",", step.end_ns[i], "]");
    lines.push_back(std::move(line));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::string Told(const absl::Status& status) {
  const ErrorDetails details = DetailsOf(status);
  std::string told = details.reason;
  for (const Fault& fault : details.faults)
    absl::StrAppend(&told, " ", fault.field, ": ", fault.description);
  return told;
}

}  // namespace stepcast::testing
