// The requests and answers of the methods of google.longrunning.Operations, in plain types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "server/store/operation_store.h"

namespace stepcast::server {

struct StartJobCall {
  NewOperation operation;  // without its owner
  std::string profile;     // the name of the stored profile without which it cannot be computed;
                           // empty: it needs none
  std::vector<Fault> faults;
};

struct ListOperationsCall {
  std::string name;
  std::string filter;
  int32_t page_size = 0;
  std::string page_token;
};

struct WaitOperationCall {
  std::string name;
  std::optional<double> timeout_seconds;
};

struct ListOperationsAnswer {
  std::vector<StoredOperation> operations;
  std::string next_page_token;
};

}  // namespace stepcast::server
