#include "core/importing/pytorch/gradient_buckets.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "core/importing/common/recording_import.h"

namespace stepcast {

std::vector<size_t> AssignBuckets(const std::vector<int64_t>& gradient_bytes, const Buckets& rule) {
  std::vector<size_t> counts;
  size_t count = 0;
  int64_t bytes = 0;
  for (const int64_t gradient : gradient_bytes) {
    ++count;
    bytes += gradient;
    if (bytes < (counts.empty() ? rule.first_bytes : rule.cap_bytes)) continue;
    counts.push_back(count);
    count = 0;
    bytes = 0;
  }
  if (count > 0) counts.push_back(count);
  return counts;
}

std::optional<BucketMembers> FindBucketMembers(const std::vector<int64_t>& gradients,
                                               const std::vector<int64_t>& buckets) {
  int64_t left = std::accumulate(buckets.begin(), buckets.end(), int64_t{0});
  size_t skipped = gradients.size();
  while (skipped > 0 && left > 0) left -= gradients[--skipped];
  if (left != 0) return std::nullopt;
  BucketMembers members{.skipped = skipped};
  size_t next = skipped;
  for (const int64_t bucket : buckets) {
    const size_t first = next;
    for (int64_t bytes = 0; bytes < bucket;) {
      bytes += gradients[next++];
      if (bytes > bucket) return std::nullopt;
    }
    members.counts.push_back(next - first);
  }
  return members;
}

namespace {

constexpr int64_t kMaxPowerSgdRank = 64;

// Elements sent at some rank; a matrix is compressed where that saves more than `least_rate`.
int64_t PowerSgdElements(const std::vector<GradientShape>& gradients, int64_t rank,
                         double least_rate) {
  int64_t sum = 0;
  for (const GradientShape& gradient : gradients) {
    const int64_t rows = std::max<int64_t>(gradient.rows, 1);
    const int64_t columns = gradient.elements / rows;
    const int64_t thin = (rows + columns) * std::min({rows, columns, rank});
    const bool is_compressed =
        rows * columns == gradient.elements &&
        static_cast<double>(thin) * least_rate < static_cast<double>(gradient.elements);
    sum += is_compressed ? thin : gradient.elements;
  }
  return sum;
}

// Two matrices of a rank times the side of the least square that a bucket fits into, for each.
bool IsBatchedPowerSgd(int64_t elements, std::vector<int64_t> sent, int64_t rank) {
  std::sort(sent.begin(), sent.end());
  int64_t least = 0;
  int64_t most = 0;
  for (size_t i = 0; i + 1 < sent.size(); i += 2) {
    const int64_t side = sent[i] / rank;
    if (sent[i] != sent[i + 1] || sent[i] % rank != 0 || side > INT32_MAX) return false;
    if (most > elements) return false;
    least += (side - 1) * (side - 1) + 1;
    most += side * side;
  }
  return sent.size() % 2 == 0 && least <= elements && elements <= most;
}

}  // namespace

int64_t PowerSgdRank(const std::vector<GradientShape>& gradients,
                     const std::vector<int64_t>& sent) {
  int64_t elements = 0;
  for (const GradientShape& gradient : gradients) elements += gradient.elements;
  const int64_t sum = std::accumulate(sent.begin(), sent.end(), int64_t{0});
  constexpr size_t kMostGradients = size_t{1} << 14;
  if (sum >= elements || sent.size() < 2 || gradients.size() > kMostGradients) return 0;
  for (int64_t rank = 1; rank <= kMaxPowerSgdRank; ++rank) {
    // By default 2.
    for (const double least_rate : {2.0, 1.0, 0.5, 1.5, 3.0, 4.0, 5.0, 8.0, 10.0}) {
      if (PowerSgdElements(gradients, rank, least_rate) == sum) return rank;
    }
    if (IsBatchedPowerSgd(elements, sent, rank)) return rank;
  }
  return 0;
}

std::optional<CapRange> CapsThatMake(const std::vector<int64_t>& gradient_bytes,
                                     const std::vector<size_t>& counts) {
  CapRange caps{.most = INT64_MAX};
  size_t next = 0;
  for (size_t bucket = 0; bucket < counts.size(); ++bucket) {
    int64_t bytes = 0;
    for (size_t i = 0; i < counts[bucket]; ++i) bytes += gradient_bytes[next++];
    if (bucket == 0 || counts[bucket] == 0) continue;
    // It was open before its last gradient, and closed after it.
    caps.least = std::max(caps.least, bytes - gradient_bytes[next - 1] + 1);
    if (bucket + 1 < counts.size()) caps.most = std::min(caps.most, bytes);
  }
  if (caps.least > caps.most) return std::nullopt;
  return caps;
}

CapRange FirstLimitsThatMake(const std::vector<int64_t>& gradient_bytes,
                             const std::vector<size_t>& counts) {
  const auto end = gradient_bytes.begin() + static_cast<ptrdiff_t>(counts.front());
  const int64_t bytes = std::accumulate(gradient_bytes.begin(), end, int64_t{0});
  const int64_t last = counts.front() == 0 ? 0 : *(end - 1);
  return {.least = bytes - last + 1, .most = counts.size() > 1 ? bytes : INT64_MAX};
}

namespace {

// The all-reduces that are looked at.
struct BucketCandidates {
  int32_t group = -1;  // -1: of any
  bool are_whole = false;
  bool are_of_hooks = false;  // launched by hooks of gradients

  bool Has(const SentTensor& tensor) const {
    return tensor.kind == Collective::kAllReduce && tensor.is_whole == are_whole &&
           (group < 0 || tensor.group == group) && (!are_of_hooks || tensor.is_of_hook);
  }
};

// The places of those all-reduces that consecutive gradients add up to, in order, up to the last
// one. None where they do not, or where sizes are not known. Gradients before them are those of
// micro-steps that only accumulate, of which there are as many again, or were all that were left
// over. Cost: linear in the all-reduces, times at most kMostPlaces.
std::optional<std::vector<size_t>> MatchOf(const StepContent& content,
                                           const BucketCandidates& among) {
  constexpr int64_t kMostElements = int64_t{1} << 36;
  constexpr size_t kMostPlaces = 64;
  struct Node {
    size_t gradient;
    int64_t after;  // the node that was before it, from the end; -1: none
    size_t sent;
  };
  std::vector<int64_t> until(1, 0);
  for (const Gradient& gradient : content.gradients) {
    if (gradient.elements < 1 || gradient.elements > kMostElements) return std::nullopt;
    until.push_back(until.back() + gradient.elements);
  }
  std::vector<Node> nodes = {{.gradient = content.gradients.size(), .after = -1, .sent = 0}};
  std::vector<size_t> reached = {0};
  size_t candidates = 0;
  for (size_t i = content.end_bucket; i-- > content.first_bucket;) {
    const SentTensor& tensor = content.sent[i];
    if (!among.Has(tensor) || tensor.elements < 1 || tensor.elements > kMostElements) continue;
    ++candidates;
    const size_t before = reached.size();
    for (size_t k = 0; k < before && reached.size() < kMostPlaces; ++k) {
      const size_t gradient = nodes[reached[k]].gradient;
      const auto begin =
          std::lower_bound(until.begin(), until.end(), until[gradient] - tensor.elements);
      if (begin == until.end() || *begin != until[gradient] - tensor.elements) continue;
      const auto at = static_cast<size_t>(begin - until.begin());
      if (std::any_of(reached.begin(), reached.end(),
                      [&](size_t node) { return nodes[node].gradient == at; }))
        continue;
      nodes.push_back({.gradient = at, .after = static_cast<int64_t>(reached[k]), .sent = i});
      reached.push_back(nodes.size() - 1);
    }
  }
  const size_t best = *std::min_element(reached.begin(), reached.end(), [&](size_t a, size_t b) {
    return nodes[a].gradient < nodes[b].gradient;
  });
  std::vector<size_t> match;
  for (auto node = static_cast<int64_t>(best); nodes[static_cast<size_t>(node)].after >= 0;
       node = nodes[static_cast<size_t>(node)].after)
    match.push_back(nodes[static_cast<size_t>(node)].sent);
  const size_t skipped = nodes[best].gradient;
  const size_t taken = content.gradients.size() - skipped;
  if (taken == 0) return std::nullopt;
  const int64_t bytes = until.back() - until[skipped];
  const bool is_again =
      skipped % taken == 0 && until[skipped] == static_cast<int64_t>(skipped / taken) * bytes;
  if (!is_again && match.size() != candidates) return std::nullopt;
  return match;
}

// The same, of what hooks launched before anything else: what else has the size of a bucket is not
// mistaken for it.
std::optional<std::vector<size_t>> LikelyMatchOf(const StepContent& content,
                                                 BucketCandidates among) {
  among.are_of_hooks = true;
  std::optional<std::vector<size_t>> match = MatchOf(content, among);
  among.are_of_hooks = false;
  return match ? match : MatchOf(content, among);
}

// Maps of unused parameters after the last bucket, and the last gradient; and all steps as the
// first, where threads ran what was launched one after the other in another order.
void PutInOrder(std::vector<StepContent>& steps) {
  std::vector<SentTensor> usual;
  for (StepContent& content : steps) {
    const auto begin = content.sent.begin() + static_cast<ptrdiff_t>(content.first_bucket);
    const auto end = content.sent.begin() + static_cast<ptrdiff_t>(content.end_bucket);
    std::vector<int64_t> launches;
    const auto others = std::stable_partition(begin, end, [](const SentTensor& tensor) {
      return tensor.kind != Collective::kAllReduce || !tensor.is_whole;
    });
    for (auto each = begin; each != others; ++each) launches.push_back(each->launch_ns);
    for (auto each = others; each != end && !launches.empty(); ++each) {
      each->launch_ns =
          std::max({each->launch_ns, launches.back() + 1, content.gradients.back().end_ns});
    }
    if (usual.empty()) usual = content.sent;
    std::vector<SentTensor> ordered;
    for (const SentTensor& like : usual) {
      const auto is_like = [&like](const SentTensor& each) {
        return each.kind == like.kind && each.elements == like.elements &&
               each.group == like.group && each.is_whole == like.is_whole;
      };
      auto same =
          std::find_if(content.sent.begin(), content.sent.end(), [&](const SentTensor& each) {
            return is_like(each) && each.is_of_hook == like.is_of_hook;
          });
      if (same == content.sent.end())
        same = std::find_if(content.sent.begin(), content.sent.end(), is_like);
      if (same == content.sent.end()) break;
      ordered.push_back(*same);
      content.sent.erase(same);
    }
    ordered.insert(ordered.end(), content.sent.begin(), content.sent.end());
    content.sent = std::move(ordered);
    for (size_t i = 0; i < launches.size(); ++i)
      content.sent[content.first_bucket + i].launch_ns = launches[i];
  }
}

// By place, those that may be buckets where gradients do not add up to them.
std::vector<size_t> BucketsByLaunch(const StepContent& content) {
  const auto has_size = [](const SentTensor& tensor) { return tensor.elements >= 0; };
  const auto first = content.sent.begin() + static_cast<ptrdiff_t>(content.first_bucket);
  const auto end = content.sent.begin() + static_cast<ptrdiff_t>(content.end_bucket);
  const bool are_sizes_known = std::any_of(first, end, has_size);
  const bool are_of_hooks =
      std::any_of(first, end, [](const SentTensor& tensor) { return tensor.is_of_hook; });
  const bool has_scalar =
      std::any_of(content.gradients.begin(), content.gradients.end(),
                  [](const Gradient& gradient) { return gradient.elements == 1; });
  std::vector<size_t> buckets;
  int64_t last_ns = INT64_MIN;  // the last bucket's launch
  for (auto tensor = first; tensor != end; ++tensor) {
    const bool is_scalar = tensor->elements == 1 && !has_scalar;
    if (tensor->kind != Collective::kAllReduce || tensor->is_whole || is_scalar ||
        tensor->elements == 0 || has_size(*tensor) != are_sizes_known)
      continue;
    const bool has_gradient = std::any_of(
        content.gradients.begin(), content.gradients.end(), [&](const Gradient& gradient) {
          return gradient.start_ns > last_ns && gradient.start_ns <= tensor->launch_ns;
        });
    // A bucket of unused parameters alone is launched by the hook that launched the one before it.
    if (are_of_hooks ? !tensor->is_of_hook : !has_gradient) continue;
    last_ns = tensor->launch_ns;
    buckets.push_back(static_cast<size_t>(tensor - content.sent.begin()));
  }
  return buckets;
}

// Passes stay before and after which buckets are sent; micro-steps that only accumulate are a part
// of the pass after them.
void KeepSendingPasses(StepContent& content) {
  const std::vector<SentTensor> buckets = content.buckets();
  ptrdiff_t sent = 0;
  std::erase_if(content.later_passes_ns, [&](int64_t begin_ns) {
    const ptrdiff_t before =
        std::count_if(buckets.begin(), buckets.end(),
                      [begin_ns](const SentTensor& bucket) { return bucket.launch_ns < begin_ns; });
    const bool sends = before > sent && before < std::ssize(buckets);
    if (sends) sent = before;
    return !sends;
  });
}

}  // namespace

bool AddUpToGradients(const StepContent& content, int32_t group) {
  return LikelyMatchOf(content, {.group = group}).has_value();
}

void ChooseBuckets(std::vector<StepContent>& steps) {
  PutInOrder(steps);
  const StepContent& content = steps.front();
  const bool are_all_whole =
      std::all_of(content.sent.begin() + static_cast<ptrdiff_t>(content.first_bucket),
                  content.sent.begin() + static_cast<ptrdiff_t>(content.end_bucket),
                  [](const SentTensor& tensor) { return tensor.is_whole; });
  // A hook sends them so that makes whole numbers of gradients.
  std::optional<std::vector<size_t>> buckets = LikelyMatchOf(content, {.are_whole = are_all_whole});
  if (!buckets) buckets = BucketsByLaunch(content);
  for (StepContent& each : steps) {
    for (const size_t i : *buckets) each.sent[i].is_bucket = true;
    KeepSendingPasses(each);
  }
}

// Sizes of thin matrices that follow from each other do not tell what other buckets would send.
absl::Status CheckHook(const StepContent& content) {
  std::vector<int64_t> sent;
  for (size_t i = content.first_bucket; i < content.end_bucket; ++i) {
    const SentTensor& tensor = content.sent[i];
    if (BucketCandidates{}.Has(tensor) && tensor.elements > 0) sent.push_back(tensor.elements);
  }
  std::vector<GradientShape> shapes;
  int64_t elements = 0;
  for (const Gradient& gradient : content.gradients) {
    shapes.push_back({.rows = gradient.rows, .elements = gradient.elements});
    elements += gradient.elements;
  }
  const int64_t rank = PowerSgdRank(shapes, sent);
  if (rank == 0) return absl::OkStatus();
  return ImportFault(
      kAtRecording,
      absl::StrCat(
          "its ", sent.size(), " all-reduces a step are those of PowerSGD of rank ", rank, ": ",
          std::accumulate(sent.begin(), sent.end(), int64_t{0}), " elements for gradients of ",
          elements,
          ", the second part of a bucket after the first has come; record steps before "
          "start_powerSGD_iter, or without register_comm_hook, and the gradients' buckets are "
          "there"));
}

bool AreCompressed(const std::vector<Gradient>& gradients, const std::vector<SentTensor>& buckets) {
  return std::any_of(buckets.begin(), buckets.end(), [&gradients](const SentTensor& bucket) {
    return bucket.element_bytes > 0 &&
           std::none_of(gradients.begin(), gradients.end(), [&bucket](const Gradient& gradient) {
             return gradient.element_bytes == bucket.element_bytes;
           });
  });
}

std::optional<double> SentShare(const std::vector<Gradient>& gradients,
                                const std::vector<SentTensor>& buckets) {
  const int16_t sent = buckets.front().element_bytes;
  const int16_t whole = gradients.front().element_bytes;
  const bool are_alike =
      sent > 0 && whole >= sent &&
      std::all_of(buckets.begin(), buckets.end(),
                  [sent](const SentTensor& bucket) { return bucket.element_bytes == sent; }) &&
      std::all_of(gradients.begin(), gradients.end(),
                  [whole](const Gradient& gradient) { return gradient.element_bytes == whole; });
  if (!are_alike) return std::nullopt;
  return static_cast<double>(sent) / static_cast<double>(whole);
}

std::string NoteOfOtherAllReduces(const StepContent& content) {
  constexpr ptrdiff_t kMostListed = 8;
  std::vector<std::string> others;
  for (const SentTensor& tensor : content.sent) {
    if (tensor.is_bucket || tensor.kind != Collective::kAllReduce || tensor.elements == 0) continue;
    others.push_back(absl::StrCat(tensor.bytes(), " bytes",
                                  tensor.is_whole
                                      ? " (whole numbers, as a map of unused parameters)"
                                  : tensor.elements < 0 ? " (its size was not recorded)"
                                                        : ""));
  }
  if (others.empty()) return "";
  const auto count = static_cast<ptrdiff_t>(others.size());
  return absl::StrCat(
      "Found beside the buckets, and no gradients: ", count, " all-reduce", count == 1 ? "" : "s",
      " a step of ",
      absl::StrJoin(others.begin(), others.begin() + std::min(kMostListed, count), ", "),
      count > kMostListed ? ", ..." : "", "; they stay collectives of their own.");
}

}  // namespace stepcast
