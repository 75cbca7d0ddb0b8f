// The contents that follow the header of an upload: bytes in memory, or a spool.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/importing/common/byte_source.h"
#include "server/rpc/call_environment.h"
#include "stepcast/v1/profile_service.pb.h"

namespace stepcast::server {

// A spool of bytes that come in pieces and are read once all of them are there: in memory while
// they are few, then in a file that nobody else sees.
//
// The file has no name: it is gone with the spool, or with the process, however that ends.
// Failure: RESOURCE_EXHAUSTED, reason DISK_FULL, where the directory's disk is full; UNAVAILABLE,
// reason SPOOL_UNAVAILABLE, where it takes no more for another reason. Threads: none.
class Spool {
 public:
  // So many bytes a spool keeps in memory; what is larger is written to its file from the first
  // byte on.
  static constexpr size_t kMemoryBytes = size_t{4} << 20;

  // `directory`: for the file, if one is needed.
  explicit Spool(std::string directory) : directory_(std::move(directory)) {}
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  absl::Status Append(std::string_view bytes);
  int64_t size() const { return size_; }
  bool in_memory() const { return file_ < 0; }

  // Reads from the first byte on. Borrows the spool, to which nothing may be appended meanwhile.
  std::unique_ptr<ByteSource> Read() const;

 private:
  absl::Status MoveToFile();
  absl::Status Write(std::string_view bytes) const;
  absl::Status Failed(const char* doing, int error) const;

  const std::string directory_;
  std::string memory_;
  int file_ = -1;  // descriptor; -1: all is in memory
  int64_t size_ = 0;
};

// The bytes that follow the header of UploadProfile: in memory, up to the limit of a profile.
class CollectedBytes {
 public:
  using Request = v1::UploadProfileRequest;

  explicit CollectedBytes(const CallEnvironment& environment)
      : max_bytes_(environment.max_profile_bytes) {}

  // Takes the next message after the header; what it keeps counts in `share`.
  absl::Status Add(const Request::Header& header, const Request& request, ByteBudget::Share& share);

  // The bytes, or what they decompress to where they are compressed by gzip; that counts in
  // `share`, too, and against the same limit.
  absl::StatusOr<std::string> Take(ByteBudget::Share& share);

 private:
  const int64_t max_bytes_;
  std::string bytes_;
};

// The spools of an ImportProfile: a graph, if there is one, and one recording or several, which
// follow its header.
class SpooledImport {
 public:
  using Request = v1::ImportProfileRequest;

  explicit SpooledImport(const CallEnvironment& environment);

  // One of the recordings, and the name that came with it.
  struct NamedSource {
    std::unique_ptr<ByteSource> bytes;
    std::string name;
  };

  // Takes the next message after the header. Only what is in memory counts in `share`.
  // INVALID_ARGUMENT above the format's limit: that of a profile for a layer profile, which is read
  // as a whole, that of an import for all others.
  absl::Status Add(const Request::Header& header, const Request& request, ByteBudget::Share& share);

  // Their bytes, or what they decompress to where they are compressed by gzip, which is held to the
  // same limits; what is read as a whole counts in `share`. Failure: INVALID_ARGUMENT above a
  // limit, or where the compressed bytes are damaged. Null: there is no graph. Borrow all that is
  // named.
  // At least one recording.
  std::vector<NamedSource> Recordings(const Request::Header& header, ByteBudget::Share& share);
  std::unique_ptr<ByteSource> Graph(const Request::Header& header, ByteBudget::Share& share);

 private:
  // A spool's bytes, decompressed where they are compressed.
  class Gunzipped;

  // Check of so many bytes, recording and graph together.
  absl::Status CheckSize(const Request::Header& header, const char* field, int64_t size) const;

  struct NamedSpool {
    explicit NamedSpool(const std::string& directory) : spool(directory) {}

    Spool spool;
    std::string name;
  };

  absl::Status Begin(const Request::Recording& recording);
  // Sum over all spools, graph and recordings together.
  int64_t Size() const;
  int64_t SizeInMemory() const;

  const int64_t max_profile_bytes_;
  const int64_t max_import_bytes_;
  const std::string spool_directory_;
  std::deque<NamedSpool> recordings_;  // at least one
  bool are_named_ = false;             // each began with a message of its own
  Spool graph_;
  int64_t inflated_ = 0;
};

}  // namespace stepcast::server
