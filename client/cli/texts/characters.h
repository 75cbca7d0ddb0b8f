// Texts that others chose, as characters that are safe to draw.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::client {

// The characters of a text in UTF-8. Bytes that are none become U+FFFD; what drives a terminal,
// turns the direction of writing or may not stand in XML is escaped: \x1b, \u202e.
std::u32string Characters(std::string_view text);

// A text in UTF-8 with all that escaped, and \xff for a byte that is of no character, for one line
// of a terminal. What is left is as it was.
std::string Escaped(std::string_view text);

// The same of a text of several lines, part by part: a character may begin in one part and end in
// the next. Ends of lines and tabs stay. Proto JSON, whose own escapes leave no control
// character of ASCII, stays JSON with the same meaning.
class Escaper {
 public:
  // The next part of the text, but for a character that it does not end.
  std::string Next(std::string_view part);
  // The begin of a character that the last part did not end.
  std::string Rest();

 private:
  std::string begun_;  // bytes of a character
};

// REQUIRES: characters from Characters, or of a literal.
std::string Utf8(std::u32string_view characters);

// At most `length` of them; the last one is U+2026 where some were cut off.
std::u32string Shortened(std::u32string_view characters, size_t length);

// A text as an error may repeat it: in double quotes, and no more than 60 of its characters.
std::string InQuotes(std::string_view text);

// "; did you mean X?" with the known word that is most like the one that was typed: a letter or two
// away, or with it as a part; empty where none is.
std::string Suggestion(std::string_view typed, const std::vector<std::string>& known);

// A stream on another one, to which nothing goes that drives a terminal.
//
// Names of files, of profiles and of their operations, and a server's texts, come from others. All
// output of the program passes through here, so no command has to think of it.
// Threads: none.
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
