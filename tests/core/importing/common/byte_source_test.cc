#include "core/importing/common/byte_source.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <random>
#include <string>

namespace stepcast::byte_source_test {
namespace {

std::string Gzipped(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = static_cast<Bytef*>(static_cast<void*>(const_cast<char*>(text.data())));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = static_cast<Bytef*>(static_cast<void*>(out.data()));
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

// Gives its bytes in pieces of at most so many.
class PieceSource final : public ByteSource {
 public:
  PieceSource(std::string text, size_t piece)
      : text_(std::move(text)), source_(text_), piece_(piece) {}
  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    return source_.Read(buffer, std::min(size, piece_));
  }

 private:
  const std::string text_;
  TextSource source_;
  const size_t piece_;
};

struct Outcome {
  absl::Status status;
  std::string text;
  int64_t admitted = 0;
};

Outcome ReadAll(const std::string& bytes, size_t piece = 1000, size_t asked = 1000,
                int64_t most = int64_t{1} << 40) {
  PieceSource source(bytes, piece);
  Outcome outcome;
  GunzipSource gunzip(source,
                      {.admit =
                           [&](int64_t more) {
                             outcome.admitted += more;
                             return outcome.admitted > most ? absl::OutOfRangeError("too much")
                                                            : absl::OkStatus();
                           },
                       .damaged = [](const std::string& why) { return absl::DataLossError(why); }});
  std::string buffer(asked, '\0');
  while (true) {
    const absl::StatusOr<size_t> read = gunzip.Read(buffer.data(), buffer.size());
    outcome.status = read.status();
    if (!read.ok() || *read == 0) return outcome;
    outcome.text.append(buffer, 0, *read);
  }
}

std::string Noise(size_t size) {
  std::mt19937 random(7);
  std::string text(size, '\0');
  std::generate(text.begin(), text.end(), [&] { return static_cast<char>(random() % 16); });
  return text;
}

TEST(GunzipSourceTest, WhatIsNotCompressedGoesOnAsItIs) {
  for (const std::string& text : {std::string(), std::string("x"), std::string("\x1f"),
                                  std::string("\x1f\x8a no"), Noise(200'000)}) {
    for (const size_t piece : {1U, 7U, 100'000U}) {
      const Outcome outcome = ReadAll(text, piece);
      EXPECT_TRUE(outcome.status.ok()) << outcome.status;
      EXPECT_EQ(outcome.text, text);
      EXPECT_EQ(outcome.admitted, 0);
    }
  }
}

TEST(GunzipSourceTest, CompressedBytesAreDecompressedWhateverTheirPieces) {
  for (const std::string& text :
       {std::string(), std::string("x"), std::string(300'000, 'a'), Noise(200'000)}) {
    for (const size_t piece : {1U, 13U, 100'000U}) {
      for (const size_t asked : {1U + text.size() / 1000, size_t{70'000}}) {
        const Outcome outcome = ReadAll(Gzipped(text), piece, asked);
        EXPECT_TRUE(outcome.status.ok()) << outcome.status;
        EXPECT_EQ(outcome.text, text);
        EXPECT_EQ(outcome.admitted, static_cast<int64_t>(text.size()));
      }
    }
  }
}

TEST(GunzipSourceTest, SeveralMembersAreOne) {
  EXPECT_EQ(ReadAll(Gzipped("one ") + Gzipped("two ") + Gzipped("three")).text, "one two three");
}

TEST(GunzipSourceTest, WhatIsCutShortOrDamagedIsSaidToBe) {
  const std::string whole = Gzipped(Noise(50'000));
  for (const size_t size : {size_t{2}, size_t{9}, size_t{20}, whole.size() / 2, whole.size() - 1}) {
    const Outcome outcome = ReadAll(whole.substr(0, size));
    EXPECT_EQ(outcome.status, absl::DataLossError("its gzip data is cut short")) << size;
  }
  std::string damaged = whole;
  damaged[whole.size() / 2] = static_cast<char>(~damaged[whole.size() / 2]);
  EXPECT_FALSE(ReadAll(damaged).status.ok());
  EXPECT_EQ(ReadAll(whole + "no member").status, absl::DataLossError("its gzip data is damaged"));
}

// A thousand times as much as was sent.
TEST(GunzipSourceTest, ALittleThatBecomesMuchEndsAtTheLimit) {
  const std::string bomb = Gzipped(std::string(size_t{32} << 20, '\0'));
  ASSERT_LT(bomb.size(), size_t{40} << 10);
  const Outcome outcome = ReadAll(bomb, 1000, 4096, 100'000);
  EXPECT_EQ(outcome.status, absl::OutOfRangeError("too much"));
  EXPECT_LE(outcome.text.size(), 100'000U);
}

}  // namespace
}  // namespace stepcast::byte_source_test
