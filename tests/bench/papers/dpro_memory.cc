#include "tests/bench/papers/dpro_memory.h"

#include <cmath>
#include <functional>
#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/advise/memory.h"
#include "core/advise/recomputation.h"
#include "core/advise/strategy_query.h"
#include "core/base/index.h"
#include "core/model/made_steps.h"
#include "core/predict/throughput.h"
#include "core/zoo/model_zoo.h"
#include "tests/bench/papers/cluster.h"
#include "tests/bench/papers/valid.h"

namespace stepcast::bench {

namespace {

constexpr double kGigabyte = 1e9;
constexpr int64_t kBytesPerElement = 4;
// Copies of a parameter with plain SGD under Horovod.
constexpr double kSgdCopies = 3;

// Outputs of a network of images.
class Keras {
 public:
  Keras(std::string name, double parameters)
      : job_{.name = std::move(name), .parameters = parameters, .copies = kSgdCopies} {}

  void Add(int64_t elements, bool needed) { job_.Add(Next("output"), elements, needed); }
  // ReLU writes over the batch norm's output, which no gradient needs.
  void NormalizedConvolution(int64_t channels, int64_t size, bool relu = true) {
    const int64_t elements = channels * size * size;
    job_.Add(Next("conv"), elements, true);
    job_.Add(Next("norm"), elements, false);
    if (relu) job_.Add(Next("relu"), elements, true);
  }
  void Image(int64_t channels, int64_t size) { Add(channels * size * size, true); }

  TensorFlowJob job() && { return std::move(job_); }

 private:
  std::string Next(const char* kind) const { return absl::StrCat(kind, job_.outputs.size()); }

  TensorFlowJob job_;
};

}  // namespace

// keras.applications of TensorFlow 1.15: biases in place, two paddings, stride in a block's first
// convolution.
TensorFlowJob KerasResNet50() {
  Keras out("resnet50", 25.58e6);
  out.Image(3, 230);
  out.NormalizedConvolution(64, 112);
  out.Image(64, 114);
  out.Image(64, 56);
  int64_t width = 64;
  int64_t size = 56;
  for (const int blocks : {3, 4, 6, 3}) {
    for (int block = 0; block < blocks; ++block) {
      if (block == 0) out.NormalizedConvolution(4 * width, size, /*relu=*/false);
      out.NormalizedConvolution(width, size);
      out.NormalizedConvolution(width, size);
      out.NormalizedConvolution(4 * width, size, /*relu=*/false);
      out.Add(4 * width * size * size, false);
      out.Image(4 * width, size);
    }
    width *= 2;
    size /= 2;
  }
  out.Add(2048, true);
  out.Add(1000, true);
  return std::move(out).job();
}

TensorFlowJob KerasVgg16() {
  Keras out("vgg16", 138.36e6);
  out.Image(3, 224);
  int64_t size = 224;
  for (const auto& [channels, convolutions] :
       {std::pair(64, 2), std::pair(128, 2), std::pair(256, 3), std::pair(512, 3),
        std::pair(512, 3)}) {
    for (int i = 0; i < convolutions; ++i) {
      out.Add(channels * size * size, false);
      out.Image(channels, size);
    }
    size /= 2;
    out.Image(channels, size);
  }
  for (const int64_t width : {4096, 4096, 1000}) out.Add(width, true);
  return std::move(out).job();
}

// Without an auxiliary head; an average's gradient needs no values.
TensorFlowJob KerasInceptionV3(int64_t pixels) {
  Keras out(absl::StrCat("inception_v3, ", pixels), 23.82e6);
  const auto whole = [](int64_t size, int64_t stride) { return (size - 3) / stride + 1; };
  const auto all = [&](std::initializer_list<int64_t> channels, int64_t size) {
    for (const int64_t each : channels) out.NormalizedConvolution(each, size);
  };
  out.Image(3, pixels);
  int64_t size = whole(pixels, 2);
  all({32}, size);
  size = whole(size, 1);
  all({32, 64}, size);
  size = whole(size, 2);
  out.Image(64, size);
  all({80}, size);
  size = whole(size, 1);
  all({192}, size);
  size = whole(size, 2);
  out.Image(192, size);
  int64_t channels = 192;
  for (const int64_t pooled : {32, 64, 64}) {
    all({64, 48, 64, 64, 96, 96}, size);
    out.Image(channels, size);
    all({pooled}, size);
    channels = 64 + 64 + 96 + pooled;
    out.Image(channels, size);
  }
  all({64, 96}, size);
  size = whole(size, 2);
  all({384, 96}, size);
  out.Image(channels, size);
  channels += 384 + 96;
  out.Image(channels, size);
  for (const int64_t narrow : {128, 160, 160, 192}) {
    all({192, narrow, narrow, 192, narrow, narrow, narrow, narrow, 192}, size);
    out.Image(channels, size);
    all({192}, size);
    channels = 768;
    out.Image(channels, size);
  }
  all({192, 192, 192, 192}, size);
  size = whole(size, 2);
  all({320, 192}, size);
  out.Image(channels, size);
  channels = 1280;
  out.Image(channels, size);
  for (int i = 0; i < 2; ++i) {
    all({320, 384, 384, 384, 448, 384, 384, 384}, size);
    out.Image(768, size);
    out.Image(768, size);
    out.Image(channels, size);
    all({192}, size);
    channels = 2048;
    out.Image(channels, size);
  }
  out.Add(2048, true);
  out.Add(1000, true);
  return std::move(out).job();
}

namespace {

constexpr int64_t kTokens = 128;
constexpr int64_t kHidden = 768;
constexpr int64_t kText = kTokens * kHidden;
constexpr int64_t kVocabulary = 30'522;
constexpr int64_t kPredicted = 20;  // tokens of a text

class Bert {
 public:
  // Dropout keeps its mask in float32, GELU is of parts (power, sum, hyperbolic tangent, products),
  // layer normalization keeps its input and what it scales.
  TensorFlowJob Build() && {
    job_ = {.name = "bert_base", .parameters = 110.1e6, .copies = 6};
    Product("embedding", kText, 0, (kVocabulary + 512 + 2) * kHidden, false);
    for (const char* part : {"positions", "types"}) job_.Add(part, kText, false);
    Normalize("embedding");
    Dropout("embedding", kText, true);
    for (int layer = 0; layer < 12; ++layer) Layer(absl::StrCat("layer", layer, "/"));
    constexpr int64_t kLogits = kPredicted * kVocabulary;
    Product("logits/matmul", kLogits, 2.0 * kLogits * kHidden, 0, false);
    job_.Add("logits/biased", kLogits, false);
    job_.Add("logits/log_softmax", kLogits, true);
    job_.Add("loss", kLogits, true);
    return std::move(job_);
  }

 private:
  void Product(std::string name, int64_t elements, double flops, int64_t parameters, bool needed) {
    job_.Add(std::move(name), elements, needed);
    job_.outputs.back().flops = flops;
    job_.outputs.back().parameters = parameters;
  }
  void Dense(const std::string& name, int64_t from, int64_t to, bool needed = false) {
    Product(name + "/dense", kTokens * to, 2.0 * kTokens * static_cast<double>(from * to),
            from * to + to, needed);
  }
  // Of a sum, which BERT has before it.
  void Normalize(const std::string& name) {
    job_.Add(name + "/add", kText, true);
    job_.Add(name + "/normalized", kText, true);
    job_.Add(name + "/norm_scaled", kText, false);
    job_.Add(name + "/norm", kText, true);
  }
  void Dropout(const std::string& name, int64_t elements, bool needed) {
    job_.Add(name + "/mask", elements, true);
    job_.Add(name + "/mask_scaled", elements, false);
    job_.Add(name + "/dropout", elements, needed);
  }
  void Layer(const std::string& name) {
    constexpr int64_t kScores = int64_t{12} * kTokens * kTokens;
    constexpr double kAttentionFlops = 2.0 * kTokens * kTokens * kHidden;
    for (const char* part : {"query", "key", "value"}) {
      Dense(name + part, kHidden, kHidden);
      job_.Add(name + part + "/transposed", kText, true);
    }
    Product(name + "scores/matmul", kScores, kAttentionFlops, 0, false);
    for (const char* part : {"scaled", "masked"}) job_.Add(name + "scores/" + part, kScores, false);
    job_.Add(name + "scores/softmax", kScores, true);
    Dropout(name + "scores", kScores, true);
    Product(name + "values/matmul", kText, kAttentionFlops, 0, false);
    job_.Add(name + "values/transposed", kText, true);
    Dense(name + "output", kHidden, kHidden);
    Dropout(name + "output", kText, false);
    Normalize(name + "output");
    Dense(name + "wide", kHidden, 4 * kHidden, true);
    for (const auto& [part, needed] :
         {std::pair("power", false), std::pair("scaled", false), std::pair("inner", false),
          std::pair("scaled_inner", false), std::pair("tanh", true), std::pair("one_more", false),
          std::pair("halved", true), std::pair("gelu", true)})
      job_.Add(name + "wide/" + part, 4 * kText, needed);
    Dense(name + "narrow", 4 * kHidden, kHidden);
    Dropout(name + "narrow", kText, false);
    Normalize(name + "narrow");
  }

  TensorFlowJob job_;
};

}  // namespace

TensorFlowJob GoogleBertBase() { return Bert().Build(); }

Profile ProfileOf(const TensorFlowJob& job, int32_t batch_size, const DeviceRates& rates,
                  bool keeps_all) {
  std::vector<TrainingLayer> layers;
  const auto ns = [](double seconds) { return std::llround(seconds * 1e9); };
  double read = 0;  // bytes of the output before
  for (const TensorFlowJob::Output& output : job.outputs) {
    const int64_t bytes = output.elements * kBytesPerElement * batch_size;
    const auto moved = static_cast<double>(bytes) + read;
    const bool is_product = output.flops > 0;
    const double seconds = is_product ? output.flops * batch_size / rates.flops_per_second
                                      : moved / rates.bytes_per_second;
    TrainingLayer& layer = layers.emplace_back();
    layer = {.name = output.name,
             .forward_ns = ns(seconds),
             // Each factor of a product has a gradient.
             .backward_ns = ns(is_product ? 2 * seconds : seconds),
             .kept_bytes = keeps_all || output.needed ? bytes : 0};
    if (output.parameters > 0) {
      layer.parameters.push_back(
          {.name = output.name, .size_bytes = output.parameters * kBytesPerElement});
    }
    read = static_cast<double>(bytes);
  }
  // Adam reads gradient, parameter and both moments, and writes three of them.
  constexpr double kAccesses = 7;
  TrainingGraph graph = BuildAllReduceGraph(
      layers, ns(job.parameters * kBytesPerElement * kAccesses / rates.bytes_per_second));
  ProfileDraft draft{.display_name = job.name,
                     .batch_size = batch_size,
                     .platform = {.bandwidth_bytes_per_second = 100 * kGigabit}};
  draft.steps = MakeSteps(graph.operations, graph.durations_ns, draft.platform, {});
  draft.operations = std::move(graph.operations);
  return Valid(Profile::Create(std::move(draft)));
}

namespace {

double OutputGigabytes(const TensorFlowJob& job, int32_t batch_size, bool keeps_all) {
  const Profile profile = ProfileOf(job, batch_size, {.flops_per_second = 1e13}, keeps_all);
  MemoryModel model;
  for (const Operation& operation : profile.operations())
    model.kept_bytes.push_back(operation.kept_bytes);
  return EstimateMemory(profile, model).output_bytes / kGigabyte;
}

double Gigabytes(const TensorFlowJob& job, int32_t batch_size, bool keeps_all) {
  return OutputGigabytes(job, batch_size, keeps_all) +
         job.parameters * kBytesPerElement * job.copies / kGigabyte;
}

Profile ZooProfile(const char* model, int32_t batch_size, double flops_per_second) {
  return Valid(BuildZooProfile(model, {.batch_size = batch_size,
                                       .platform = {.bandwidth_bytes_per_second = 100 * kGigabit},
                                       .device_flops_per_second = flops_per_second,
                                       .variation = {.own = 0, .common = 0},
                                       .communication = ZooCommunication::kAllReduce}));
}

}  // namespace

std::vector<MemoryRow> MeasureTable3() {
  struct Published {
    const char* zoo;  // null: a second row of a model
    TensorFlowJob job;
    double measured;
    double dpro;
  };
  std::vector<MemoryRow> rows;
  for (const auto& [zoo, job, measured, dpro] :
       {Published{"bert_base", GoogleBertBase(), 9.96, 10.25},
        Published{"resnet50", KerasResNet50(), 5.41, 5.71},
        Published{"inception_v3", KerasInceptionV3(299), 3.91, 4.05},
        Published{nullptr, KerasInceptionV3(224), 3.91, 4.05},
        Published{"vgg16", KerasVgg16(), 5.91, 5.83}}) {
    MemoryRow& row = rows.emplace_back();
    row = {.model = job.name,
           .measured = measured,
           .dpro = dpro,
           .needed = Gigabytes(job, 32, false),
           .all = Gigabytes(job, 32, true)};
    if (zoo == nullptr) continue;
    const Profile profile = ZooProfile(zoo, 32, 1e13);
    row.zoo =
        EstimateMemory(profile, *Valid(ResolveStrategies(profile, {})).memory).bytes() / kGigabyte;
  }
  return rows;
}

namespace {

// With what it is above or below the measured value.
std::string Beside(double value, double measured) {
  if (value == 0) return "-";
  if (measured == 0) return absl::StrFormat("%.2f", value);
  return absl::StrFormat("%.2f (%+.1f %%)", value, 100 * (value / measured - 1));
}

}  // namespace

std::string Table3(const std::vector<MemoryRow>& rows) {
  std::string table = TableHead({"model", "measured, GB", "dPRO's estimate", "zoo's layers",
                                 "what gradients need", "every output"});
  for (const MemoryRow& row : rows) {
    table += TableRow({row.model, absl::StrFormat("%.2f", row.measured),
                       Beside(row.dpro, row.measured), Beside(row.zoo, row.measured),
                       Beside(row.needed, row.measured), Beside(row.all, row.measured)});
  }
  return table;
}

namespace {

constexpr int32_t kGpus = 16;
constexpr double kMeasuredSeconds = 0.62212;  // of a step without a pass
// Texts of 384 tokens, the zoo's, with as many tokens as 64 of 128.
constexpr int32_t kZooBatch = 21;
constexpr int32_t kPaperBatch = 64;
// Segments, one a layer of BERT.
constexpr int32_t kLayers = 12;

// Horovod's own cycles on two servers of eight V100, with NVLink inside.
double SecondsOfStep(const Profile& profile) {
  ScenarioDraft scenario;
  scenario.communication =
      AllReduceDraft{.workers_per_node = 8,
                     .intra_node_bandwidth_bytes_per_second = 1.2e11,
                     .fusion = HorovodDraft{.fusion_bytes = 64 << 20, .cycle_seconds = 0.005}};
  const ThroughputDraft draft{
      .scenarios = {},
      .worker_counts = {kGpus},
      .scenario = scenario,
      .options = {.steps_per_worker = 40, .warmup_steps = 10, .replications = 1}};
  return Valid(PredictThroughput(profile, Valid(ResolveThroughput(profile, draft)), NeverStop))
      .predictions.front()
      .step_time.mean;
}

// The arithmetic with which a step takes what was measured.
Profile Calibrated(const std::function<Profile(double flops_per_second)>& made) {
  double slow = 1e12;
  double fast = 1e14;
  for (int i = 0; i < 24; ++i) {
    const double middle = std::sqrt(slow * fast);
    (SecondsOfStep(made(middle)) > kMeasuredSeconds ? slow : fast) = middle;
  }
  return made(std::sqrt(slow * fast));
}

struct JudgedPass {
  double ms = 0;
  double gigabytes = 0;
};

// In the order of the rows.
std::vector<JudgedPass> PassesOf(const Profile& profile, const MemoryModel& model) {
  const Recomputation again(profile, model);
  std::vector<JudgedPass> passes = {
      {1e3 * SecondsOfStep(profile), EstimateMemory(profile, model).bytes() / kGigabyte}};
  const auto add = [&](const MemoryPlan& plan) {
    passes.push_back({1e3 * SecondsOfStep(plan.profile), plan.memory.bytes() / kGigabyte});
  };
  add(Valid(again.Plan(Recomputed::kCheapOutputs, again.Most(Recomputed::kCheapOutputs))));
  add(Valid(Accumulate(profile, model,
                       std::vector<double>(profile.operations().size(), kHalfBatchShare))));
  add(Valid(again.Plan(Recomputed::kSegments, kLayers)));
  return passes;
}

MemoryModel MemoryOf(const Profile& profile, double copies) {
  MemoryModel model = *Valid(ResolveStrategies(profile, {})).memory;
  model.parameter_copies = copies;
  return model;
}

}  // namespace

std::vector<PassRow> MeasureTable4() {
  const TensorFlowJob bert = GoogleBertBase();
  const Profile zoo =
      Calibrated([](double flops) { return ZooProfile("bert_base", kZooBatch, flops); });
  const Profile shapes = Calibrated([&](double flops) {
    return ProfileOf(bert, kPaperBatch, {.flops_per_second = flops}, /*keeps_all=*/true);
  });
  const std::vector<JudgedPass> of_zoo = PassesOf(zoo, MemoryOf(zoo, bert.copies));
  std::vector<JudgedPass> of_shapes = PassesOf(shapes, MemoryOf(shapes, bert.copies));
  // TensorFlow frees at once what no gradient needs.
  of_shapes[0].gigabytes = Gigabytes(bert, kPaperBatch, false);
  of_shapes[2].gigabytes = Gigabytes(bert, kPaperBatch / 2, false);
  std::vector<PassRow> rows = {
      {.pass = "none", .measured_ms = 622.12, .dpro_ms = 613.87, .measured_gb = 16.42},
      {.pass = "recomputation of cheap outputs",
       .measured_ms = 696.13,
       .dpro_ms = 672.60,
       .measured_gb = 7.43},
      {.pass = "gradient accumulation",
       .measured_ms = 714.22,
       .dpro_ms = 708.57,
       .measured_gb = 9.96},
      {.pass = "recomputation of segments, one a layer"}};
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].zoo_ms = of_zoo[i].ms;
    rows[i].zoo_gb = of_zoo[i].gigabytes;
    rows[i].shapes_ms = of_shapes[i].ms;
    rows[i].shapes_gb = of_shapes[i].gigabytes;
  }
  return rows;
}

std::string Table4(const std::vector<PassRow>& rows) {
  std::string table =
      TableHead({"pass", "measured, ms", "dPRO's estimate", "zoo's BERT", "TensorFlow's operations",
                 "measured, GB", "zoo's BERT", "TensorFlow's operations"});
  for (const PassRow& row : rows) {
    const auto given = [](double value) {
      return value > 0 ? absl::StrFormat("%.2f", value) : "-";
    };
    table += TableRow({row.pass, given(row.measured_ms), Beside(row.dpro_ms, row.measured_ms),
                       Beside(row.zoo_ms, row.measured_ms), Beside(row.shapes_ms, row.measured_ms),
                       given(row.measured_gb), Beside(row.zoo_gb, row.measured_gb),
                       Beside(row.shapes_gb, row.measured_gb)});
  }
  return table;
}

}  // namespace stepcast::bench
