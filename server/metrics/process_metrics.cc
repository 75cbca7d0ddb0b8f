#include "server/metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

#include "server/metrics/metric_names.h"

namespace stepcast::server {

namespace {

void Add(std::vector<prometheus::MetricFamily>& families, const char* name, const char* help,
         prometheus::MetricType type, std::optional<double> value) {
  if (!value) return;
  prometheus::ClientMetric sample;
  if (type == prometheus::MetricType::Counter) {
    sample.counter.value = *value;
  } else {
    sample.gauge.value = *value;
  }
  families.push_back({.name = name, .help = help, .type = type, .metric = {sample}});
}

// The fields of /proc/self/stat after the program's name, which may hold spaces: the first is field
// 3 of proc(5).
std::vector<double> StatFields() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(line.substr(name_end + 1));
  std::string state;
  rest >> state;
  std::vector<double> fields{0};
  fields.insert(fields.end(), std::istream_iterator<double>(rest), {});
  return fields;
}

// Field `number` of proc(5).
std::optional<double> Field(const std::vector<double>& fields, size_t number) {
  constexpr size_t kFirst = 3;
  return number - kFirst < fields.size() ? std::optional<double>(fields[number - kFirst])
                                         : std::nullopt;
}

std::optional<double> BootSeconds() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    double seconds = 0;
    if (words >> name >> seconds && name == "btime") return seconds;
  }
  return std::nullopt;
}

std::optional<double> OpenFds() {
  std::error_code error;
  const std::filesystem::directory_iterator entries("/proc/self/fd", error);
  if (error) return std::nullopt;
  // The directory itself is open while it is read.
  return static_cast<double>(std::distance(begin(entries), end(entries))) - 1;
}

std::optional<double> MaxFds() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return static_cast<double>(limit.rlim_cur);
}

}  // namespace

std::vector<prometheus::MetricFamily> ProcessMetrics::Collect() const {
  using prometheus::MetricType;
  constexpr size_t kUserTicks = 14;
  constexpr size_t kSystemTicks = 15;
  constexpr size_t kStartTicks = 22;
  constexpr size_t kVirtualBytes = 23;
  constexpr size_t kResidentPages = 24;
  const std::vector<double> fields = StatFields();
  const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  const std::optional<double> user = Field(fields, kUserTicks);
  const std::optional<double> system = Field(fields, kSystemTicks);
  const std::optional<double> start = Field(fields, kStartTicks);
  const std::optional<double> resident = Field(fields, kResidentPages);
  const std::optional<double> boot = BootSeconds();
  std::optional<double> cpu_seconds;
  std::optional<double> resident_bytes;
  std::optional<double> start_seconds;
  if (user && system) cpu_seconds = (*user + *system) / ticks_per_second;
  if (resident) resident_bytes = *resident * page_bytes;
  if (start && boot) start_seconds = *boot + *start / ticks_per_second;
  std::vector<prometheus::MetricFamily> families;
  Add(families, metric::kProcessCpuSeconds, "Processor time used, user and system.",
      MetricType::Counter, cpu_seconds);
  Add(families, metric::kProcessResidentBytes, "Resident memory.", MetricType::Gauge,
      resident_bytes);
  Add(families, metric::kProcessVirtualBytes, "Virtual memory.", MetricType::Gauge,
      Field(fields, kVirtualBytes));
  Add(families, metric::kProcessOpenFds, "Open file descriptors.", MetricType::Gauge, OpenFds());
  Add(families, metric::kProcessMaxFds, "Most file descriptors that may be open.",
      MetricType::Gauge, MaxFds());
  Add(families, metric::kProcessStartSeconds, "Start of the process, since the Unix epoch.",
      MetricType::Gauge, start_seconds);
  return families;
}

namespace {

prometheus::Counter& Reloads(prometheus::Registry& registry, const char* outcome) {
  return prometheus::BuildCounter()
      .Name(metric::kReloads)
      .Help(
          "Readings of settings, certificates and tokens while serving; after a failed one what "
          "was there is in force.")
      .Register(registry)
      .Add({{"outcome", outcome}});
}

}  // namespace

SecurityMetrics::SecurityMetrics(prometheus::Registry& registry)
    : expiry_(prometheus::BuildGauge()
                  .Name(metric::kCertificateExpirySeconds)
                  .Help("When the first certificate of the server's chain expires, since the Unix "
                        "epoch; no series without TLS.")
                  .Register(registry)),
      reloads_done_(Reloads(registry, "ok")),
      reloads_failed_(Reloads(registry, "failed")) {}

void SecurityMetrics::OnReload(bool done) { (done ? reloads_done_ : reloads_failed_).Increment(); }

void SecurityMetrics::SetCertificateExpiry(int64_t unix_seconds) {
  expiry_.Add({}).Set(static_cast<double>(unix_seconds));
}

}  // namespace stepcast::server
