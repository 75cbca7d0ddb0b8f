// A program that submits held jobs to Slurm, one after the other, and prints how long each took:
// what sbatch does, without a process a job.
//
// Usage: stepcast_submit_load COUNT COMMENT LEAST MOST
// Prints one line of JSON: accepted, seconds, milliseconds at p50, p90, p99 and max, and the user's
// line of the last job. Exit status 1 where a job was refused.
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const int count = std::atoi(argv[1]);
  slurm_init(nullptr);
  std::string script = "#!/bin/sh\ntrue\n";
  std::string path = "PATH=/usr/bin:/bin";
  std::string folder = "/tmp";
  std::string output = "/dev/null";
  std::array<char*, 2> environment{path.data(), nullptr};
  std::vector<double> took;
  std::string line;
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < count; ++i) {
    job_desc_msg_t job;
    slurm_init_job_desc_msg(&job);
    job.comment = argv[2];
    job.min_nodes = static_cast<uint32_t>(std::atoi(argv[3]));
    job.max_nodes = static_cast<uint32_t>(std::atoi(argv[4]));
    job.priority = 0;
    job.user_id = getuid();
    job.group_id = getgid();
    job.script = script.data();
    job.work_dir = folder.data();
    job.std_out = output.data();
    job.std_err = output.data();
    job.environment = environment.data();
    job.env_size = 1;
    submit_response_msg_t* response = nullptr;
    const Clock::time_point begin = Clock::now();
    if (slurm_submit_batch_job(&job, &response) != SLURM_SUCCESS) {
      std::cerr << "job " << i << ": " << slurm_strerror(slurm_get_errno()) << '\n';
      return 1;
    }
    took.push_back(MillisecondsSince(begin));
    line = response->job_submit_user_msg == nullptr ? "" : response->job_submit_user_msg;
    slurm_free_submit_response_response_msg(response);
  }
  const double seconds = MillisecondsSince(start) / 1000;
  std::sort(took.begin(), took.end());
  const auto at = [&](double share) {
    return took.empty() ? 0
                        : took[static_cast<size_t>(share * static_cast<double>(took.size() - 1))];
  };
  std::cout << "{\"accepted\": " << took.size() << ", \"seconds\": " << seconds
            << ", \"p50\": " << at(0.5) << ", \"p90\": " << at(0.9) << ", \"p99\": " << at(0.99)
            << ", \"max\": " << at(1) << ", \"line\": \"" << line << "\"}\n";
  return 0;
}
