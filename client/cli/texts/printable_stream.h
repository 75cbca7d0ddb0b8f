// A stream on another one, to which nothing goes that drives a terminal.
//
// Names of files, of profiles and of their operations, and a server's texts, come from others. All
// output of the program passes through here, so no command has to think of it.
// Threads: none.
#pragma once

#include <ostream>
#include <streambuf>

#include "client/cli/texts/characters.h"

namespace stepcast::client {

class PrintableStream final : public std::ostream {
 public:
  // Borrows it.
  explicit PrintableStream(std::ostream& stream) : std::ostream(nullptr), buffer_(stream) {
    rdbuf(&buffer_);
  }

 private:
  // Unbuffered: what it stands on is.
  class Buffer final : public std::streambuf {
   public:
    explicit Buffer(std::ostream& out) : out_(out) {}
    ~Buffer() override { out_ << escaper_.Rest(); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

   protected:
    // NOLINTBEGIN(readability-identifier-naming): the standard's names.
    int_type overflow(int_type c) override;
    std::streamsize xsputn(const char* text, std::streamsize size) override;
    int sync() override;
    // NOLINTEND(readability-identifier-naming)

   private:
    std::ostream& out_;
    Escaper escaper_;
  };

  Buffer buffer_;
};

}  // namespace stepcast::client
