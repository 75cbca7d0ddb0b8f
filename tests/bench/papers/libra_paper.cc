#include "tests/bench/papers/libra_paper.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_format.h"

#include "core/advise/group_rules.h"
#include "core/advise/thread_allocation.h"
#include "core/base/index.h"
#include "core/base/stop_check.h"
#include "tests/bench/papers/published_groups.h"

namespace stepcast::bench {

namespace {

constexpr int64_t kBytesPerParameter = 4;
// Channels of NCCL, chosen with the other constants.
constexpr int32_t kChannels = 6;

// Layers as they are declared, of one example.
class Network {
 public:
  void Convolution(int64_t kernel, int64_t in, int64_t out, int64_t size) {
    Add(kernel * kernel * in * out + 2 * out, kernel * kernel * in * out * size * size);
  }
  // A convolution of each channel, then one of single points.
  void Separable(int64_t in, int64_t out, int64_t size) {
    Add(9 * in + in * out + 2 * out, (9 * in + in * out) * size * size);
  }
  void Dense(int64_t in, int64_t out, int64_t times) { Add(in * out + out, in * out * times); }
  void Add(int64_t parameters, int64_t products) {
    layers_.push_back({static_cast<double>(products), parameters * kBytesPerParameter});
  }

  PaperModel Model(std::string name, int32_t batch_size) const {
    PaperModel model{.name = std::move(name)};
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
      // A multiplication and an addition a product; backward twice what forward has.
      const double forward = 2 * layer->seconds * batch_size / kChosenFlopsPerSecond;
      model.forward_seconds += forward;
      model.layers.push_back({.seconds = 2 * forward, .bytes = layer->bytes});
    }
    return model;
  }

 private:
  std::vector<BackwardLayer> layers_;  // seconds: products
};

std::vector<TensorGroup> WithThreads(const std::vector<BackwardLayer>& layers,
                                     const std::vector<int32_t>& gradients_by_group,
                                     absl::FunctionRef<int32_t(double bytes)> threads_of) {
  std::vector<TensorGroup> groups;
  int32_t next = 0;
  for (const int32_t count : LayersByGroup(layers, gradients_by_group)) {
    double bytes = 0;
    for (int32_t i = next; i < next + count; ++i)
      bytes += static_cast<double>(layers[Index(i)].bytes);
    groups.push_back({.first = next, .count = count, .threads = threads_of(bytes)});
    next += count;
  }
  return groups;
}

int32_t NcclsChoice(double bytes) { return NcclThreads(bytes, kChannels); }

// Those that end the earliest beside nothing, as the paper takes MG-WFBP's to: where the startup is
// longer than layers are, MG-WFBP's own rule merges everything.
std::vector<int32_t> MergedGroups(const PaperModel& model, const OverlapSetting& setting,
                                  absl::FunctionRef<int32_t(double bytes)> threads_of) {
  const auto alone = [&](double bytes) {
    return RatesOf(setting, threads_of(bytes)).AloneSeconds(bytes);
  };
  return EarliestEndGroups(GradientsOf(model.layers), alone, NeverStop).value();
}

}  // namespace

double PaperModel::BackwardSeconds() const {
  double seconds = 0;
  for (const BackwardLayer& layer : layers) seconds += layer.seconds;
  return seconds;
}

double PaperModel::Bytes() const {
  double bytes = 0;
  for (const BackwardLayer& layer : layers) bytes += static_cast<double>(layer.bytes);
  return bytes;
}

PaperModel Xception(int32_t batch_size) {
  Network network;
  network.Convolution(3, 3, 32, 149);
  network.Convolution(3, 32, 64, 147);
  const auto block = [&](int64_t in, int64_t middle, int64_t out, int64_t size) {
    network.Separable(in, middle, size);
    network.Separable(middle, out, size);
    network.Convolution(1, in, out, size / 2);
  };
  block(64, 128, 128, 147);
  block(128, 256, 256, 74);
  block(256, 728, 728, 37);
  for (int i = 0; i < 24; ++i) network.Separable(728, 728, 19);
  block(728, 728, 1024, 19);
  network.Separable(1024, 1536, 10);
  network.Separable(1536, 2048, 10);
  network.Dense(2048, 1000, 1);
  return network.Model("Xception", batch_size);
}

PaperModel ResNet152(int32_t batch_size) {
  Network network;
  network.Convolution(7, 3, 64, 112);
  int64_t in = 64;
  int64_t width = 64;
  int64_t size = 56;
  for (const int blocks : {3, 8, 36, 3}) {
    for (int block = 0; block < blocks; ++block) {
      network.Convolution(1, in, width, size);
      network.Convolution(3, width, width, size);
      network.Convolution(1, width, 4 * width, size);
      if (block == 0) network.Convolution(1, in, 4 * width, size);
      in = 4 * width;
    }
    width *= 2;
    size /= 2;
  }
  network.Dense(2048, 1000, 1);
  return network.Model("ResNet-152", batch_size);
}

PaperModel Vgg16(int32_t batch_size) {
  Network network;
  int64_t in = 3;
  int64_t size = 224;
  for (const auto& [layers, out] :
       std::vector<std::pair<int, int64_t>>{{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}}) {
    for (int layer = 0; layer < layers; ++layer) {
      network.Convolution(3, in, out, size);
      in = out;
    }
    size /= 2;
  }
  network.Dense(7 * 7 * 512, 4096, 1);
  network.Dense(4096, 4096, 1);
  network.Dense(4096, 1000, 1);
  return network.Model("VGG-16", batch_size);
}

PaperModel BertBase(int32_t batch_size) {
  constexpr int64_t kTextTokens = 128;
  constexpr int64_t kWidth = 768;
  Network network;
  network.Add((30522 + 512 + 2) * kWidth, kTextTokens * kWidth);
  for (int block = 0; block < 12; ++block) {
    for (int projection = 0; projection < 3; ++projection)
      network.Dense(kWidth, kWidth, kTextTokens);
    network.Add(kWidth * kWidth + 3 * kWidth,
                kWidth * kWidth * kTextTokens + 2 * kTextTokens * kTextTokens * kWidth);
    network.Dense(kWidth, 4 * kWidth, kTextTokens);
    network.Dense(4 * kWidth, kWidth, kTextTokens);
  }
  network.Dense(kWidth, kWidth, kTextTokens);
  return network.Model("BERT-base", batch_size);
}

std::vector<PaperModel> PaperModels() {
  return {Xception(32), ResNet152(32), Vgg16(128), BertBase(32)};
}

OverlapSetting ChosenSetting(int32_t nodes) {
  OverlapSetting setting{.workers = nodes, .latency_seconds = 24.6e-6};
  const TransferRate rate{.gamma1 = 3.43e9, .gamma2 = 0.555 * 3.43e9, .gamma3 = 0.022};
  setting.contention = {.alpha1 = 1, .alpha2 = 1.3445e-4, .overlapped = rate, .alone = rate};
  return setting;
}

std::vector<int32_t> PaperThreads() { return {128, 256, 512, 1024, 2048, 4096}; }

double MergedSeconds(const PaperModel& model, const OverlapSetting& setting, int32_t threads) {
  const auto fixed = [&](double) { return threads; };
  const std::vector<int32_t> counts = MergedGroups(model, setting, fixed);
  return BackwardTimeOf(model.layers, WithThreads(model.layers, counts, fixed), setting).seconds;
}

PaperTimes TimesOf(const PaperModel& model, const OverlapSetting& setting) {
  return BreakdownOf(model, setting).seconds;
}

PaperBreakdown BreakdownOf(const PaperModel& model, const OverlapSetting& setting) {
  PaperBreakdown made;
  const auto tell = [&](double PaperTimes::*method, const std::vector<TensorGroup>& groups,
                        const OverlapSetting& of) {
    const BackwardTime time = BackwardTimeOf(model.layers, groups, of);
    made.seconds.*method = time.seconds;
    made.residual.*method = time.Exposed();
    for (const OverlapStage& stage : time.stages)
      made.communication.*method += stage.overlapped + stage.communication;
  };
  const double bytes = model.Bytes();
  const double alone = RatesOf(setting, NcclsChoice(bytes)).AloneSeconds(bytes);
  made.seconds.synchronous = model.BackwardSeconds() + alone;
  made.residual.synchronous = made.communication.synchronous = alone;
  const HorovodTime horovod = HorovodBackward(model.layers, setting, {}, NcclsChoice);
  made.seconds.horovod = horovod.seconds;
  made.residual.horovod = horovod.exposed_seconds;
  for (const HorovodBuffer& buffer : horovod.buffers)
    made.communication.horovod += buffer.end_seconds - buffer.begin_seconds;
  const std::vector<int32_t> merged = MergedGroups(model, setting, NcclsChoice);
  const std::vector<TensorGroup> groups = WithThreads(model.layers, merged, NcclsChoice);
  tell(&PaperTimes::merged, groups, setting);
  const AllocationOptions options{.threads = PaperThreads(), .max_layers = 100};
  const ThreadAllocation libra_m =
      AllocateThreadsToGroups(model.layers, LayersByGroup(model.layers, merged), setting, options,
                              NeverStop)
          .value();
  tell(&PaperTimes::libra_m, libra_m.groups, setting);
  tell(&PaperTimes::libra,
       AllocateThreads(model.layers, setting, options, NeverStop).value().groups, setting);
  OverlapSetting free = setting;
  free.contention.alpha2 = 0;
  free.contention.overlapped = free.contention.alone;
  tell(&PaperTimes::no_contention, groups, free);
  return made;
}

namespace {

constexpr double PaperTimes::*kMethods[] = {&PaperTimes::synchronous, &PaperTimes::horovod,
                                            &PaperTimes::merged,      &PaperTimes::libra_m,
                                            &PaperTimes::libra,       &PaperTimes::no_contention};

}  // namespace

std::string LibraBreakdownTable() {
  std::string table =
      "| model | SE | H-N | MG-N | LIBRA-M | LIBRA | MG-CF |\n|---|---|---|---|---|---|---|\n";
  for (const PaperModel& model : PaperModels()) {
    const PaperBreakdown told = BreakdownOf(model, ChosenSetting(8));
    absl::StrAppendFormat(&table, "| %s |", model.name);
    for (const auto method : kMethods) {
      const double residual = told.residual.*method;
      absl::StrAppendFormat(&table, " %.1f + %.1f (%.1f) |",
                            1e3 * (told.seconds.*method - residual), 1e3 * residual,
                            1e3 * told.communication.*method);
    }
    table += '\n';
  }
  return table;
}

std::string LibraScalingTable() {
  std::string table =
      "| model | nodes | SE | H-N | MG-N | LIBRA-M | LIBRA |\n|---|---|---|---|---|---|---|\n";
  for (const PaperModel& model : PaperModels()) {
    for (int32_t nodes = 16; nodes <= 2048; nodes *= 2) {
      const PaperTimes times = TimesOf(model, ChosenSetting(nodes));
      absl::StrAppendFormat(&table, "| %s | %d |", model.name, nodes);
      for (const auto method : kMethods) {
        if (method == &PaperTimes::no_contention) continue;
        absl::StrAppendFormat(&table, " %.3f |",
                              (model.forward_seconds + model.BackwardSeconds()) /
                                  (model.forward_seconds + times.*method));
      }
      table += '\n';
    }
  }
  return table;
}

std::string LibraTable() {
  std::string table =
      "| model | nodes | H-N | MG-N | LIBRA-M | LIBRA | MG-CF | LIBRA over H-N | over MG-N |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (const PaperModel& model : PaperModels()) {
    for (const int32_t nodes : {8, 16, 64, 256, 2048}) {
      const PaperTimes times = TimesOf(model, ChosenSetting(nodes));
      const auto gain = [&](double slower, double faster) {
        return 100 * ((model.forward_seconds + slower) / (model.forward_seconds + faster) - 1);
      };
      absl::StrAppendFormat(&table, "| %s | %d |", model.name, nodes);
      for (const double seconds :
           {times.horovod, times.merged, times.libra_m, times.libra, times.no_contention})
        absl::StrAppendFormat(&table, " %+.1f %% |", gain(times.synchronous, seconds));
      absl::StrAppendFormat(&table, " %+.1f %% | %+.1f %% |\n", gain(times.horovod, times.libra),
                            gain(times.merged, times.libra));
    }
  }
  return table;
}

}  // namespace stepcast::bench
