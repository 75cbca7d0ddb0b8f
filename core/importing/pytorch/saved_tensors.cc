#include "core/importing/pytorch/saved_tensors.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace stepcast {

namespace {

constexpr int64_t kMostTensorElements = int64_t{1} << 40;
constexpr int64_t kMostSavedBytes = int64_t{1} << 60;
constexpr int64_t kBytesOfUnknownElement = 4;
// Tensors that nothing has read yet; older ones are forgotten.
constexpr size_t kMostUnread = 64;
constexpr size_t kMostKnown = 16;  // likewise, of a shape that were read

// Memory that tensors share.
struct Storage {
  int64_t bytes = -1;       // -1: not known yet
  int64_t elements = -1;    // likewise
  int64_t index_bytes = 0;  // kept for each element, once it is known how many there are
  bool is_kept = false;
  bool is_parameter = false;
  std::optional<size_t> made_by;  // an operation; none: it was there before
  size_t last_read_by = 0;
  size_t awaited = 0;  // times that it is known to be read again
};

// A tensor that nothing has read yet.
struct UnreadTensor {
  size_t storage = 0;
  // kSame: of these dimensions, -1 one that is not known; else what was made of them.
  OutputForm form = OutputForm::kSame;
  std::vector<int64_t> dimensions;
  int64_t elements = -1;   // of a view: of what it is a view of
  int64_t parts_left = 0;  // of kPart, once the first one was read
};

std::vector<int64_t> Sorted(std::vector<int64_t> dimensions) {
  std::sort(dimensions.begin(), dimensions.end());
  return dimensions;
}

std::vector<int64_t> WithoutOnes(std::vector<int64_t> dimensions) {
  std::erase(dimensions, 1);
  return dimensions;
}

bool IsExpanded(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  return from.size() <= to.size() &&
         std::equal(from.rbegin(), from.rend(), to.rbegin(),
                    [](int64_t a, int64_t b) { return a == b || a == 1; });
}

// True if some of the dimensions, but for ones, are left in their order.
bool IsReduced(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  size_t at = 0;
  return std::all_of(to.begin(), to.end(), [&](int64_t size) {
    while (size != 1 && at < from.size() && from[at] != size) ++at;
    return size == 1 || at++ < from.size();
  });
}

// A forward pass, operation by operation, and the bytes that it keeps.
class ForwardPass {
 public:
  ForwardPass(const TensorOperations& tensors,
              const absl::flat_hash_set<int64_t>& parameter_elements)
      : tensors_(tensors), parameter_elements_(parameter_elements) {}

  // `mask_bytes`: OuterOperation's. `piece`: of those that run again in the backward pass, which
  // keep nothing but what they read of what was there before; 0: it does not. `read_again`:
  // elements of inputs that are.
  void Run(const TensorOperation& operation, int64_t mask_bytes, size_t piece,
           const std::vector<int64_t>& read_again) {
    const TensorRule& rule = TensorRuleAt(operation.rule);
    keeps_ = piece == 0;
    runs_.push_back({.kept_before = bytes_});
    if (rule.reads_all) {
      for (const UnreadTensor& tensor : unread_) storages_[tensor.storage].last_read_by = Place();
      unread_.clear();
    }
    std::array<std::optional<size_t>, TensorOperation::kInputs> inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if ((rule.reads >> i & 1) == 0 || ElementsOf(operation, i) <= 1) continue;
      inputs[i] = Read(operation.shapes[i], operation.element_bytes[i]);
      runs_.back().reads.push_back(*inputs[i]);
    }
    for (const int64_t elements : read_again) Await(inputs, operation, elements);
    if (piece != 0) ++run_again_;
    if (std::exchange(piece_, piece) != piece) piece_begin_ = Place();
    keeps_ = piece != 0;
    for (const std::optional<size_t>& input : inputs) {
      if (input && storages_[*input].made_by < piece_begin_) Keep(*input);
    }
    keeps_ = piece == 0;
    const bool keeps_both = rule.keeps_if_both && inputs[0] && inputs[1];
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] && (keeps_both || (rule.keeps >> i & 1) != 0)) Keep(*inputs[i]);
    }
    if (inputs[0] && (rule.mask_bytes != 0 || mask_bytes != 0)) {
      const int64_t element = mask_bytes > 0 ? mask_bytes : BytesOfElement(operation, 0);
      Count(element * ElementsOf(operation, 0));
    }
    if (inputs[0]) Count(rule.statistics_bytes * MeansOf(operation, rule));
    AddOutput(operation, rule, inputs);
    const bool reads_any = std::any_of(inputs.begin(), inputs.end(),
                                       [](const auto& input) { return input.has_value(); });
    if (!reads_any || !keeps_) return;
    if (keeps_both || rule.keeps != 0 || rule.keeps_output || rule.mask_bytes != 0) ++operations_;
  }

  SavedTensors Saved() const {
    return {.bytes = bytes_, .operations = operations_, .run_again = run_again_};
  }

  // The operations that begin a link, but the first, with the bytes handed on to them and those
  // kept until then.
  struct Boundary {
    size_t operation = 0;
    int64_t bytes = 0;
    int64_t kept_bytes = 0;
  };
  std::vector<Boundary> Boundaries() const {
    std::vector<Crossing> crossings = Crossings();
    std::vector<Boundary> boundaries;
    for (size_t i = 1; i < crossings.size(); ++i) {
      if (crossings[i].tensors != 1) continue;
      // The first of all places where one tensor alone goes on, after what changes it in place.
      const size_t storage = crossings[i].storages;
      size_t first = i;
      for (; i + 1 < crossings.size() && crossings[i + 1].tensors == 1 &&
             crossings[i + 1].storages == storage;
           ++i)
        if (runs_[i].changed == storage) first = i + 1;
      boundaries.push_back({first, crossings[i].bytes, runs_[first].kept_before});
    }
    return boundaries;
  }

 private:
  // An operation that was run.
  struct OneRun {
    int64_t kept_before = 0;
    std::optional<size_t> changed;  // the storage that it made nothing new of
    std::vector<size_t> reads;      // storages
  };
  // Tensors that are made before an operation and needed by it, or after.
  struct Crossing {
    int64_t tensors = 0;
    size_t storages = 0;  // their sum, which of one is its place
    int64_t bytes = 0;
  };

  size_t Place() const { return runs_.size() - 1; }

  void Await(const std::array<std::optional<size_t>, TensorOperation::kInputs>& inputs,
             const TensorOperation& operation, int64_t elements) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i] || ElementsOf(operation, i) != elements) continue;
      ++storages_[*inputs[i]].awaited;
      return;
    }
  }

  // The last operation that reads a storage. One that was to be read again and was not found is
  // taken to be read by the next operation that joins tensors of its size, as residuals are joined.
  size_t LastReadOf(const Storage& storage) const {
    constexpr size_t kFarthest = 4096;
    if (storage.awaited == 0) return storage.last_read_by;
    const size_t end = std::min(runs_.size(), storage.last_read_by + kFarthest);
    for (size_t i = storage.last_read_by + 1; i < end; ++i) {
      if (runs_[i].reads.size() > 1 &&
          std::any_of(runs_[i].reads.begin(), runs_[i].reads.end(), [&](size_t read) {
            return storages_[read].elements == storage.elements && storages_[read].made_by;
          }))
        return i;
    }
    return runs_.size() - 1;
  }

  std::vector<Crossing> Crossings() const {
    std::vector<Crossing> crossings(runs_.size() + 1);
    for (size_t s = 0; s < storages_.size(); ++s) {
      const Storage& storage = storages_[s];
      if (!storage.made_by || storage.is_parameter) continue;
      const size_t last_read = LastReadOf(storage);
      if (last_read <= *storage.made_by) continue;
      const int64_t bytes = std::max<int64_t>(0, storage.bytes);
      Crossing& begin = crossings[*storage.made_by + 1];
      Crossing& end = crossings[last_read + 1];
      begin = {begin.tensors + 1, begin.storages + s, begin.bytes + bytes};
      end = {end.tensors - 1, end.storages - s, end.bytes - bytes};
    }
    for (size_t i = 1; i < crossings.size(); ++i) {
      crossings[i].tensors += crossings[i - 1].tensors;
      crossings[i].storages += crossings[i - 1].storages;
      crossings[i].bytes += crossings[i - 1].bytes;
    }
    crossings.pop_back();
    return crossings;
  }

  // The latest tensors of a shape that were read, each once.
  using Known = std::deque<size_t>;

  // 0: it is no tensor, or not known; a scalar has 1.
  int64_t ElementsOf(const TensorOperation& operation, size_t input) const {
    return operation.shapes[input] < 0 ? 0 : ElementsOf(operation.shapes[input]);
  }
  int64_t ElementsOf(int32_t shape) const {
    int64_t elements = 1;
    for (const int64_t size : DimensionsOf(shape)) {
      if (size <= 0 || elements > kMostTensorElements / size) return 0;
      elements *= size;
    }
    return elements;
  }
  const std::vector<int64_t>& DimensionsOf(int32_t shape) const {
    return tensors_.shapes[static_cast<size_t>(shape)];
  }
  static int64_t BytesOfElement(const TensorOperation& operation, size_t input) {
    const int64_t bytes = operation.element_bytes[input];
    return bytes > 0 ? bytes : kBytesOfUnknownElement;
  }

  void AddBytes(int64_t bytes) { bytes_ = std::min(kMostSavedBytes, bytes_ + bytes); }

  void Count(int64_t bytes) {
    if (keeps_) AddBytes(bytes);
  }

  void Keep(size_t storage) {
    Storage& kept = storages_[storage];
    if (kept.is_parameter || !keeps_) return;
    if (!kept.is_kept) Count(std::max<int64_t>(0, kept.bytes));
    kept.is_kept = true;
  }

  // True if more is known of the shape than the number of its elements, and it is another one than
  // that of the tensor a view is of.
  bool IsSurely(const UnreadTensor& tensor, int32_t shape) const {
    const bool is_same = DimensionsOf(shape) == tensor.dimensions;
    const bool is_any = tensor.form == OutputForm::kView || tensor.form == OutputForm::kPart ||
                        tensor.form == OutputForm::kReduced || tensor.form == OutputForm::kAny;
    return !is_any && !(is_same && tensor.form == OutputForm::kPermuted) &&
           CanBe(tensor, shape, ElementsOf(shape));
  }

  bool CanBe(const UnreadTensor& tensor, int32_t shape, int64_t elements) const {
    const std::vector<int64_t>& dimensions = DimensionsOf(shape);
    switch (tensor.form) {
      case OutputForm::kSame:
        return std::equal(tensor.dimensions.begin(), tensor.dimensions.end(), dimensions.begin(),
                          dimensions.end(),
                          [](int64_t made, int64_t read) { return made == read || made < 0; });
      case OutputForm::kPermuted:
        return Sorted(dimensions) == Sorted(tensor.dimensions);
      case OutputForm::kSqueezed:
        return WithoutOnes(dimensions) == WithoutOnes(tensor.dimensions);
      case OutputForm::kExpanded:
        return IsExpanded(tensor.dimensions, dimensions);
      case OutputForm::kView:
        return tensor.elements == elements;
      case OutputForm::kPart:
        return tensor.elements % elements == 0;
      case OutputForm::kReduced:
        return IsReduced(tensor.dimensions, dimensions);
      default:
        return true;
    }
  }

  // The storage of an input.
  size_t Read(int32_t shape, int64_t element_bytes) {
    const int64_t elements = ElementsOf(shape);
    const size_t storage = Find(shape, elements);
    Storage& read = storages_[storage];
    read.last_read_by = Place();
    if (read.elements < 0) read.elements = elements;
    if (read.bytes < 0)
      read.bytes = read.elements * (element_bytes > 0 ? element_bytes : kBytesOfUnknownElement);
    AddBytes(std::exchange(read.index_bytes, 0) * read.elements);
    Known& known = known_[shape];
    std::erase(known, storage);
    known.push_back(storage);
    if (known.size() > kMostKnown) known.pop_front();
    return storage;
  }

  size_t Find(int32_t shape, int64_t elements) {
    for (const bool exactly : {true, false}) {
      for (auto tensor = unread_.rbegin(); tensor != unread_.rend(); ++tensor) {
        if (exactly ? !IsSurely(*tensor, shape) : !CanBe(*tensor, shape, elements)) continue;
        const size_t storage = tensor->storage;
        if (tensor->form == OutputForm::kPart) {
          if (tensor->parts_left == 0) tensor->parts_left = tensor->elements / elements;
          if (--tensor->parts_left > 0) return storage;
        }
        unread_.erase(std::next(tensor).base());
        return storage;
      }
    }
    if (const auto known = known_.find(shape); known != known_.end()) {
      const auto last = known->second.rend();
      const auto awaited = std::find_if(known->second.rbegin(), last, [this](size_t storage) {
        return storages_[storage].awaited > 0;
      });
      if (awaited != last) {
        --storages_[*awaited].awaited;
        return *awaited;
      }
      const auto kept = std::find_if(known->second.rbegin(), last,
                                     [this](size_t storage) { return storages_[storage].is_kept; });
      return kept == last ? known->second.back() : *kept;
    }
    storages_.push_back(
        {.elements = elements, .is_parameter = parameter_elements_.contains(elements)});
    return storages_.size() - 1;
  }

  void AddOutput(const TensorOperation& operation, const TensorRule& rule,
                 const std::array<std::optional<size_t>, TensorOperation::kInputs>& inputs) {
    // A reading that was not recorded, or of a scalar, makes nothing to keep.
    if (rule.output == OutputForm::kNone || (!rule.reads_all && ElementsOf(operation, 0) <= 1))
      return;
    UnreadTensor tensor;
    if (ElementsOf(operation, 0) > 0) tensor.dimensions = DimensionsOf(operation.shapes[0]);
    switch (rule.output) {
      case OutputForm::kView:
      case OutputForm::kPermuted:
      case OutputForm::kSqueezed:
      case OutputForm::kPart:
      case OutputForm::kExpanded:
        tensor.form = rule.output;
        [[fallthrough]];
      case OutputForm::kInPlace:
        if (!inputs[0]) return;
        tensor.storage = *inputs[0];
        tensor.elements = ElementsOf(operation, 0);
        runs_.back().changed = tensor.storage;
        break;
      case OutputForm::kLarger:
        if (ElementsOf(operation, 1) > ElementsOf(operation, 0))
          tensor.dimensions = DimensionsOf(operation.shapes[1]);
        break;
      case OutputForm::kChannels:
        ToImage(tensor.dimensions, ChannelsOf(operation));
        break;
      case OutputForm::kPooled:
        if (tensor.dimensions.size() > 1) ToImage(tensor.dimensions, tensor.dimensions[1]);
        break;
      case OutputForm::kProduct:
        tensor.dimensions = ProductOf(operation, rule);
        break;
      case OutputForm::kRows:
        tensor.dimensions = RowsOf(operation);
        break;
      case OutputForm::kReduced:
      case OutputForm::kAny:
        tensor.form = rule.output;
        break;
      default:
        break;
    }
    if (tensor.elements < 0) {
      tensor.storage = storages_.size();
      storages_.push_back({.index_bytes = keeps_ ? rule.index_bytes : 0, .made_by = Place()});
    }
    if (rule.keeps_output) {
      Storage& kept = storages_[tensor.storage];
      // The whole is kept for a part of it.
      kept.elements = std::max(kept.elements, ElementsOf(operation, 0));
      kept.bytes = std::max(kept.bytes, kept.elements * BytesOfElement(operation, 0));
      Keep(tensor.storage);
    }
    unread_.push_back(std::move(tensor));
    if (unread_.size() > kMostUnread) unread_.pop_front();
  }

  // A batch's has a mean for each channel, a layer's for each example and position. One without
  // weights has as many channels as its input, or is of its last dimension.
  int64_t MeansOf(const TensorOperation& operation, const TensorRule& rule) const {
    const int64_t elements = ElementsOf(operation, 0);
    int64_t weights = ElementsOf(operation, rule.statistics_input);
    if (rule.statistics_bytes == 0 || elements <= 1 || weights == 0) return 0;
    const bool is_of_batch = rule.statistics_input == 1;
    const std::vector<int64_t>& dimensions = DimensionsOf(operation.shapes[0]);
    if (weights == 1)
      weights = is_of_batch ? dimensions[dimensions.size() > 1 ? 1 : 0] : dimensions.back();
    return is_of_batch ? weights : elements / weights;
  }

  // Other sizes than the channels become unknown.
  static void ToImage(std::vector<int64_t>& dimensions, int64_t channels) {
    for (size_t i = 1; i < dimensions.size(); ++i) dimensions[i] = i == 1 ? channels : -1;
  }

  // Channels of a convolution's output; -1: it may be a transposed one.
  int64_t ChannelsOf(const TensorOperation& operation) const {
    if (operation.shapes[1] < 0) return -1;
    const std::vector<int64_t>& input = DimensionsOf(operation.shapes[0]);
    const std::vector<int64_t>& weights = DimensionsOf(operation.shapes[1]);
    if (input.size() < 2 || weights.size() < 2) return -1;
    const bool may_be_transposed =
        weights[0] == input[1] && weights[1] != input[1] && weights[1] != 1;
    return may_be_transposed ? -1 : weights[0];
  }

  std::vector<int64_t> ProductOf(const TensorOperation& operation, const TensorRule& rule) const {
    const size_t first = (rule.reads & kFirst) != 0 ? 0 : 1;
    if (ElementsOf(operation, first) == 0 || ElementsOf(operation, first + 1) == 0) return {};
    std::vector<int64_t> product = DimensionsOf(operation.shapes[first]);
    const std::vector<int64_t>& factor = DimensionsOf(operation.shapes[first + 1]);
    if (!product.empty() && !factor.empty()) product.back() = factor.back();
    return product;
  }

  std::vector<int64_t> RowsOf(const TensorOperation& operation) const {
    if (operation.shapes[1] < 0) return {};
    std::vector<int64_t> rows = DimensionsOf(operation.shapes[1]);
    const std::vector<int64_t>& table = DimensionsOf(operation.shapes[0]);
    rows.push_back(table.empty() ? -1 : table.back());
    return rows;
  }

  const TensorOperations& tensors_;
  const absl::flat_hash_set<int64_t>& parameter_elements_;
  std::vector<Storage> storages_;
  std::deque<UnreadTensor> unread_;            // the latest last
  absl::flat_hash_map<int32_t, Known> known_;  // by shape
  std::vector<OneRun> runs_;
  int64_t bytes_ = 0;
  int64_t operations_ = 0;
  int64_t run_again_ = 0;
  bool keeps_ = true;  // the operation that is run
  size_t piece_ = 0;   // its, if it runs again
  size_t piece_begin_ = 0;
};

std::string NameOf(const TensorOperations& tensors, const TensorOperation& operation) {
  if (operation.rule != kUnknownTensorRule) return std::string(TensorRuleAt(operation.rule).name);
  const std::string_view name = tensors.functions[static_cast<size_t>(operation.function)];
  return std::string(IsOfTensorLibrary(name) ? name.substr(kTensorLibrary.size()) : name);
}

std::vector<ForwardLink> LinksOf(const TensorOperations& tensors,
                                 const std::vector<const TensorOperation*>& run,
                                 const ForwardPass& pass) {
  std::vector<ForwardLink> links;
  std::vector<ForwardPass::Boundary> boundaries = pass.Boundaries();
  if (run.empty()) return links;
  boundaries.insert(boundaries.begin(), ForwardPass::Boundary{});
  for (size_t b = 0; b < boundaries.size(); ++b) {
    const bool is_last = b + 1 == boundaries.size();
    const size_t end = is_last ? run.size() : boundaries[b + 1].operation;
    const auto begin = run.begin() + static_cast<ptrdiff_t>(boundaries[b].operation);
    // Views of weights are a part of what reads them.
    auto named =
        std::find_if(begin, run.begin() + static_cast<ptrdiff_t>(end),
                     [](const TensorOperation* each) { return !IsView(TensorRuleAt(each->rule)); });
    if (named == run.begin() + static_cast<ptrdiff_t>(end)) named = begin;
    links.push_back({.name = NameOf(tensors, **named),
                     .start_ns = (*begin)->start_ns,
                     .first_sequence = (*begin)->sequence,
                     .kept_bytes = (is_last ? pass.Saved().bytes : boundaries[b + 1].kept_bytes) -
                                   boundaries[b].kept_bytes,
                     .output_bytes = is_last ? 0 : boundaries[b + 1].bytes});
  }
  return links;
}

}  // namespace

std::optional<uint8_t> RuleOfTensorOperation(std::string_view name) {
  if (!IsOfTensorLibrary(name)) return std::nullopt;
  name.remove_prefix(kTensorLibrary.size());
  return TensorRuleNamed(name);
}

SavedTensors FindSavedTensors(const TensorOperations& tensors, int64_t from_ns, int64_t to_ns,
                              const std::vector<BackwardNode>& nodes,
                              const absl::flat_hash_set<int64_t>& parameter_elements) {
  const std::vector<OuterOperation> outer = OuterOperations(tensors, from_ns, to_ns);
  const std::vector<size_t> again = PiecesRunAgain(tensors, outer, nodes);
  absl::flat_hash_map<int64_t, const BackwardNode*> undone;  // by sequence number
  for (const BackwardNode& node : nodes) undone.emplace(node.sequence, &node);
  absl::flat_hash_map<int64_t, size_t> last_of;  // likewise
  for (size_t i = 0; i < outer.size(); ++i) last_of[outer[i].operation->sequence] = i;
  ForwardPass pass(tensors, parameter_elements);
  std::vector<const TensorOperation*> run;
  for (size_t i = 0; i < outer.size(); ++i) {
    const int64_t sequence = outer[i].operation->sequence;
    const auto node = undone.find(sequence);
    if (node == undone.end() || last_of[sequence] != i) continue;
    run.push_back(outer[i].operation);
    pass.Run(*outer[i].operation, outer[i].mask_bytes, again[i], node->second->added);
  }
  SavedTensors saved = pass.Saved();
  saved.links = LinksOf(tensors, run, pass);
  return saved;
}

}  // namespace stepcast
