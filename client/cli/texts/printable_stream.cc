#include "client/cli/texts/printable_stream.h"

#include <string>
#include <string_view>

namespace stepcast::client {

PrintableStream::Buffer::int_type PrintableStream::Buffer::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char byte = traits_type::to_char_type(c);
  return xsputn(&byte, 1) == 1 ? c : traits_type::eof();
}

std::streamsize PrintableStream::Buffer::xsputn(const char* text, std::streamsize size) {
  out_ << escaper_.Next(std::string_view(text, static_cast<size_t>(size)));
  return out_.good() ? size : 0;
}

int PrintableStream::Buffer::sync() { return out_.flush().good() ? 0 : -1; }

}  // namespace stepcast::client
