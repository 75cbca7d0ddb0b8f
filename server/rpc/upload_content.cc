#include "server/rpc/upload_content.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/importing/common/byte_source.h"
#include "core/importing/common/recording_import.h"
#include "core/model/profile.h"

namespace stepcast::server {

namespace {

// INVALID_ARGUMENT at `field`: all bytes together are above a limit. Not worth a repetition, hence
// no RESOURCE_EXHAUSTED.
absl::Status StreamTooLarge(const char* reason, const char* field, const char* limit,
                            int64_t max_bytes) {
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat(field, ": all together are above the limit ", limit, " = ", max_bytes),
      {.reason = reason,
       .metadata = {{limit, absl::StrCat(max_bytes)}},
       .faults = {{.field = field,
                   .description =
                       absl::StrCat("all together are above ", limit, " = ", max_bytes)}},
       .quota_subject = limit});
}

absl::Status NeitherHeaderNorChunk() {
  return FaultsError(
      "REQUEST_INVALID",
      {{.field = "content", .description = "a message with neither header nor chunk"}});
}

}  // namespace

absl::Status CollectedBytes::Add(const Request::Header& /*header*/, const Request& request,
                                 ByteBudget::Share& share) {
  if (!request.has_chunk()) return NeitherHeaderNorChunk();
  const std::string& chunk = request.chunk();
  if (static_cast<int64_t>(bytes_.size() + chunk.size()) > max_bytes_) {
    return StreamTooLarge("PROFILE_TOO_LARGE", "chunk", "max_profile_bytes", max_bytes_);
  }
  absl::Status admitted = share.Add(static_cast<int64_t>(chunk.size()));
  if (admitted.ok()) bytes_.append(chunk);
  return admitted;
}

absl::StatusOr<std::string> CollectedBytes::Take(ByteBudget::Share& share) {
  std::string compressed = std::exchange(bytes_, {});
  TextSource source(compressed);
  int64_t inflated = 0;
  GunzipSource bytes(source, {.admit =
                                  [&](int64_t more) {
                                    inflated += more;
                                    if (inflated > max_bytes_)
                                      return StreamTooLarge("PROFILE_TOO_LARGE", "chunk",
                                                            "max_profile_bytes", max_bytes_);
                                    return share.Add(more);
                                  },
                              .damaged =
                                  [](const std::string& why) {
                                    return FaultsError("PROFILE_MALFORMED",
                                                       {{.field = "chunk", .description = why}});
                                  }});
  std::string taken;
  std::array<char, size_t{64} << 10> block;
  while (true) {
    const absl::StatusOr<size_t> read = bytes.Read(block.data(), block.size());
    if (!read.ok()) return read.status();
    // Bytes that are not compressed need not be copied.
    if (inflated == 0) return *read == 0 ? std::string() : std::move(compressed);
    if (*read == 0) return taken;
    taken.append(block.data(), *read);
  }
}

SpooledImport::SpooledImport(const CallEnvironment& environment)
    : max_profile_bytes_(environment.max_profile_bytes),
      max_import_bytes_(environment.max_import_bytes),
      spool_directory_(environment.spool_directory),
      graph_(environment.spool_directory) {
  recordings_.emplace_back(spool_directory_);
}

int64_t SpooledImport::Size() const {
  int64_t size = graph_.size();
  for (const NamedSpool& recording : recordings_) size += recording.spool.size();
  return size;
}

int64_t SpooledImport::SizeInMemory() const {
  int64_t size = graph_.in_memory() ? graph_.size() : 0;
  for (const NamedSpool& recording : recordings_)
    size += recording.spool.in_memory() ? recording.spool.size() : 0;
  return size;
}

absl::Status SpooledImport::Begin(const Request::Recording& recording) {
  constexpr size_t kMaxNameBytes = 256;
  const auto refuse = [](const char* field, std::string description) {
    return FaultsError("REQUEST_INVALID",
                       {{.field = field, .description = std::move(description)}});
  };
  if (recording.name().size() > kMaxNameBytes) {
    return refuse("recording.name",
                  absl::StrCat(recording.name().size(), " bytes, which is above ", kMaxNameBytes));
  }
  if (!are_named_ && recordings_.front().spool.size() > 0)
    return refuse("recording", "after the first chunk: of several recordings each begins with one");
  if (are_named_) {
    if (recordings_.size() == kMaxRecordedWorkers) {
      return refuse("recording", absl::StrCat("more than ", kMaxRecordedWorkers, " recordings"));
    }
    recordings_.emplace_back(spool_directory_);
  }
  are_named_ = true;
  recordings_.back().name = recording.name();
  return absl::OkStatus();
}

absl::Status SpooledImport::Add(const Request::Header& header, const Request& request,
                                ByteBudget::Share& share) {
  if (request.has_recording()) return Begin(request.recording());
  const bool to_graph = request.has_graph_chunk();
  if (!to_graph && !request.has_chunk()) return NeitherHeaderNorChunk();
  const char* const field = to_graph ? "graph_chunk" : "chunk";
  if (to_graph && (are_named_ || recordings_.front().spool.size() > 0))
    return FaultsError("REQUEST_INVALID",
                       {{.field = field, .description = "after the first chunk"}});
  const std::string& bytes = to_graph ? request.graph_chunk() : request.chunk();
  Spool& spool = to_graph ? graph_ : recordings_.back().spool;
  const auto size = static_cast<int64_t>(bytes.size());
  if (absl::Status status = CheckSize(header, field, Size() + size); !status.ok()) return status;
  // What goes on to the file passes through memory as one message, which has a limit of its own.
  if (spool.in_memory()) {
    if (absl::Status admitted = share.Add(size); !admitted.ok()) return admitted;
  }
  const bool was_in_memory = spool.in_memory();
  absl::Status appended = spool.Append(bytes);
  if (was_in_memory && !spool.in_memory()) {
    share.Release();
    if (absl::Status admitted = share.Add(SizeInMemory()); !admitted.ok()) return admitted;
  }
  return appended;
}

class SpooledImport::Gunzipped final : public ByteSource {
 public:
  struct Place {
    const char* field;  // of the request
    const char* where;  // of faults of the bytes
  };

  Gunzipped(SpooledImport& import, const Spool& spool, const Place& place,
            const Request::Header& header, ByteBudget::Share& share)
      : spooled_(spool.Read()),
        bytes_(*spooled_,
               {.admit =
                    [&import, place, &header, &share](int64_t more) {
                      import.inflated_ += more;
                      absl::Status fits = import.CheckSize(header, place.field, import.inflated_);
                      return fits.ok() && header.has_layer_profile() ? share.Add(more) : fits;
                    },
                .damaged =
                    [place](const std::string& why) { return ImportFault(place.where, why); }}) {}

  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    return bytes_.Read(buffer, size);
  }

 private:
  const std::unique_ptr<ByteSource> spooled_;
  GunzipSource bytes_;
};

std::vector<SpooledImport::NamedSource> SpooledImport::Recordings(const Request::Header& header,
                                                                  ByteBudget::Share& share) {
  std::vector<NamedSource> sources;
  for (const NamedSpool& recording : recordings_) {
    sources.push_back(
        {.bytes = std::make_unique<Gunzipped>(
             *this, recording.spool, Gunzipped::Place{.field = "chunk", .where = kAtRecording},
             header, share),
         .name = recording.name});
  }
  return sources;
}

std::unique_ptr<ByteSource> SpooledImport::Graph(const Request::Header& header,
                                                 ByteBudget::Share& share) {
  if (graph_.size() == 0) return nullptr;
  return std::make_unique<Gunzipped>(
      *this, graph_, Gunzipped::Place{.field = "graph_chunk", .where = kAtGraph}, header, share);
}

absl::Status SpooledImport::CheckSize(const Request::Header& header, const char* field,
                                      int64_t size) const {
  if (header.has_layer_profile() && size > max_profile_bytes_)
    return StreamTooLarge("PROFILE_TOO_LARGE", field, "max_profile_bytes", max_profile_bytes_);
  if (size > max_import_bytes_)
    return StreamTooLarge("IMPORT_TOO_LARGE", field, "max_import_bytes", max_import_bytes_);
  return absl::OkStatus();
}

}  // namespace stepcast::server
