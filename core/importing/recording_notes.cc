#include "core/importing/recording_notes.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/quoted.h"
#include "core/importing/units.h"

namespace stepcast {

namespace {

class Notes {
 public:
  Notes(const RunMetadataFindings& found, const RecordedRows& rows, const StepChoice& choice,
        const RecordedOperations& made)
      : found_(found), rows_(rows), choice_(choice), made_(made) {}

  std::vector<std::string> Take() && {
    AddFound();
    AddLeftOut();
    AddPutRight();
    AddAssumed();
    return std::move(notes_);
  }

 private:
  void AddFound() {
    std::array<int64_t, 5> count{};
    std::array<double, 5> bytes{};
    for (const Operation& operation : made_.operations) {
      ++count[static_cast<size_t>(operation.resource)];
      bytes[static_cast<size_t>(operation.resource)] += static_cast<double>(operation.size_bytes);
    }
    const auto of = [](const auto& array, Resource resource) {
      return array[static_cast<size_t>(resource)];
    };
    notes_.push_back(
        absl::StrFormat("Found %d steps; of each, %d downloads of %.2f MiB in all, %d operations "
                        "of the worker, %d uploads of %.2f MiB and %d operations of %d "
                        "servers.",
                        made_.steps.size(), of(count, Resource::kDownlink),
                        of(bytes, Resource::kDownlink) / kMebibyte, of(count, Resource::kWorker),
                        of(count, Resource::kUplink), of(bytes, Resource::kUplink) / kMebibyte,
                        of(count, Resource::kParameterServer), made_.parameter_servers));
    notes_.emplace_back(found_.partitioned
                            ? "Found dependencies in the recording's partition graphs."
                            : "Found dependencies in the graph given; that a tensor carries the "
                              "output of the node it is named after is assumed.");
    if (found_.graph_unused)
      notes_.emplace_back("Left out: the graph given, since the recording has its own.");
  }

  void AddCount(int64_t count, const char* format) {
    if (count > 0) notes_.push_back(absl::StrCat("Left out: ", count, " ", format));
  }

  void AddLeftOut() {
    AddCount(found_.passed_over.empty_steps, "steps without a row of a worker or a server.");
    if (!choice_.partial_steps.empty()) {
      notes_.push_back(
          absl::StrCat("Left out: ", choice_.partial_steps.size(), " of ", found_.steps,
                       " steps, which lack operations that most have; step ",
                       choice_.partial_steps.front() + 1, " lacks ", Quoted(choice_.lacking), "."));
    }
    if (!choice_.rare_nodes.empty()) {
      const RecordedNode& first = rows_.nodes()[static_cast<size_t>(choice_.rare_nodes.front())];
      notes_.push_back(absl::StrCat(
          "Left out: ", choice_.rare_nodes.size(), " nodes that at most half of the steps ran, ",
          Quoted(first.name), " among them; what waited for them waits for what they waited for."));
    }
    if (found_.unknown_nodes > 0) {
      notes_.push_back(absl::StrCat("Left out: ", found_.unknown_nodes,
                                    " nodes that ran and are not in the graph, ",
                                    Quoted(found_.unknown_node), " among them."));
    }
    AddCount(found_.passed_over.copy_rows,
             "rows of kernels by stream, which all streams have once more, and of copies between "
             "host and GPU.");
    AddCount(rows_.repairs().loose_kernels, "kernels of no node that ran.");
    AddCount(found_.passed_over.transfer_nodes,
             "rows of _Send and _Recv, whose tensors have rows of their own.");
    AddCount(found_.passed_over.other_transfers,
             "tensors received within a machine, between servers or between workers.");
    AddCount(found_.passed_over.other_job_rows, "rows of jobs that are neither worker nor server.");
    AddCount(rows_.repairs().duplicates, "rows that were there twice.");
  }

  void AddPutRight() {
    const RecordedRows::Repairs& repairs = rows_.repairs();
    if (repairs.negative > 0)
      notes_.push_back(absl::StrCat("Put right: ", repairs.negative,
                                    " rows that ended before they started last no time."));
    if (repairs.repeated > 0) {
      notes_.push_back(absl::StrCat("Put right: ", repairs.repeated,
                                    " further runs of a node in a step were added to its first."));
    }
    const ClockRepairs& clocks = made_.clocks;
    if (clocks.moved_clocks > 0) {
      notes_.push_back(absl::StrFormat(
          "Put right: the clock of a server was moved in %d cases, by up to %.3f ms, since it "
          "differed from the worker's.",
          clocks.moved_clocks, static_cast<double>(clocks.most_moved_ns) / kNsPerMs));
    }
    if (clocks.clamped > 0) {
      notes_.push_back(
          absl::StrFormat("Put right: %d starts before the step's own, or before what was sent had "
                          "been made, were moved, by %.3f ms in all and up to %.3f ms.",
                          clocks.clamped, static_cast<double>(clocks.clamped_ns) / kNsPerMs,
                          static_cast<double>(clocks.most_clamped_ns) / kNsPerMs));
    }
  }

  void AddAssumed() {
    const RecordedRows::Repairs& repairs = rows_.repairs();
    if (repairs.kernels > 0) {
      notes_.push_back(absl::StrCat(
          "Assumed: an operation whose kernels a GPU recorded lasts as long as they do, ",
          repairs.kernels, " kernels in all; launching them runs beside them."));
    }
    if (repairs.differing_sizes)
      notes_.emplace_back(
          "Assumed: a tensor whose size differs between steps always has the largest.");
    if (repairs.rounded_sizes)
      notes_.emplace_back(
          "Assumed: sizes that only a label has, rounded to a tenth of a MiB, are exact.");
    if (made_.empty_transfers > 0) {
      notes_.push_back(absl::StrCat("Assumed: ", made_.empty_transfers,
                                    " tensors of no bytes, which only signal, have one."));
    }
    notes_.emplace_back(
        "Assumed: a tensor belongs to the variable that it is read from, or that what it is sent "
        "to updates.");
    if (made_.without_parameter > 0) {
      notes_.push_back(absl::StrCat("Assumed: ", made_.without_parameter,
                                    " tensors belong to no variable, and stay with their server."));
    }
  }

  const RunMetadataFindings& found_;
  const RecordedRows& rows_;
  const StepChoice& choice_;
  const RecordedOperations& made_;
  std::vector<std::string> notes_;
};

}  // namespace

std::vector<std::string> NotesOn(const RunMetadataFindings& found, const RecordedRows& rows,
                                 const StepChoice& choice, const RecordedOperations& made) {
  return Notes(found, rows, choice, made).Take();
}

}  // namespace stepcast
