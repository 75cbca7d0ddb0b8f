// A scheduler's loop in C++: every few seconds, how many workers should each job get?
//   scheduler HOST:PORT SECONDS ROUNDS PROFILE...
#include <chrono>
#include <future>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "stepcast/client.h"

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::duration<double, std::milli>;
  if (argc < 5) return 2;
  const stepcast::client::Client client({.server = argv[1], .timeout = std::chrono::seconds(2)});
  const auto ask = [&client](const std::string& job) {
    const Clock::time_point began = Clock::now();
    stepcast::v1::RecommendWorkersRequest request;
    request.set_profile("profiles/" + job);
    request.mutable_options()->mutable_time_budget()->set_seconds(1);
    const auto reply = client.RecommendWorkers(request);
    if (!reply.ok()) return job + ": " + absl::StatusCodeToString(reply.status().code());
    return job + ": " + std::to_string(reply->workers()) + " workers, " +
           std::to_string(reply->prediction().examples_per_second()) + " examples/s, " +
           std::to_string(Milliseconds(Clock::now() - began).count()) + " ms";
  };
  for (int round = 0; round < std::stoi(argv[3]); ++round) {
    const Clock::time_point began = Clock::now();
    std::vector<std::future<std::string>> answers;
    for (int i = 4; i < argc; ++i) answers.push_back(std::async(std::launch::async, ask, argv[i]));
    for (auto& answer : answers) std::cout << answer.get() << '\n';
    std::cout << "round: " << Milliseconds(Clock::now() - began).count() << " ms" << std::endl;
    std::this_thread::sleep_for(std::chrono::duration<double>(std::stod(argv[2])));
  }
}
