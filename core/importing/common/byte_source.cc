#include "core/importing/common/byte_source.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace stepcast {

namespace {

constexpr unsigned char kMagic[] = {0x1f, 0x8b};

Bytef* Bytes(char* bytes) { return static_cast<Bytef*>(static_cast<void*>(bytes)); }

}  // namespace

// zlib's state, between two members of the input or within one.
class GunzipSource::Inflater {
 public:
  Inflater() { is_ready_ = inflateInit2(&stream_, kGzip) == Z_OK; }
  ~Inflater() {
    if (is_ready_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  bool is_ready() const { return is_ready_; }
  bool is_within() const { return is_within_; }

  // Moves on in both; false: the input is damaged.
  bool Run(char*& in, size_t& in_size, char*& out, size_t& out_size) {
    if (!is_within_ && inflateReset(&stream_) != Z_OK) return false;
    is_within_ = true;
    stream_.next_in = Bytes(in);
    stream_.avail_in =
        static_cast<uInt>(std::min<size_t>(in_size, std::numeric_limits<uInt>::max()));
    stream_.next_out = Bytes(out);
    stream_.avail_out =
        static_cast<uInt>(std::min<size_t>(out_size, std::numeric_limits<uInt>::max()));
    const uInt in_before = stream_.avail_in;
    const uInt out_before = stream_.avail_out;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    in += in_before - stream_.avail_in;
    in_size -= in_before - stream_.avail_in;
    out += out_before - stream_.avail_out;
    out_size -= out_before - stream_.avail_out;
    if (result == Z_STREAM_END) is_within_ = false;
    return result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR;
  }

 private:
  static constexpr int kGzip = 15 + 16;  // the largest window, and a header of gzip

  z_stream stream_{};
  bool is_ready_ = false;
  bool is_within_ = false;  // a member has begun and not ended
};

GunzipSource::GunzipSource(ByteSource& source, Options options)
    : source_(source), options_(std::move(options)) {}

GunzipSource::~GunzipSource() = default;

absl::StatusOr<size_t> GunzipSource::Read(char* buffer, size_t size) {
  if (absl::Status status = Begin(); !status.ok()) return status;
  if (inflater_ != nullptr) return Inflate(buffer, size);
  if (at_ == size_) return source_.Read(buffer, size);
  const size_t taken = std::min(size, size_ - at_);
  std::memcpy(buffer, block_.data() + at_, taken);
  at_ += taken;
  return taken;
}

absl::Status GunzipSource::Fill() {
  const absl::StatusOr<size_t> read = source_.Read(block_.data(), block_.size());
  at_ = 0;
  size_ = read.value_or(0);
  return read.status();
}

// Looks at the first bytes.
absl::Status GunzipSource::Begin() {
  if (is_begun_) return absl::OkStatus();
  is_begun_ = true;
  while (size_ < sizeof(kMagic)) {
    const absl::StatusOr<size_t> read = source_.Read(block_.data() + size_, block_.size() - size_);
    if (!read.ok()) return read.status();
    if (*read == 0) break;
    size_ += *read;
  }
  if (size_ < sizeof(kMagic) || std::memcmp(block_.data(), kMagic, sizeof(kMagic)) != 0)
    return absl::OkStatus();
  inflater_ = std::make_unique<Inflater>();
  return inflater_->is_ready() ? absl::OkStatus()
                               : absl::ResourceExhaustedError("no memory to decompress with");
}

absl::StatusOr<size_t> GunzipSource::Inflate(char* buffer, size_t size) {
  char* out = buffer;
  size_t room = size;
  while (out == buffer) {
    if (at_ == size_) {
      if (absl::Status status = Fill(); !status.ok()) return status;
      if (size_ == 0) {
        if (inflater_->is_within()) return options_.damaged("its gzip data is cut short");
        return 0;
      }
    }
    char* in = block_.data() + at_;
    size_t left = size_ - at_;
    const bool is_sound = inflater_->Run(in, left, out, room);
    at_ = size_ - left;
    if (!is_sound) return options_.damaged("its gzip data is damaged");
  }
  const auto inflated = static_cast<size_t>(out - buffer);
  if (absl::Status admitted = options_.admit(static_cast<int64_t>(inflated)); !admitted.ok())
    return admitted;
  return inflated;
}

}  // namespace stepcast
