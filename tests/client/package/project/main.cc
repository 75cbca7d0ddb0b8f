// A program that says how fast the job of a profile runs. Asks a server; without one, says why
// there is no answer.
#include <chrono>
#include <iostream>

#include "stepcast/client.h"
#include "stepcast/error_details.h"
#include "stepcast/json.h"
#include "stepcast/profile_encoding.h"
#include "stepcast/version.h"

int main(int argc, char** argv) {
  namespace client = stepcast::client;
  namespace v1 = stepcast::v1;
  if (argc != 3) return 2;
  const absl::StatusOr<std::string> bytes = client::ReadFile(argv[1]);
  if (!bytes.ok()) return 3;
  const absl::StatusOr<v1::Profile> profile = client::ParseProfile(*bytes);
  if (!profile.ok()) return 4;
  std::cout << client::Version() << ' ' << profile->model() << ' '
            << (client::ToJson(*profile).find("\"batchSize\"") != std::string::npos) << '\n';

  const client::Client stepcast({.server = argv[2], .retry = {.max_attempts = 1}});
  v1::PredictThroughputRequest request;
  *request.mutable_inline_profile() = *profile;
  for (const int workers : {1, 2, 4}) request.add_worker_counts(workers);
  const absl::StatusOr<v1::PredictThroughputResponse> reply =
      stepcast.PredictThroughput(request, {.timeout = std::chrono::minutes(10)});
  if (!reply.ok()) {
    std::cout << absl::StatusCodeToString(reply.status().code()) << '\n';
    for (const auto& violation : client::GetErrorDetails(reply.status()).violations)
      std::cout << violation.field << ": " << violation.description << '\n';
    return 0;
  }
  for (const v1::Prediction& prediction : reply->predictions())
    std::cout << prediction.examples_per_second() << " examples/s\n";
  return 0;
}
