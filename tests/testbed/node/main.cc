// One node of the testbed: a parameter server, or a worker that trains and writes down when
// everything happened.
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tests/testbed/node/job.h"
#include "tests/testbed/node/parameter_server.h"
#include "tests/testbed/node/worker.h"

namespace stepcast::testbed {
namespace {

int Serve(const std::string& address) {
  ParameterServer service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterCallbackGenericService(&service);
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetMaxSendMessageSize(-1);
  TensorOf(0);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::puts("ready");
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}

int Train(const std::string& job_path, const WorkerOptions& options,
          const std::string& record_path) {
  const Job job = ReadJob(job_path);
  TensorOf(0);
  Worker worker(job, options);
  if (!worker.Connect()) {
    std::fputs("no connection to every server\n", stderr);
    return 1;
  }
  worker.WarmUp();
  std::puts("ready");
  std::fflush(stdout);
  int64_t origin_ns = 0;
  if (!(std::cin >> origin_ns)) return 1;
  nlohmann::json steps = nlohmann::json::array();
  for (const StepRecord& step : worker.Run(origin_ns)) {
    steps.push_back({{"begin_ns", step.begin_ns},
                     {"end_ns", step.end_ns},
                     {"start_ns", step.start_ns},
                     {"done_ns", step.done_ns}});
  }
  std::ofstream(record_path) << nlohmann::json{{"worker", options.worker}, {"steps", steps}};
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app("A node of the testbed");
  app.require_subcommand(1);
  std::string address;
  std::string job_path;
  std::string record_path;
  WorkerOptions options;
  CLI::App& server = *app.add_subcommand("server", "Hand out tensors, take gradients");
  server.add_option("--listen", address)->required();
  CLI::App& worker = *app.add_subcommand("worker", "Train");
  worker.add_option("--job", job_path)->required();
  worker.add_option("--record", record_path)->required();
  worker.add_option("--server", options.servers)->required();
  worker.add_option("--worker", options.worker);
  worker.add_option("--start-offset-ns", options.start_offset_ns)->required();
  worker.add_option("--length-ns", options.length_ns)->required();
  worker.add_option("--most-steps", options.most_steps);
  worker.add_option("--seed", options.seed);
  worker.add_option("--variation", options.variation);
  CLI11_PARSE(app, argc, argv);
  return server.parsed() ? Serve(address) : Train(job_path, options, record_path);
}

}  // namespace
}  // namespace stepcast::testbed

int main(int argc, char** argv) {
  try {
    return stepcast::testbed::Main(argc, argv);
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "%s\n", fault.what());
    return 1;
  }
}
