#include "core/importing/timeline_step.h"

#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

#include "core/base/quoted.h"
#include "core/importing/recording_options.h"
#include "core/importing/tensorflow_device.h"

namespace stepcast {

namespace {

// Of `/job:localhost/replica:0/task:0/cpu:0 Compute` the device. Empty: a process of another kind.
std::string_view DeviceOf(const Timeline& timeline, int64_t process) {
  constexpr std::string_view kComputes = " Compute";
  const auto found = timeline.processes.find(process);
  if (found == timeline.processes.end()) return {};
  std::string_view name = found->second;
  if (name.size() <= kComputes.size() || name.substr(name.size() - kComputes.size()) != kComputes)
    return {};
  name.remove_suffix(kComputes.size());
  return name;
}

class Filler {
 public:
  Filler(const Timeline& timeline, TimelineStep& step) : timeline_(timeline), step_(step) {
    for (const TimelineEvent& event : timeline.events) ran_.insert(event.node);
  }

  absl::Status Fill() {
    if (absl::Status status = step_.rows.BeginStep(); !status.ok()) return status;
    for (const TimelineEvent& event : timeline_.events) {
      if (absl::Status status = Add(event); !status.ok()) return status;
    }
    return step_.rows.EndStep();
  }

 private:
  absl::Status Add(const TimelineEvent& event) {
    const std::string_view name = DeviceOf(timeline_, event.process);
    if (name.empty()) {
      return ImportFault(
          kAtRecording, absl::StrCat("event ", Quoted(event.node), " is of process ", event.process,
                                     ", which is not named as a device"));
    }
    const TensorflowDevice device = ParseTensorflowDevice(name);
    if (device.role != DeviceRole::kWorker || event.op == "RecvTensor") {
      return ImportFault(kAtRecording,
                         absl::StrCat("event ", Quoted(event.node), " on ", Quoted(name),
                                      " is of several machines, where a timeline does not say "
                                      "which tensors travelled; import the RunMetadata"));
    }
    if (device.rows == DeviceRows::kCopies) ++step_.copies;
    const bool executor = event.node == "_SOURCE" || event.node == "_SINK";
    if (executor) ++step_.bookkeeping;
    if (executor || device.rows == DeviceRows::kCopies) return absl::OkStatus();
    if (event.node.empty()) return ImportFault(kAtRecording, "an event without args.name");
    const absl::StatusOr<int32_t> index = step_.rows.Device(name);
    if (!index.ok()) return index.status();
    const absl::StatusOr<int32_t> node = step_.rows.Node(event.node, *index);
    if (!node.ok()) return node.status();
    if (absl::Status status =
            step_.rows.AddRow(*node, event.start_ns, event.start_ns + event.length_ns);
        !status.ok())
      return status;
    return device.rows == DeviceRows::kKernels ? absl::OkStatus() : AddToGraph(event);
  }

  absl::Status AddToGraph(const TimelineEvent& event) {
    GraphNodeText text{.name = event.node, .op = event.op};
    for (const std::string& input : event.inputs) text.inputs.push_back(Maker(input));
    return step_.graph.Add(text);
  }

  // An input as the node that makes it. Between devices TensorFlow puts nodes that send and
  // receive, which are not shown: `name/_7` is then `name`.
  std::string Maker(const std::string& input) {
    const std::string_view text = input;
    const std::string_view mark = text.substr(0, !text.empty() && text.front() == '^' ? 1 : 0);
    std::string_view name = text.substr(mark.size());
    name = name.substr(0, name.rfind(':'));
    if (!Ran(name)) {
      const size_t suffix = name.rfind("/_");
      if (suffix != std::string_view::npos && Ran(name.substr(0, suffix))) {
        name = name.substr(0, suffix);
      } else {
        ++step_.outside;
      }
    }
    return std::string(mark).append(name);
  }

  bool Ran(std::string_view name) const {
    return ran_.contains(absl::string_view(name.data(), name.size()));
  }

  const Timeline& timeline_;
  TimelineStep& step_;
  absl::flat_hash_set<absl::string_view> ran_;
};

}  // namespace

absl::Status FillStep(const Timeline& timeline, TimelineStep& step) {
  return Filler(timeline, step).Fill();
}

}  // namespace stepcast
