// The program on files, without a server: a fixture with a folder and a profile in it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "stepcast/json.h"
#include "tests/client/support/program.h"
#include "tests/client/support/temporary_directory.h"
#include "tests/client/support/tiny_profile.h"

namespace stepcast::client {

// A benchmark of collectives: 2 (W - 1) (10 us + bytes / (W x 1 GB/s)).
inline constexpr char kBenchmark[] =
    "kind,workers,size_bytes,seconds\n"
    "ALL_REDUCE,2,10000,30e-6\nALL_REDUCE,2,1000000,1020e-6\n"
    "ALL_REDUCE,4,10000,75e-6\nALL_REDUCE,4,1000000,1560e-6\n";

// Measurements of contention, as `profile fit-contention` reads them.
inline std::string ContentionTable() {
  std::string table = "kind,threads,size_bytes,seconds\ncomputation,0,,1\n";
  for (const int threads : {128, 256, 512, 1024}) {
    absl::StrAppend(&table, "alone,", threads, ",1000000,", 1e-3 + 0.1 / threads, "\n");
    absl::StrAppend(&table, "overlapped,", threads, ",1000000,", 2e-3 + 0.1 / threads, "\n");
    absl::StrAppend(&table, "computation,", threads, ",,", 1 + 1e-4 * threads, "\n");
  }
  return table;
}

class LocalProgramTest : public testing::Test {
 protected:
  Outcome Run(std::vector<std::string> arguments,
              std::map<std::string, std::string> environment = {}) const {
    arguments.insert(arguments.begin(), STEPCAST_PROGRAM);
    environment.emplace("STEPCAST_SERVER", "");
    return RunProgram(arguments, environment);
  }

  TemporaryDirectory directory_;
  std::string tiny_ = directory_.Write("tiny.json", ToJson(TinyProfile()));
};

}  // namespace stepcast::client
