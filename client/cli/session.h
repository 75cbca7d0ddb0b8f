// A run of the program: its client, its console and its options, with which every command is run.
#pragma once

#include <chrono>
#include <ostream>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "client/cli/texts/flag_names.h"

#include "stepcast/client.h"

namespace stepcast::client {

enum class ExitCode : int {
  kDone = 0,
  kRefused = 1,  // by the service, or it could not be reached
  kMisused = 2,  // by whoever wrote the command
};

// The abilities of the terminal that standard output goes to.
struct Terminal {
  int columns = 80;
  bool utf8 = false;
};

// Terminal of an open file: its columns, 80 of anything else, and whether the environment's locale
// has UTF-8. Leaves the program's locale alone.
Terminal TerminalOf(int file);

// The output of the program. Borrowed. Answers go to `out`, everything else to `err`.
struct Console {
  std::ostream& out;
  std::ostream& err;
  bool err_is_terminal = false;
  Terminal terminal = {};  // that `out` is
  // That `err` is in the end, for the program's own control sequences; null: `err` takes them.
  std::ostream* controls = nullptr;
};

// The file that is standard output, where a flag names one to write.
inline constexpr char kStandardOutput[] = "-";

enum class OutputFormat { kTable, kJson };

struct Session {
  Client client;
  ClientOptions options = {};  // the client's
  // The time to wait for an answer that takes as long as it takes.
  std::chrono::nanoseconds patience = std::chrono::nanoseconds::max();
  bool local = false;  // profiles are files, and there is no store
  OutputFormat output = OutputFormat::kTable;
  const Console& console;
  TypedFlags typed = {};

  // Writes one of both: the reply as `json` or what `table` makes of it.
  template <typename Table>
  ExitCode Answer(const std::string& json, const Table& table) const {
    console.out << (output == OutputFormat::kJson ? json : table());
    return console.out.flush() ? ExitCode::kDone
                               : Refused(absl::DataLossError("the answer could not be written"));
  }
  // Answers with `content` in the file at `path` beside it. A path of "-" is standard output, and
  // the answer in words goes to standard error then; its JSON would stand in the same place, which
  // is misuse. An empty path is no file. Nothing else is answered if the file cannot be written.
  template <typename Table>
  ExitCode AnswerWithFile(const std::string& path, const std::string& content,
                          const std::string& json, const Table& table) const {
    const bool is_output = path == kStandardOutput;
    if (is_output && output == OutputFormat::kJson)
      return Misused("a file of - and the answer in JSON would both be standard output");
    if (!is_output)
      return Write(path, content) ? Answer(json, table) : Misused("cannot write " + path);
    console.err << table();
    return Answer(content, [&content] { return content; });
  }
  // Reports why the service did not answer.
  ExitCode Refused(const absl::Status& status) const;
  // Reports what is wrong with the command.
  ExitCode Misused(std::string_view why) const;

 private:
  // The file at `path`, if that is not empty. False: it could not be written.
  static bool Write(const std::string& path, const std::string& content);
};

// An error of the service, in lines for people: first `error: CODE: REASON: message`, then,
// indented, each violation on a line of its own, the limits reached, the resource, and when to try
// again. What the message repeats of violations is said once, and fields that flags have set are
// named by these. Ends of lines in the service's texts become spaces, and all else in them that
// drives a terminal is shown escaped.
std::string ErrorReport(const absl::Status& status, const TypedFlags& typed = {});

}  // namespace stepcast::client
