#include "client/cli/terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <sys/ioctl.h>

#include <string_view>

namespace stepcast::client {

Terminal TerminalOf(int file) {
  Terminal terminal;
  winsize size{};
  if (ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) terminal.columns = size.ws_col;
  if (const locale_t locale = newlocale(LC_CTYPE_MASK, "", nullptr); locale != nullptr) {
    terminal.utf8 = std::string_view(nl_langinfo_l(CODESET, locale)) == "UTF-8";
    freelocale(locale);
  }
  return terminal;
}

}  // namespace stepcast::client
