#include "server/rpc/upload_content.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/importing/common/byte_source.h"
#include "core/importing/common/recording_import.h"
#include "core/model/profile.h"
#include "server/store/disk.h"

namespace stepcast::server {

namespace {

constexpr mode_t kOwnerOnly = 0600;

int OpenUnnamed(const std::string& directory) {
  const int file = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kOwnerOnly);
  if (file >= 0) return file;
  // Not every file system has files without a name.
  std::string name = directory + "/import-XXXXXX";
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) unlink(name.c_str());
  return named;
}

// Several may read one file: none moves its position.
class FileSource final : public ByteSource {
 public:
  explicit FileSource(int file) : file_(file) {}

  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    ssize_t read = 0;
    do {
      read = pread(file_, buffer, size, at_);
    } while (read < 0 && errno == EINTR);
    if (read < 0) {
      return MakeError(
          absl::StatusCode::kUnavailable,
          absl::StrCat("cannot read what was imported: ", std::generic_category().message(errno)),
          {.reason = "SPOOL_UNAVAILABLE"});
    }
    at_ += read;
    return static_cast<size_t>(read);
  }

 private:
  const int file_;
  off_t at_ = 0;
};

}  // namespace

Spool::~Spool() {
  if (file_ >= 0) close(file_);
}

absl::Status Spool::Failed(const char* doing, int error) const {
  if (MeansDiskFull(error)) {
    return DiskFull({.where = absl::StrCat("the disk of ", directory_, ", where imports wait,"),
                     .todo = "free some of it, make it larger, or import here with --save",
                     .metadata = {{"directory", directory_},
                                  {"cause", std::generic_category().message(error)}}});
  }
  return MakeError(absl::StatusCode::kUnavailable,
                   absl::StrCat("cannot ", doing, " a temporary file for the import in ",
                                directory_, ": ", std::generic_category().message(error)),
                   {.reason = "SPOOL_UNAVAILABLE"});
}

absl::Status Spool::Append(std::string_view bytes) {
  if (in_memory() && memory_.size() + bytes.size() > kMemoryBytes) {
    if (absl::Status status = MoveToFile(); !status.ok()) return status;
  }
  size_ += static_cast<int64_t>(bytes.size());
  if (!in_memory()) return Write(bytes);
  memory_.append(bytes);
  return absl::OkStatus();
}

absl::Status Spool::MoveToFile() {
  file_ = OpenUnnamed(directory_);
  if (file_ < 0) return Failed("create", errno);
  absl::Status written = Write(memory_);
  std::string().swap(memory_);
  return written;
}

absl::Status Spool::Write(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return Failed("write", errno);
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

std::unique_ptr<ByteSource> Spool::Read() const {
  if (in_memory()) return std::make_unique<TextSource>(memory_);
  return std::make_unique<FileSource>(file_);
}

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
  // Bytes that go on to the file pass through memory as one message, which has a limit of its own.
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
