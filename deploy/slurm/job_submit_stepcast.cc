// Slurm's plugin job_submit/stepcast: the C boundary between slurmctld and submission.h.
//
// No exception leaves it, no job is ever refused, and nothing here waits for the network longer
// than the Adviser's `wait`. Slurm calls it one job at a time, under a lock of its own.
#include <cxxabi.h>
#include <pthread.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurm_version.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#include "deploy/slurm/settings.h"
#include "deploy/slurm/submission.h"
#include "stepcast/adviser.h"

// Functions of the process that loads this. Weak: where one is missing the plugin can be loaded,
// and does without.
extern "C" {
[[gnu::weak]] char* slurm_xstrdup(const char* text);
[[gnu::weak]] void slurm_xfree(void** text);
[[gnu::weak]] void slurm_info(const char* format, ...) __attribute__((format(printf, 1, 2)));
[[gnu::weak]] int slurm_error(const char* format, ...) __attribute__((format(printf, 1, 2)));
}

namespace stepcast::slurm {

namespace {

constexpr char kDefaultConfig[] = "/etc/slurm/stepcast.yaml";
constexpr char kConfigVariable[] = "STEPCAST_SLURM_CONFIG";
constexpr std::string_view kProfileVariable = "STEPCAST_PROFILE=";
constexpr size_t kMaxField = 8192;

// The plugin between init and fini. The Adviser is made for the first job that asks, since
// slurmctld forks before, and the threads of gRPC do not outlive a fork.
struct Plugin {
  Settings settings;
  std::unique_ptr<client::Adviser> adviser;
  std::string last_log;  // so that a server that is away is not said with every job
};

std::mutex plugin_mutex;
std::unique_ptr<Plugin> plugin;  // guarded by plugin_mutex; null: passive

// Threads that begin while one lives hear no signals: those are slurmctld's own threads'.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

void LogInfo(const std::string& line) {
  if (slurm_info != nullptr) slurm_info("job_submit/stepcast: %s", line.c_str());
}

void LogError(const std::string& line) {
  if (slurm_error != nullptr) slurm_error("job_submit/stepcast: %s", line.c_str());
}

std::string_view View(const char* text) {
  return text == nullptr ? std::string_view() : std::string_view(text, strnlen(text, kMaxField));
}

std::optional<uint32_t> Given(uint32_t value) {
  return value == NO_VAL || value == INFINITE || value == 0 ? std::nullopt : std::optional(value);
}

std::optional<uint32_t> Given16(uint16_t value) {
  return value == NO_VAL16 || value == INFINITE16 || value == 0 ? std::nullopt
                                                                : std::optional<uint32_t>(value);
}

std::string_view ProfileOf(const job_desc_msg_t& job) {
  if (job.environment == nullptr || job.env_size == NO_VAL) return {};
  for (uint32_t i = 0; i < job.env_size && job.environment[i] != nullptr; ++i) {
    if (std::strncmp(job.environment[i], kProfileVariable.data(), kProfileVariable.size()) == 0)
      return View(job.environment[i] + kProfileVariable.size());
  }
  return {};
}

Submission SubmissionOf(const job_desc_msg_t& job) {
  const bool has_tasks = (job.bitflags & JOB_NTASKS_SET) != 0;
  return {.comment = View(job.comment),
          .profile = ProfileOf(job),
          .min_nodes = Given(job.min_nodes),
          .max_nodes = Given(job.max_nodes),
          .tasks_per_node = Given16(job.ntasks_per_node),
          .tres_per_node = View(job.tres_per_node),
          .has_fixed_size = has_tasks || job.req_nodes != nullptr || job.tres_per_job != nullptr ||
                            job.tres_per_task != nullptr ||
                            Given16(job.ntasks_per_tres).has_value()};
}

// Puts `text` behind what is there already, `separator` between them.
void Append(char** field, const std::string& text, const char* separator) {
  if (field == nullptr || text.empty() || slurm_xstrdup == nullptr || slurm_xfree == nullptr)
    return;
  const std::string whole =
      *field == nullptr ? text : std::string(*field).append(separator).append(text);
  char* const copy = slurm_xstrdup(whole.c_str());
  void* former = *field;
  slurm_xfree(&former);
  *field = copy;
}

void Submit(job_desc_msg_t& job, char** user_line) {
  const std::lock_guard lock(plugin_mutex);
  if (plugin == nullptr) return;
  const BlockedSignals blocked;
  const Decision decision =
      Decide(SubmissionOf(job), plugin->settings, [&](const client::AdviceQuestion& question) {
        if (plugin->adviser == nullptr) {
          plugin->adviser =
              std::make_unique<client::Adviser>(plugin->settings.client, plugin->settings.adviser);
        }
        return plugin->adviser->Advise(question);
      });
  // Never a change that nobody is told of.
  Append(&job.admin_comment, decision.admin_comment, "; ");
  Append(user_line, decision.user_line, "\n");
  if (job.admin_comment != nullptr) {
    if (decision.min_nodes) job.min_nodes = *decision.min_nodes;
    if (decision.max_nodes) job.max_nodes = *decision.max_nodes;
  }
  if (!decision.log_line.empty() && decision.log_line != plugin->last_log)
    LogInfo(decision.log_line);
  plugin->last_log = decision.log_line;
}

void Start() {
  const char* const path = std::getenv(kConfigVariable);
  const std::string file = path == nullptr ? kDefaultConfig : path;
  absl::StatusOr<Settings> settings = ReadSettings(file);
  const std::lock_guard lock(plugin_mutex);
  plugin = nullptr;
  if (!settings.ok()) {
    LogError(std::string(settings.status().message()).append(": no job gets advice"));
    return;
  }
  plugin = std::make_unique<Plugin>();
  plugin->settings = *std::move(settings);
  const bool sets = plugin->settings.mode == Mode::kSet;
  LogInfo(std::string("asks ")
              .append(plugin->settings.client.server)
              .append(sets ? ", and sets ranges of nodes" : ", and advises"));
}

void Stop() {
  const std::lock_guard lock(plugin_mutex);
  plugin = nullptr;
}

// Runs `act`; what is thrown ends here, but for the end of a thread.
template <typename Act>
void Contain(const Act& act) {
  try {
    act();
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
  }
}

}  // namespace

}  // namespace stepcast::slurm

extern "C" {

extern const char plugin_name[];
extern const char plugin_type[];
extern const uint32_t plugin_version;
const char plugin_name[] = "Stepcast's advice on numbers of nodes";
const char plugin_type[] = "job_submit/stepcast";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

int init();
int fini();
int job_submit(job_desc_msg_t* job, uint32_t submit_uid, char** err_msg);
int job_modify(job_desc_msg_t* job, void* job_record, uint32_t submit_uid);

int init() {
  stepcast::slurm::Contain([] { stepcast::slurm::Start(); });
  return SLURM_SUCCESS;
}

int fini() {
  stepcast::slurm::Contain([] { stepcast::slurm::Stop(); });
  return SLURM_SUCCESS;
}

int job_submit(job_desc_msg_t* job, uint32_t /*submit_uid*/, char** err_msg) {
  if (job != nullptr) stepcast::slurm::Contain([&] { stepcast::slurm::Submit(*job, err_msg); });
  return SLURM_SUCCESS;
}

int job_modify(job_desc_msg_t* /*job*/, void* /*job_record*/, uint32_t /*submit_uid*/) {
  return SLURM_SUCCESS;
}
}
