// The parts of a forward pass between which a pipeline is cut, in traces of one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

#include "core/importing/pytorch/pytorch_trace.h"
#include "tests/core/importing/forward_parts.h"
#include "tests/core/importing/lone_worker.h"
#include "tests/core/importing/unpacked_file.h"

namespace stepcast::forward_links_test {
namespace {

using ::nlohmann::json;
using ::stepcast::testing::ForwardPart;
using ::stepcast::testing::ForwardPartsOf;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

constexpr char kData[] = STEPCAST_SOURCE_DIR "/tests/data/";

absl::StatusOr<ImportedProfile> Import(const std::string& text) {
  TextSource source(text);
  return ImportPyTorchTrace(source,
                            {.recording = {.model = "m",
                                           .batch_size = 32,
                                           .platform = {.bandwidth_bytes_per_second = 1.25e8}}},
                            {}, NeverStop);
}

// Against what the recorder of the measured pipelines said of the same layers.
TEST(ForwardLinksTest, PlainTracesAreTheirLayers) {
  std::ifstream file(std::string(kData) + "pp/plain_and_measured.json");
  const json told = json::parse(file).at("recordings");
  for (const std::string model : {"alexnet_p", "transformer_p"}) {
    const auto imported =
        Import(testing::UnpackedFile(absl::StrCat(kData, "pp/", model, "-plain.json.gz")));
    ASSERT_TRUE(imported.ok()) << imported.status();
    const Profile& profile = imported->profile;
    const json& layers = told.at(model).at("layers");
    ASSERT_EQ(profile.steps().size(), 46U);
    for (size_t s = 0; s < profile.steps().size(); ++s) {
      const std::vector<ForwardPart> parts = ForwardPartsOf(profile, s);
      // The last one is the loss.
      ASSERT_EQ(parts.size(), layers.size() + 1);
      for (size_t i = 0; i < layers.size(); ++i) {
        const json& layer = layers[i];
        EXPECT_EQ(parts[i].name,
                  absl::StrCat("forward/", i, "/", layer.at("name").get<std::string>()));
        if (i > 0) {
          EXPECT_EQ(parts[i - 1].output_bytes, layer.at("input_bytes").get<int64_t>());
        }
        EXPECT_THAT(parts[i].gradients,
                    UnorderedElementsAreArray(layer.at("parameters").get<std::vector<int64_t>>()));
        const json& step = told.at(model).at("steps")[s];
        EXPECT_NEAR(parts[i].forward_ns, 1000 * step.at("forward_us")[i].get<int64_t>(), 60'000);
        // The first one's ends with its last gradient, which the other reader does not count.
        EXPECT_NEAR(parts[i].backward_ns, 1000 * step.at("backward_us")[i].get<int64_t>(),
                    i == 0 ? 150'000 : 60'000);
      }
    }
    EXPECT_THAT(imported->notes, Contains(HasSubstr("a pipeline is cut between them")));
  }
}

// Operations of a forward pass and of its backward pass, as the profiler writes them: each of ten
// microseconds, its undoing of twenty.
class TraceText {
 public:
  struct Step {
    const char* name;
    std::vector<std::vector<int>> inputs;
    std::vector<std::vector<int>> gradients;  // of its parameters
    std::vector<int> added;                   // shape of its input's gradient, which is added
  };

  // `again`: there are two forward passes a step, each with its own backward pass. `of_2021`: with
  // the names of then, when the engine had no events of its own.
  explicit TraceText(const std::vector<Step>& steps, int count = 6, bool again = false,
                     bool of_2021 = false)
      : of_2021_(of_2021) {
    for (int number = 0; number < count; ++number) {
      const int begin = now_;
      now_ += 5;
      for (int pass = 0; pass < (again ? 2 : 1); ++pass) Write(steps);
      Event("user_annotation", "Optimizer.step#SGD.step", now_, 30, "");
      now_ += 35;
      Event("user_annotation", absl::StrCat("ProfilerStep#", number), begin, now_ - begin, "");
    }
  }

  std::string text() const {
    return absl::StrCat(R"({"schemaVersion": 1, "traceEvents": [)", events_.substr(1), "]}");
  }

 private:
  static std::string Dims(const std::vector<std::vector<int>>& shapes) {
    std::vector<std::string> dims;
    std::vector<std::string> types;
    for (const std::vector<int>& shape : shapes) {
      dims.push_back(absl::StrCat("[", absl::StrJoin(shape, ","), "]"));
      types.push_back("\"float\"");
    }
    return absl::StrCat(R"("Input Dims": [)", absl::StrJoin(dims, ","), R"(], "Input type": [)",
                        absl::StrJoin(types, ","), "]");
  }

  void Event(const char* category, const std::string& name, int start, int length,
             const std::string& arguments) {
    absl::StrAppend(&events_, R"(,{"ph": "X", "cat": ")", of_2021_ ? "Operator" : category,
                    R"(", "name": ")", name, R"(", "pid": 1, "tid": 1, "ts": )", start,
                    R"(, "dur": )", length, R"(, "args": {)", arguments, "}}\n");
  }

  void Write(const std::vector<Step>& steps) {
    const int first = sequence_;
    for (const Step& step : steps) {
      Event("cpu_op", step.name, now_, 10,
            absl::StrCat(R"("Sequence number": )", sequence_++, R"(, "Fwd thread id": 0, )",
                         Dims(step.inputs)));
      now_ += 10;
    }
    for (size_t i = steps.size(); i-- > 0;) {
      const std::string node = absl::StrCat(R"("Sequence number": )", first + static_cast<int>(i),
                                            R"(, "Fwd thread id": 1)");
      const std::string engine = "autograd::engine::evaluate_function: ";
      if (!of_2021_) Event("cpu_op", engine + "SomeBackward0", now_, 20, node);
      Event("cpu_op", "SomeBackward0", now_ + 1, 15, node);
      if (!steps[i].added.empty())
        Event("cpu_op", "aten::add", now_ + 17, 2, Dims({steps[i].added, steps[i].added}));
      now_ += 20;
      for (const std::vector<int>& gradient : steps[i].gradients) {
        Event("cpu_op", "torch::autograd::AccumulateGrad", now_, 2, Dims({gradient}));
        now_ += 2;
      }
    }
  }

  const bool of_2021_;
  std::string events_;
  int now_ = 1000;
  int sequence_ = 40;
};

using Steps = std::vector<TraceText::Step>;

std::vector<std::string> NamesOf(const Profile& profile) {
  std::vector<std::string> names;
  for (const ForwardPart& part : ForwardPartsOf(profile, 0)) names.push_back(part.name);
  return names;
}

const std::vector<int> kRows = {8, 16};
const std::vector<int> kSquare = {16, 16};
const Steps kChain = {{"aten::addmm", {{16}, kRows, kSquare}, {{16, 16}, {16}}, {}},
                      {"aten::relu", {kRows}, {}, {}},
                      {"aten::addmm", {{16}, kRows, kSquare}, {{16, 16}, {16}}, {}}};

TEST(ForwardLinksTest, AChainIsCutEverywhereAndEachStepTakesAsLong) {
  const auto imported = Import(TraceText(kChain).text());
  ASSERT_TRUE(imported.ok()) << imported.status();
  const std::vector<ForwardPart> parts = ForwardPartsOf(imported->profile, 0);
  ASSERT_THAT(NamesOf(imported->profile),
              ElementsAre("forward/0/addmm", "forward/1/relu", "forward/2/addmm"));
  EXPECT_EQ(parts[0].output_bytes, 512);
  EXPECT_EQ(parts[1].output_bytes, 512);
  EXPECT_EQ(parts[2].output_bytes, 0);
  EXPECT_THAT(parts[2].gradients, ElementsAre(1024, 64));
  EXPECT_THAT(parts[1].gradients, ElementsAre());
  EXPECT_EQ(parts[1].backward_ns, 20'000);
  EXPECT_EQ(parts[0].forward_ns, 10'000);
  // The rectified tensor is kept once, by what made it.
  EXPECT_EQ(parts[0].kept_bytes + parts[1].kept_bytes + parts[2].kept_bytes, 1024);
  for (const RecordedStep& step : imported->profile.steps())
    EXPECT_EQ(testing::LoneStepNs(imported->profile, step), 138'000);
}

// The engine adds to the gradient of what the first addmm reads, so that something reads it again:
// the addition at the end.
TEST(ForwardLinksTest, AResidualIsNotCutWhereTwoTensorsGoOn) {
  const Steps block = {{"aten::addmm", {{16}, kRows, kSquare}, {{16, 16}, {16}}, {}},
                       {"aten::addmm", {{16}, kRows, kSquare}, {{16, 16}, {16}}, kRows},
                       {"aten::relu", {kRows}, {}, {}},
                       {"aten::addmm", {{16}, kRows, kSquare}, {{16, 16}, {16}}, {}},
                       {"aten::add", {kRows, kRows}, {}, {}},
                       {"aten::relu", {kRows}, {}, {}}};
  for (const bool of_2021 : {false, true}) {
    const auto imported = Import(TraceText(block, 6, false, of_2021).text());
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_THAT(NamesOf(imported->profile),
                ElementsAre("forward/0/addmm", "forward/1/addmm", "forward/2/relu"));
    EXPECT_EQ(ForwardPartsOf(imported->profile, 0)[1].output_bytes, 512);
  }
}

// Three projections of one tensor, whose outputs have its shape.
TEST(ForwardLinksTest, ProjectionsOfOneTensorAreOnePart) {
  const TraceText::Step project = {"aten::mm", {kRows, kSquare}, {{16, 16}}, kRows};
  const TraceText::Step last = {"aten::mm", {kRows, kSquare}, {{16, 16}}, {}};
  const Steps steps = {{"aten::relu", {kRows}, {}, {}},
                       project,
                       project,
                       last,
                       {"aten::mul", {kRows, kRows}, {}, {}},
                       {"aten::mul", {kRows, kRows}, {}, {}},
                       {"aten::relu", {kRows}, {}, {}}};
  const auto imported = Import(TraceText(steps).text());
  ASSERT_TRUE(imported.ok()) << imported.status();
  const std::vector<std::string> names = NamesOf(imported->profile);
  EXPECT_EQ(names.front(), "forward/0/relu");
  EXPECT_EQ(names[1], "forward/1/mm");
  EXPECT_THAT(std::vector<std::string>(names.begin() + 2, names.end()),
              Each(::testing::AnyOf(HasSubstr("mul"), HasSubstr("relu"))));
}

TEST(ForwardLinksTest, TheReasonIsSaidWhyAPipelineCannotBeAsked) {
  Steps joined = {{"aten::relu", {kRows}, {}, kRows},
                  {"aten::addmm", {{16}, kRows, kSquare}, {{16, 16}, {16}}, {}}};
  joined.resize(1);
  joined.front().gradients = {{16}};
  std::string bare = TraceText(kChain).text();
  for (size_t at = 0; (at = bare.find("\"Sequence number\"", at)) != std::string::npos;)
    bare.replace(at, 17, "\"Other number   \"");
  for (const auto& [text, why] :
       {std::pair<std::string, std::string>{bare, "record_shapes=True"},
        {TraceText(joined).text(), "no place where one tensor alone goes on"},
        {TraceText(kChain, 6, true).text(), "several forward passes"}}) {
    const auto imported = Import(text);
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_THAT(imported->notes, Contains(HasSubstr("Pipelines cannot be asked"))) << why;
    EXPECT_THAT(imported->notes, Contains(HasSubstr(why)));
    EXPECT_EQ(NamesOf(imported->profile), std::vector<std::string>{"forward"});
  }
}

// A GPU of a tensor group of two in a job of eight: in each step a forward and a backward kernel of
// 100 us, an all-reduce of the tensor group of 40 us after the first, an all-to-all of an expert
// group after the second, and the gradients' all-reduce; the host is ahead.
// `is_ambiguous`: instead, after the gradient, an all-reduce of a group of any name.
std::string HybridTrace(const std::string& description_of_gradients, bool is_ambiguous = false) {
  std::string events;
  int id = 0;
  const auto event = [&](const char* category, const std::string& name, int start, int length,
                         const std::string& arguments) {
    absl::StrAppend(&events, events.empty() ? "" : ",", R"({"ph": "X", "cat": ")", category,
                    R"(", "name": ")", name, R"(", "pid": 1, "tid": 1, "ts": )", start,
                    R"(, "dur": )", length, R"(, "args": {)", arguments, "}}\n");
  };
  int at = 1000;
  int gpu = 2000;
  const auto launch = [&](const std::string& name, int length, const std::string& group) {
    ++id;
    event("cuda_runtime", "cudaLaunchKernel", at, 1, absl::StrCat(R"("correlation": )", id));
    event("kernel", name, gpu, length, absl::StrCat(R"("stream": 7, "correlation": )", id, group));
    at += 2;
    gpu += length;
  };
  const auto collective = [&](const std::string& name, int elements, int length, int size,
                              const std::string& group, const std::string& description) {
    const std::string names =
        absl::StrCat(R"(, "Process Group Name": ")", group, R"(", "Process Group Description": ")",
                     description, "\"");
    event("cpu_op", "record_param_comms", at, 4,
          absl::StrCat(R"("Collective name": ")", name, R"(", "In msg nelems": )", elements,
                       R"(, "Out msg nelems": )", elements, R"(, "dtype": "Float", "Group size": )",
                       size, names));
    at += 1;
    launch("ncclDevKernel_Generic", length, names);
    at += 3;
  };
  for (int step = 0; step < 6; ++step) {
    const int begin = at;
    at += 3;
    launch("forward", 100, "");
    collective("allreduce", 5000, 40, 2, "3", "TENSOR_MODEL_PARALLEL_GROUP");
    event("cpu_op", "autograd::engine::evaluate_function: SomeBackward0", at, 4,
          R"("Sequence number": 3, "Fwd thread id": 1)");
    launch("backward", 100, "");
    if (!is_ambiguous) collective("all_to_all", 700, 30, 2, "4", "EXPERT_MODEL_PARALLEL_GROUP");
    at += 5;
    event("cpu_op", "torch::autograd::AccumulateGrad", at, 2,
          R"("Input Dims": [[300]], "Input type": ["float"])");
    at += 3;
    if (is_ambiguous) collective("allreduce", 700, 30, 2, "4", "another");
    collective("allreduce", 300, 20, 4, "5", description_of_gradients);
    event("user_annotation", "Optimizer.step#SGD.step", at, 6, "");
    launch("optimizer", 50, "");
    at += 10;
    event("user_annotation", absl::StrCat("ProfilerStep#", step), begin, at - begin, "");
    at += 2;
  }
  return absl::StrCat(
      R"({"schemaVersion": 1, "deviceProperties": [{"id": 0}], )",
      R"("distributedInfo": {"rank": 0, "world_size": 8, "pg_config": [)",
      R"({"pg_name": "0", "pg_desc": "default_pg", "pg_size": 8, "ranks": [0]}]}, )",
      R"("traceEvents": [)", events, "]}");
}

TEST(ForwardLinksTest, CollectivesOfOtherGroupsOfAGpuKeepTheirTime) {
  const auto imported = Import(HybridTrace("DATA_PARALLEL_GROUP"));
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Profile& profile = imported->profile;
  // Of the job's eight, four are in the gradients' group.
  EXPECT_EQ(profile.devices_per_worker(), 2);
  std::vector<std::string> names;
  for (const Operation& operation : profile.operations()) names.push_back(operation.name);
  EXPECT_THAT(names, ::testing::IsSupersetOf({"TENSOR_MODEL_PARALLEL_GROUP/0", "gradient/0"}));
  for (size_t i = 0; i < names.size(); ++i) {
    const Operation& operation = profile.operations()[i];
    const RecordedStep& step = profile.steps().front();
    const int64_t length = step.end_ns[i] - step.start_ns[i];
    EXPECT_EQ(operation.group,
              names[i] == "TENSOR_MODEL_PARALLEL_GROUP/0" ? "TENSOR_MODEL_PARALLEL_GROUP" : "");
    const bool is_gradient = operation.resource == Resource::kCollective && operation.group.empty();
    EXPECT_EQ(operation.group.empty() || length == 40'000, true) << length;
    // The all-to-all is of no kind that a profile has, and stays in the computation.
    EXPECT_EQ(names[i] != "backward/0" || length == 130'000, true) << length;
    EXPECT_EQ(!is_gradient || operation.size_bytes == 1200, true) << operation.size_bytes;
  }
}

TEST(ForwardLinksTest, GroupsThatCannotBeToldApartAreAskedFor) {
  std::string text = HybridTrace("some group", true);
  for (size_t at = 0; (at = text.find("\"Input Dims\"", at)) != std::string::npos;)
    text.replace(at, 12, "\"Other Dims\"");
  for (const std::string& group : {std::string(), std::string("5"), std::string("some group")}) {
    TextSource source(text);
    const auto imported = ImportPyTorchTrace(
        source,
        {.recording = {.batch_size = 8, .platform = {.bandwidth_bytes_per_second = 1e9}},
         .data_parallel_group = group},
        {}, NeverStop);
    EXPECT_EQ(imported.ok(), !group.empty()) << imported.status();
    if (imported.ok()) continue;
    EXPECT_THAT(std::string(imported.status().message()),
                AllOf(HasSubstr("\"4\" (\"another\"), \"5\" (\"some group\")"),
                      HasSubstr("--data-parallel-group")));
  }
}

// An all-gather of the gradients' own group, or of one that nothing says is inside a replica.
TEST(ForwardLinksTest, ShardedModelsAreRefused) {
  for (const char* const description : {"fsdp", "mesh_dp_shard", ""}) {
    std::string text = HybridTrace("DATA_PARALLEL_GROUP");
    for (const auto& [from, to] :
         {std::pair<std::string, std::string>{"all_to_all", "_allgather_base"},
          {"EXPERT_MODEL_PARALLEL_GROUP", description}}) {
      for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    }
    const auto imported = Import(text);
    if (std::string(description).empty()) {
      // Beside a group that gradients add up in, one without a name is inside a replica.
      EXPECT_TRUE(imported.ok()) << imported.status();
    } else {
      EXPECT_THAT(std::string(imported.status().message()), HasSubstr("sharded models"));
    }
  }
}

}  // namespace
}  // namespace stepcast::forward_links_test
