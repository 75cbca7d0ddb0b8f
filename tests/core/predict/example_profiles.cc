#include "tests/core/predict/example_profiles.h"

#include <cstddef>
#include <utility>

#include "core/base/random.h"

namespace stepcast::testing {

namespace {

// Makes the operations of a NetworkShape.
class NetworkBuilder {
 public:
  NetworkBuilder(uint64_t seed, const NetworkShape& shape) : random_{seed, 91}, shape_(shape) {}

  std::vector<ExampleOperation> Build() {
    std::vector<int32_t> downloads(static_cast<size_t>(shape_.layers));
    for (int32_t i = 0; i < shape_.layers; ++i) {
      const int32_t layer = shape_.downloads_reversed ? shape_.layers - 1 - i : i;
      downloads[static_cast<size_t>(layer)] = Add("recv", layer, Resource::kDownlink, {});
    }
    std::vector<int32_t> forward;
    for (int32_t layer = 0; layer < shape_.layers; ++layer) {
      std::vector<int32_t> before{downloads[static_cast<size_t>(layer)]};
      if (layer > 0) before.push_back(forward.back());
      forward.push_back(Add("forward", layer, Resource::kWorker, std::move(before)));
    }
    int32_t last = forward.back();
    for (int32_t layer = shape_.layers - 1; layer >= 0 && shape_.training; --layer) {
      std::vector<int32_t> before{last};
      if (layer < shape_.layers - 1) before.push_back(forward[static_cast<size_t>(layer)]);
      last = Add("backward", layer, Resource::kWorker, std::move(before));
      const int32_t upload = Add("send", layer, Resource::kUplink, {last});
      Add("update", layer, Resource::kParameterServer, {upload});
    }
    return std::move(operations_);
  }

 private:
  int32_t Add(const char* kind, int32_t layer, Resource resource, std::vector<int32_t> before) {
    operations_.push_back(
        {.name = kind + std::to_string(layer),
         .resource = resource,
         .time_ns = static_cast<int64_t>(1000 + random_.Below(1'000'000)),
         .waiting_for = std::move(before),
         .parameter_server = resource == Resource::kWorker ? 0 : layer % shape_.servers});
    return static_cast<int32_t>(operations_.size()) - 1;
  }

  Random random_;
  const NetworkShape shape_;
  std::vector<ExampleOperation> operations_;
};

}  // namespace

ProfileDraft DraftOf(const std::vector<ExampleOperation>& operations) {
  ProfileDraft draft;
  draft.batch_size = 1;
  draft.platform.bandwidth_bytes_per_second = kNanosecondPerByte;
  draft.steps.resize(1);
  for (const ExampleOperation& example : operations) {
    draft.operations.push_back({.name = example.name,
                                .resource = example.resource,
                                .parameter_server = example.parameter_server,
                                .size_bytes = IsTransfer(example.resource) ? example.time_ns : 0,
                                .waiting_for = example.waiting_for});
    draft.steps[0].start_ns.push_back(0);
    draft.steps[0].end_ns.push_back(example.time_ns);
  }
  return draft;
}

Profile ProfileOf(const GoldenOrderCase& golden) {
  std::vector<ExampleOperation> operations;
  for (const GoldenOperation& operation : golden.operations) {
    operations.push_back({.name = operation.name,
                          .resource = operation.resource,
                          .time_ns = operation.time_ns,
                          .waiting_for = operation.waiting_for});
  }
  return Profile::Create(DraftOf(operations)).value();
}

Profile NetworkProfile(uint64_t seed, const NetworkShape& shape) {
  ProfileDraft draft = DraftOf(NetworkBuilder(seed, shape).Build());
  draft.parameter_servers = shape.servers;
  Random random{seed, 92};
  while (draft.steps.size() < static_cast<size_t>(shape.steps)) {
    RecordedStep step = draft.steps.front();
    for (int64_t& end : step.end_ns) end += static_cast<int64_t>(random.Below(500'000));
    draft.steps.push_back(std::move(step));
  }
  return Profile::Create(std::move(draft)).value();
}

Profile DownloadThenCompute(int64_t bytes, int64_t computation_ns) {
  return Profile::Create(
             DraftOf({{.name = "recv", .resource = Resource::kDownlink, .time_ns = bytes},
                      {.name = "compute",
                       .resource = Resource::kWorker,
                       .time_ns = computation_ns,
                       .waiting_for = {0}}}))
      .value();
}

}  // namespace stepcast::testing
