#include "client/cli/texts/printable_stream.h"

#include <gtest/gtest.h>

#include <sstream>

namespace stepcast::client::printable_stream_test {
namespace {

TEST(PrintableStreamTest, NothingThatDrivesATerminalPasses) {
  std::ostringstream sink;
  {
    PrintableStream out(sink);
    out << "a\x1b[2J" << 'b' << '\xc2' << '\x9b' << 12 << "\tc\n\r\xe4\xb8"
        << "\xad\u202e" << std::flush;
    EXPECT_EQ(sink.str(), "a\\x1b[2Jb\\u009b12\tc\n\\x0d\u4e2d\\u202e");
    out << "\xf0\x9f";
  }
  EXPECT_EQ(sink.str(), "a\\x1b[2Jb\\u009b12\tc\n\\x0d\u4e2d\\u202e\\xf0\\x9f");
}

TEST(PrintableStreamTest, AFailureBelowIsAFailure) {
  std::ostringstream sink;
  PrintableStream out(sink);
  sink.setstate(std::ios::badbit);
  out << "a" << std::flush;
  EXPECT_FALSE(out.good());
}

}  // namespace
}  // namespace stepcast::client::printable_stream_test
