#include "tests/core/importing/pytorch_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/random.h"
#include "core/importing/pytorch/gradient_buckets.h"

namespace stepcast::testing {

namespace {

constexpr int kMainThread = 100;
constexpr int kBackwardThread = 101;
constexpr int kGlooThread = 102;

class PyTorchTraceWriter {
 public:
  explicit PyTorchTraceWriter(const PyTorchForm& form)
      : form_(form),
        random_({form.seed, 7}),
        base_us_(form.relative ? 3'743'411'230'047 : 1'712'195'495'648'967),
        now_us_(base_us_) {
    std::vector<int64_t> bytes;
    for (const int64_t elements : form.elements) bytes.push_back(4 * elements);
    buckets_ = AssignBuckets(bytes, {.cap_bytes = form.bucket_cap_bytes});
  }

  PyTorchRecording Write() {
    std::string text = R"({"schemaVersion": 1, "deviceProperties": [)";
    if (form_.gpu) text += R"({"id": 0, "name": "Tesla V100", "numSms": 80})";
    text += "], ";
    if (form_.ddp) {
      absl::StrAppend(&text, R"("distributedInfo": {"backend": ")", form_.gpu ? "nccl" : "gloo",
                      R"(", "rank": 0, "world_size": )", form_.workers, "}, ");
    }
    if (form_.relative) text += R"("baseTimeNanoseconds": 1767189312000000000, )";
    text += R"("traceEvents": [)";
    text += R"({"name": "process_name", "ph": "M", "ts": 0, "pid": 1, "args": {"name": "python"}})";
    events_.clear();
    PyTorchRecording recording;
    for (int s = 0; s < form_.steps; ++s) recording.step_ns.push_back(1000 * WriteStep(s));
    recording.text = absl::StrCat(text, events_, R"(], "traceName": "t.json"})");
    return recording;
  }

 private:
  // `us`: of the host's clock.
  void Event(std::string_view category, std::string_view name, int64_t us, int64_t length_us,
             int thread, std::string_view arguments) {
    const std::string_view fraction = form_.relative ? ".000" : "";
    const std::string tid =
        form_.names_of_2021 ? absl::StrCat("\"", thread, "\"") : absl::StrCat(thread);
    absl::StrAppend(&events_, ",\n", R"({"ph": "X", "cat": ")", std::string(category),
                    R"(", "name": ")", std::string(name), R"(", "pid": 1, "tid": )", tid);
    absl::StrAppend(&events_, R"(, "ts": )", us, std::string(fraction), R"(, "dur": )", length_us,
                    std::string(fraction), R"(, "args": {)", std::string(arguments), "}}");
  }

  void Host(std::string_view name, int64_t us, int64_t length_us, std::string_view arguments = "",
            bool annotation = false, int thread = kMainThread) {
    const char* category = annotation ? "user_annotation" : "cpu_op";
    Event(form_.names_of_2021 ? "Operator" : category, name, us, length_us, thread,
          absl::StrCat(R"("External id": )", ++id_, arguments.empty() ? "" : ", ",
                       std::string(arguments)));
  }

  std::string Shape(int64_t elements) const {
    return form_.shapes ? absl::StrCat(R"("Input Dims": [[)", elements,
                                       R"(], []], "Input type": ["float", "Scalar"])")
                        : "";
  }

  // Launches it now, and says when it ends.
  int64_t Kernel(std::string_view name, int64_t length_us, int64_t not_before_us = 0,
                 bool collective = false) {
    ++id_;
    Event(form_.names_of_2021 ? "Runtime" : "cuda_runtime", "cudaLaunchKernel", now_us_, 2,
          kMainThread, absl::StrCat(R"("correlation": )", id_));
    int64_t& free_us = collective ? wire_free_us_ : gpu_free_us_;
    const int64_t start_us = std::max({free_us, now_us_ + 5, not_before_us});
    free_us = start_us + length_us;
    Event(form_.names_of_2021 ? "Kernel" : "kernel", name, start_us, length_us, collective ? 20 : 7,
          absl::StrCat(R"("device": 0, "stream": )", collective ? 20 : 7, R"(, "correlation": )",
                       id_));
    return free_us;
  }

  void Compute(std::string_view name, int64_t length_us) {
    if (form_.gpu) {
      Kernel(absl::StrCat("void ", std::string(name), "_kernel"), length_us);
      now_us_ += 8;  // the host is faster than the GPU
    } else {
      now_us_ += length_us;
    }
  }

  int64_t Varied(int64_t us) { return us + static_cast<int64_t>(random_.Below(20)); }

  void SendBucket(int64_t elements) {
    const char* backend = form_.gpu ? "nccl" : "gloo";
    Host("c10d::allreduce_", now_us_, 3, "", false, kBackwardThread);
    if (form_.gpu && !form_.names_of_2021) {
      Host("record_param_comms", now_us_ + 1, 1,
           absl::StrCat(R"("Collective name": "allreduce", "In msg nelems": )", elements,
                        R"(, "dtype": "Float", "Group size": )", form_.workers),
           false, kBackwardThread);
    }
    int64_t length_us = 1;
    if (form_.workers > 1 && form_.gpu) {
      length_us = 2;
      sent_until_us_.push_back(Kernel("ncclKernel_AllReduce_RING_LL_Sum_float", form_.collective_us,
                                      gpu_free_us_, true));
    } else {
      if (form_.workers > 1) length_us = form_.collective_us;
      wire_free_us_ = std::max(wire_free_us_, now_us_ + 2) + length_us;
      sent_until_us_.push_back(wire_free_us_);
    }
    const int64_t start_us = form_.gpu ? now_us_ + 2 : wire_free_us_ - length_us;
    Host(absl::StrCat(backend, ":all_reduce"), start_us, length_us, Shape(elements), true,
         form_.gpu ? kBackwardThread : kGlooThread);
    now_us_ += 3;
  }

  void LoadData(int64_t us) {
    if (us == 0) return;
    Host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", now_us_, us, "", true);
    now_us_ += us;
  }

  // In microseconds.
  int64_t WriteStep(int number) {
    const int64_t begin_us = now_us_;
    const int64_t gpu_begin_us = gpu_free_us_;
    now_us_ += 10 + form_.loading_us;
    LoadData(form_.data_us);
    const int64_t forward_us = now_us_;
    for (int layer = 0; layer < form_.layers; ++layer) Compute("forward", Varied(100));
    if (form_.ddp)
      Host("DistributedDataParallel.forward", forward_us, now_us_ - forward_us, "", true);
    WriteBackward();
    if (form_.ddp) WriteCopies();
    const int64_t optimizer_us = now_us_;
    now_us_ += 2;
    Compute("optimizer", 20);
    Host("Optimizer.step#SGD.step", optimizer_us, now_us_ - optimizer_us, "", true);
    now_us_ += 5;
    if (form_.gpu && now_us_ < gpu_free_us_ - 1000) now_us_ = gpu_free_us_ - 1000;
    LoadData(form_.late_data_us);
    Host(absl::StrCat("ProfilerStep#", number + 5), begin_us, now_us_ - begin_us, "", true);
    const int64_t length_us = form_.gpu
                                  ? gpu_free_us_ - (number == 0 ? begin_us + 15 : gpu_begin_us)
                                  : now_us_ - begin_us;
    now_us_ += 40;
    return length_us;
  }

  void WriteBackward() {
    size_t bucket = 0;
    size_t in_bucket = 0;
    int64_t elements = 0;
    sent_until_us_.clear();
    for (const int64_t gradient : form_.elements) {
      const int64_t operation_us = now_us_;
      Compute("backward", Varied(40));
      Host(form_.names_of_2021 ? "AddmmBackward"
                               : "autograd::engine::evaluate_function: AddmmBackward",
           operation_us, now_us_ - operation_us, "", false, kBackwardThread);
      const int64_t scope_us = ++now_us_;
      Host("torch::autograd::AccumulateGrad", scope_us + 1, 3, Shape(gradient), false,
           kBackwardThread);
      now_us_ += 5;
      if (form_.ddp) {
        Compute("mul", 4);
        elements += gradient;
        if (++in_bucket == buckets_[bucket]) {
          SendBucket(std::exchange(elements, 0));
          in_bucket = 0;
          ++bucket;
        }
      }
      ++now_us_;
      if (!form_.names_of_2021) {
        Host("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", scope_us,
             now_us_ - scope_us, "", false, kBackwardThread);
      }
    }
  }

  void WriteCopies() {
    now_us_ += 2;
    size_t next = 0;
    for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      if (form_.gpu && form_.workers > 1)
        gpu_free_us_ = std::max(gpu_free_us_, sent_until_us_[bucket]);
      if (!form_.gpu) now_us_ = std::max(now_us_, sent_until_us_[bucket]);
      for (size_t i = 0; i < buckets_[bucket]; ++i) {
        const int64_t copy_us = now_us_;
        Compute("copy", 6);
        Host("torch.distributed.ddp.reducer::copy_bucket_to_grad", copy_us, now_us_ - copy_us,
             Shape(form_.elements[next++]), false, kBackwardThread);
      }
    }
  }

  const PyTorchForm& form_;
  Random random_;
  const int64_t base_us_;
  int64_t now_us_;
  int64_t gpu_free_us_ = 0;
  int64_t wire_free_us_ = 0;
  int64_t id_ = 0;
  std::vector<size_t> buckets_;
  std::vector<int64_t> sent_until_us_;  // by bucket
  std::string events_;
};

}  // namespace

PyTorchRecording WritePyTorchTrace(const PyTorchForm& form) {
  return PyTorchTraceWriter(form).Write();
}

PyTorchForm RandomPyTorchForm(uint64_t seed) {
  Random random({seed, 8});
  PyTorchForm form{.gpu = random.Below(2) == 0,
                   .ddp = random.Below(3) != 0,
                   .names_of_2021 = random.Below(3) == 0,
                   .relative = random.Below(2) == 0,
                   .workers = random.Below(3) == 0 ? 4 : 1,
                   .steps = static_cast<int>(3 + random.Below(3)),
                   .bucket_cap_bytes = static_cast<int64_t>(1 + random.Below(4)) << 19,
                   .seed = seed};
  if (!form.ddp) form.workers = 1;
  form.elements.clear();
  for (uint64_t count = 1 + random.Below(12); count > 0; --count)
    form.elements.push_back(static_cast<int64_t>(1 + random.Below(400'000)));
  return form;
}

}  // namespace stepcast::testing
