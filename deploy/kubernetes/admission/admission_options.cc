#include "deploy/kubernetes/admission/admission_options.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "core/base/version.h"
#include "deploy/kubernetes/admission/credentials.h"
#include "server/app/listen_address.h"
#include "server/app/setting_flags.h"
#include "server/app/settings.h"
#include "stepcast/advice.h"

namespace stepcast::admission {

namespace {

using server::AddLength;
using server::AddRange;
using server::AddSetting;

// The API server waits as long as the configuration of the webhook says, 2 s in deploy/kubernetes.
constexpr double kMaxWait = 30;
constexpr double kMaxSeconds = 1e6;
constexpr double kMaxPrice = 1e12;

void AddListener(CLI::App& app, AdmissionOptions& options) {
  AddSetting(app, "--listen", options.listen,
             "HOST:PORT for reviews, POST /admit over TLS; port 0: any free one, printed at start");
  AddSetting(app, "--http-listen", options.http_listen,
             "HOST:PORT for /metrics, /healthz and /readyz, in clear; port 0 as above; none: no "
             "pages");
  AddSetting(app, "--tls-cert", options.tls_cert,
             "PEM file of the webhook's certificate, then those it was signed with; required");
  AddSetting(app, "--tls-key", options.tls_key, "PEM file of its key; required");
  AddSetting(app, "--tls-client-ca", options.tls_client_ca,
             "PEM file of those who sign the API server's certificate as a client: only clients "
             "that have such a one may connect");
  app.add_flag(
         "--allow-any-client", options.allow_any_client,
         "Serve beyond loopback without --tls-client-ca: anybody who reaches the port may ask")
      ->envname(server::VariableOf("--allow-any-client"))
      ->default_str("false");
  AddRange(app, "--reload-seconds", options.reload_seconds, 0.0, kMaxSeconds,
           "How often all files named here are looked at, besides at SIGHUP, and read again if "
           "they have changed; 0: never");
  AddRange(app, "--max-review-bytes", options.max_review_bytes, int64_t{1024}, int64_t{1} << 30,
           "Largest review; the API server's objects have up to 3 MiB");
  AddRange(app, "--max-pending-bytes", options.max_pending_bytes, int64_t{1024}, int64_t{1} << 40,
           "Bytes of all reviews under way together");
  AddRange(app, "--max-connections", options.max_connections, 1, 65536,
           "Connections at one time; one more is closed at once");
  AddRange(app, "--threads", options.threads, 1, 1024, "Reviews that wait for advice at one time");
}

std::optional<double> IntraRateOf(const std::string& text) {
  client::AdviceQuestion question;
  if (!client::SetAdviceField("intra-bandwidth", text, question).ok()) return std::nullopt;
  return question.intra_node_bandwidth_bytes_per_second;
}

void AddIntraBandwidth(CLI::App& app, AdmissionOptions& options) {
  constexpr char kFlag[] = "--intra-bandwidth";
  app.add_option_function<std::string>(
         kFlag,
         [&options](const std::string& given) { options.intra_bandwidth = *IntraRateOf(given); },
         "Rate of the links inside a pod of several workers, for jobs without the annotation "
         "stepcast.dev/intra-bandwidth: 300GB/s, 600Gbit/s, or 300e9 in bytes per second")
      ->envname(server::VariableOf(kFlag))
      ->check([](const std::string& given) {
        return IntraRateOf(given).has_value()
                   ? std::string()
                   : absl::StrCat(Quoted(given), " is not a rate: write for instance 300GB/s");
      })
      ->type_name("RATE");
}

void AddPredictor(CLI::App& app, AdmissionOptions& options) {
  AddSetting(app, "--server", options.server, "HOST:PORT of stepcastd, or any gRPC target");
  AddSetting(app, "--server-ca", options.server_ca,
             "PEM file of those who sign its certificate: call it over TLS");
  AddSetting(app, "--server-cert", options.server_cert,
             "PEM file of this webhook's own certificate, if stepcastd asks for one");
  AddSetting(app, "--server-key", options.server_key, "PEM file of its key");
  AddSetting(app, "--server-token-file", options.server_token_file,
             "File with the token that stepcastd knows this webhook by");
  AddRange(app, "--wait-seconds", options.wait_seconds, 0.001, kMaxWait,
           "Longest wait for advice; what comes later is kept for the next job like this one");
  AddRange(app, "--call-timeout-seconds", options.call_timeout_seconds, 0.01, kMaxSeconds,
           "Longest call of stepcastd");
  AddRange(app, "--keep-seconds", options.keep_seconds, 0.0, kMaxSeconds,
           "How long an answer stands for the same question");
  AddRange(app, "--worker-hour", options.worker_hour, 0.0, kMaxPrice,
           "Price of a worker for an hour, for the objective cost");
  AddRange(app, "--node-hour", options.node_hour, 0.0, kMaxPrice,
           "Price of a pod of several workers for an hour, besides its workers");
  AddSetting(app, "--currency", options.currency, "Currency of prices, for instance USD");
  AddIntraBandwidth(app, options);
}

void AddProcess(CLI::App& app, AdmissionOptions& options) {
  AddLog(app, options.log, "; debug: a line for each review");
  AddLength(app, "--drain-delay", options.drain_delay_seconds, kMaxSeconds,
            "Time between turning not ready and taking no more connections, when told to stop");
  AddLength(app, "--drain-timeout", options.drain_timeout_seconds, kMaxSeconds,
            "Time that reviews in flight then get to finish");
}

absl::Status Fault(const std::string& flag, const std::string& why) {
  return FaultsError("FLAG_INVALID", {{.field = flag, .description = why}});
}

absl::Status Check(const AdmissionOptions& options) {
  absl::Status status = server::CheckListenAddress("--listen", options.listen);
  if (status.ok() && !options.http_listen.empty())
    status = server::CheckListenAddress("--http-listen", options.http_listen);
  if (!status.ok()) return status;
  if (options.tls_cert.empty() || options.tls_key.empty()) {
    return Fault(options.tls_cert.empty() ? "--tls-cert" : "--tls-key",
                 "is required: Kubernetes calls webhooks over TLS alone");
  }
  if (options.server_cert.empty() != options.server_key.empty())
    return Fault(options.server_cert.empty() ? "--server-cert" : "--server-key",
                 "--server-cert and --server-key need each other");
  if (options.max_pending_bytes < options.max_review_bytes)
    return Fault("--max-pending-bytes",
                 absl::StrCat(options.max_pending_bytes, " is below --max-review-bytes, ",
                              options.max_review_bytes));
  if (options.tls_client_ca.empty() && !options.allow_any_client &&
      !server::IsLoopback(options.listen)) {
    return Fault("--listen",
                 absl::StrCat(Quoted(options.listen),
                              " can be reached from beyond this machine, and anybody might ask: "
                              "give --tls-client-ca, or --allow-any-client"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::variant<AdmissionOptions, PrintText>> ParseCommandLine(
    int argc, const char* const* argv) {
  AdmissionOptions options;
  CLI::App table(
      "stepcast-admission advises on the training jobs that a Kubernetes cluster creates: it is a "
      "mutating admission webhook that asks stepcastd how many workers they should get.",
      "stepcast-admission");
  table.footer(
      "A flag counts more than its variable, that more than the file of --config. SIGHUP reads "
      "certificates and tokens again.");
  AddListener(table, options);
  AddPredictor(table, options);
  AddProcess(table, options);

  using Wish = server::TypedFlags::Wish;
  const absl::StatusOr<server::TypedFlags> typed =
      server::ReadFlags(argc, argv, table, /*copies_data=*/false);
  if (!typed.ok()) return typed.status();
  if (typed->wish == Wish::kHelp) return PrintText{table.help()};
  if (typed->wish == Wish::kVersion)
    return PrintText{absl::StrCat("stepcast-admission ", ProgramVersion(), "\n")};
  const absl::StatusOr<std::vector<server::GivenSetting>> given =
      server::GivenSettings(*typed, table);
  if (!given.ok()) return given.status();
  const absl::Status applied = server::Apply(*given, table);
  if (options.http_listen == "none") options.http_listen.clear();
  if (absl::Status sound = server::BothFaults(applied, Check(options)); !sound.ok()) return sound;
  if (typed->wish == Wish::kPrintConfig) return PrintText{server::ConfigText(*given, table)};
  if (typed->wish == Wish::kCheckConfig) {
    const absl::Status loaded = LoadCredentials(options, absl::ToUnixSeconds(absl::Now())).status();
    return loaded.ok()
               ? absl::StatusOr<std::variant<AdmissionOptions, PrintText>>(PrintText{"ok\n"})
               : loaded;
  }
  options.unknown_variables = server::UnknownVariables(table);
  return options;
}

}  // namespace stepcast::admission
