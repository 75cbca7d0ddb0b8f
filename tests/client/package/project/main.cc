// Reads a profile, and asks a server that is not there: prints the model and the code of the error.
#include <chrono>
#include <iostream>

#include "stepcast/client.h"
#include "stepcast/error_details.h"
#include "stepcast/json.h"
#include "stepcast/profile_encoding.h"
#include "stepcast/version.h"

int main(int argc, char** argv) {
  namespace client = stepcast::client;
  if (argc != 2) return 2;
  const auto bytes = client::ReadFile(argv[1]);
  if (!bytes.ok()) return 3;
  const auto profile = client::ParseProfile(*bytes);
  if (!profile.ok()) return 4;
  std::cout << client::Version() << ' ' << profile->model() << ' '
            << (client::ToJson(*profile).find("\"batchSize\"") != std::string::npos) << '\n';

  // Port 1 is nobody's.
  const client::Client stepcast({.server = "127.0.0.1:1", .retry = {.max_attempts = 1}});
  stepcast::v1::PredictThroughputRequest request;
  *request.mutable_inline_profile() = *profile;
  for (const int workers : {1, 2, 4}) request.add_worker_counts(workers);
  const auto reply = stepcast.PredictThroughput(request, {.timeout = std::chrono::seconds(20)});
  std::cout << absl::StatusCodeToString(reply.status().code()) << '\n';
  return reply.ok() ? 1 : 0;
}
