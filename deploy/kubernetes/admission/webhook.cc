#include "deploy/kubernetes/admission/webhook.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "core/base/error.h"
#include "core/base/version.h"
#include "deploy/kubernetes/admission/credentials.h"
#include "deploy/kubernetes/admission/https_listener.h"
#include "deploy/kubernetes/admission/job_advice.h"
#include "deploy/kubernetes/admission/review.h"
#include "deploy/kubernetes/admission/webhook_metrics.h"
#include "server/app/listen_address.h"
#include "server/app/log.h"
#include "server/http/http_server.h"
#include "stepcast/adviser.h"

namespace stepcast::admission {

namespace {

using server::Log;

constexpr char kPath[] = "/admit";
constexpr int kAdviceThreads = 4;
constexpr int64_t kSecondsPerDay = 86'400;
constexpr int64_t kWarnDays = 14;

std::chrono::nanoseconds Seconds(double seconds) {
  return absl::ToChronoNanoseconds(absl::Seconds(seconds));
}

int64_t UnixNow() { return absl::ToUnixSeconds(absl::Now()); }

std::shared_ptr<client::Adviser> MakeAdviser(const AdmissionOptions& options,
                                             const client::ClientCredentials& credentials) {
  return std::make_shared<client::Adviser>(
      client::ClientOptions{.server = options.server, .credentials = credentials},
      client::AdviserOptions{.wait = Seconds(options.wait_seconds),
                             .call_timeout = Seconds(options.call_timeout_seconds),
                             .keep = Seconds(options.keep_seconds),
                             .threads = kAdviceThreads});
}

JobDefaults DefaultsOf(const AdmissionOptions& options) {
  JobDefaults defaults{.intra_bandwidth_bytes_per_second = options.intra_bandwidth};
  defaults.prices.set_worker_hour(options.worker_hour);
  defaults.prices.set_node_hour(options.node_hour);
  defaults.prices.set_currency_code(options.currency);
  return defaults;
}

}  // namespace

// Member order is lifetime: the listeners go first.
struct Webhook::Parts {
  explicit Parts(const AdmissionOptions& given)
      : options(given), log(given.log), metrics(ProgramVersion()), defaults(DefaultsOf(given)) {}

  const AdmissionOptions options;
  Log log;
  WebhookMetrics metrics;
  const JobDefaults defaults;
  std::mutex mutex;
  std::shared_ptr<client::Adviser> adviser_in_use;  // guarded by mutex
  std::atomic<int64_t> certificate_expiry{0};
  std::atomic<bool> serving{false};
  std::atomic<bool> predictor_is_away{false};  // as the log says
  std::string identity_text;                   // in force
  std::string client_text;
  std::string failed;  // the failure logged last; empty since a success
  int64_t warned_day = 0;
  std::unique_ptr<server::HttpServer> pages;  // null: none
  std::unique_ptr<HttpsListener> listener;

  std::shared_ptr<client::Adviser> adviser() {
    const std::lock_guard lock(mutex);
    return adviser_in_use;
  }

  HttpsReply Answer(const std::string& body);
  JobAnswer Decide(const Review& review);
  void LogReview(const Review& review, const JobAnswer& decided, double seconds);
  void LogPredictor(const absl::Status& status);
  absl::Status Ready() const;
  void Use(const Credentials& credentials);
  absl::Status Replace(const Credentials& credentials);
  void WarnOfExpiry();
};

HttpsReply Webhook::Parts::Answer(const std::string& body) {
  const auto begin = std::chrono::steady_clock::now();
  const absl::StatusOr<Review> review = ReadReview(body);
  if (!review.ok()) {
    log.Warning("review refused", {{"why", std::string(review.status().message())}});
    return {.code = 400,
            .type = "text/plain; charset=utf-8",
            .body = absl::StrCat(std::string(review.status().message()), "\n")};
  }
  const JobAnswer decided = Decide(*review);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  metrics.OnReview(review->kind, decided.outcome, review->dry_run, seconds);
  LogReview(*review, decided, seconds);
  return {.body = WriteAnswer(*review, decided.answer)};
}

JobAnswer Webhook::Parts::Decide(const Review& review) {
  if (!AsksForAdvice(review)) return {};
  const absl::StatusOr<JobQuestion> question = QuestionOf(review, defaults);
  if (!question.ok()) return AnswerOf(question.status());
  const absl::StatusOr<client::Advice> advice = adviser()->Advise(question->question);
  LogPredictor(advice.status());
  return AnswerOf(review, *question, advice);
}

void Webhook::Parts::LogReview(const Review& review, const JobAnswer& decided, double seconds) {
  if (!log.Writes(server::LogLevel::kDebug)) return;
  const std::vector<std::string>& warnings = decided.answer.warnings;
  log.Debug("review", {{"uid", review.uid},
                       {"kind", review.kind},
                       {"name", review.name},
                       {"outcome", NameOf(decided.outcome)},
                       {"warning", warnings.empty() ? "" : warnings.front()},
                       {"dry_run", review.dry_run ? "true" : "false"},
                       {"seconds", absl::StrCat(seconds)}});
}

// A line when the predictor goes away and when it is back, none for each review between.
void Webhook::Parts::LogPredictor(const absl::Status& status) {
  const bool is_away = status.code() == absl::StatusCode::kUnavailable ||
                       status.code() == absl::StatusCode::kUnauthenticated ||
                       status.code() == absl::StatusCode::kPermissionDenied;
  // Too late may be either.
  if (status.code() == absl::StatusCode::kDeadlineExceeded) return;
  if (predictor_is_away.exchange(is_away) == is_away) return;
  if (!is_away) return log.Info("predictor answers", {{"server", options.server}});
  log.Warning("no advice", {{"server", options.server},
                            {"code", absl::StatusCodeToString(status.code())},
                            {"why", std::string(status.message())}});
}

absl::Status Webhook::Parts::Ready() const {
  if (!serving) return absl::UnavailableError("stopping");
  if (certificate_expiry <= UnixNow()) return absl::UnavailableError("the certificate has expired");
  return absl::OkStatus();
}

void Webhook::Parts::Use(const Credentials& credentials) {
  identity_text = credentials.identity_text;
  certificate_expiry = credentials.facts.expiry_unix_seconds;
  metrics.security.SetCertificateExpiry(certificate_expiry);
  warned_day = 0;
  WarnOfExpiry();
  if (adviser_in_use != nullptr && client_text == credentials.client_text) return;
  client_text = credentials.client_text;
  std::shared_ptr<client::Adviser> next = MakeAdviser(options, credentials.client);
  std::shared_ptr<client::Adviser> before;
  {
    const std::lock_guard lock(mutex);
    before = std::exchange(adviser_in_use, std::move(next));
  }
  if (before != nullptr) metrics.Keep(before->counters());
}

absl::Status Webhook::Parts::Replace(const Credentials& credentials) {
  if (identity_text != credentials.identity_text) {
    if (absl::Status taken = listener->Replace(credentials.identity); !taken.ok()) return taken;
  }
  Use(credentials);
  return absl::OkStatus();
}

void Webhook::Parts::WarnOfExpiry() {
  const int64_t now = UnixNow();
  const int64_t left = certificate_expiry - now;
  const int64_t today = now / kSecondsPerDay;
  if (left > kWarnDays * kSecondsPerDay || std::exchange(warned_day, today) == today) return;
  log.Warning("certificate expires soon",
              {{"file", options.tls_cert}, {"days_left", absl::StrCat(left / kSecondsPerDay)}});
}

absl::StatusOr<std::unique_ptr<Webhook>> Webhook::Start(const AdmissionOptions& options) {
  auto parts = std::make_unique<Parts>(options);
  Parts& part = *parts;
  const absl::StatusOr<Credentials> credentials = LoadCredentials(options, UnixNow());
  if (!credentials.ok()) return credentials.status();
  part.Use(*credentials);
  absl::StatusOr<std::unique_ptr<HttpsListener>> listener = HttpsListener::Start(
      {.address = options.listen,
       .path = kPath,
       .max_body_bytes = static_cast<size_t>(options.max_review_bytes),
       .max_pending_bytes = static_cast<size_t>(options.max_pending_bytes),
       .max_connections = options.max_connections,
       .handler_threads = options.threads},
      credentials->identity, [&part](const std::string& body) { return part.Answer(body); },
      [&part](int code) { part.metrics.OnHttpReply(code); });
  if (!listener.ok()) return listener.status();
  part.listener = *std::move(listener);
  if (!options.http_listen.empty()) {
    absl::StatusOr<std::unique_ptr<server::HttpServer>> pages = server::HttpServer::Start(
        options.http_listen,
        {.version = ProgramVersion(),
         .program = "stepcast-admission",
         .about = "Admission reviews are taken over HTTPS",
         .metrics = [&part] { return part.metrics.Text(part.adviser()->counters()); },
         .ready = [&part] { return part.Ready(); }});
    if (!pages.ok()) return pages.status();
    part.pages = *std::move(pages);
  }
  part.serving = true;
  std::unique_ptr<Webhook> webhook(new Webhook(std::move(parts)));
  part.log.Info("serving", {{"version", ProgramVersion()},
                            {"reviews", webhook->address()},
                            {"http", webhook->http_address()},
                            {"server", options.server}});
  for (const std::string& name : options.unknown_variables)
    part.log.Warning("variable ignored", {{"name", name}, {"why", "it is not a setting"}});
  return webhook;
}

Webhook::Webhook(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Webhook::~Webhook() = default;

std::string Webhook::address() const {
  return server::WithPort(parts_->options.listen, parts_->listener->port());
}

std::string Webhook::http_address() const {
  if (parts_->pages == nullptr) return "";
  return server::WithPort(parts_->options.http_listen, parts_->pages->port());
}

void Webhook::Refresh() {
  Parts& part = *parts_;
  part.WarnOfExpiry();
  const absl::StatusOr<Credentials> credentials = LoadCredentials(part.options, UnixNow());
  if (credentials.ok() && credentials->identity_text == part.identity_text &&
      credentials->client_text == part.client_text) {
    part.failed.clear();
    return;
  }
  const absl::Status status = credentials.ok() ? part.Replace(*credentials) : credentials.status();
  const std::string failed(status.message());
  if (!status.ok() && std::exchange(part.failed, failed) == failed) return;
  part.metrics.security.OnReload(status.ok());
  if (!status.ok()) return part.log.Error("credentials not reloaded", {{"why", failed}});
  part.failed.clear();
  part.log.Info("credentials reloaded");
}

void Webhook::Drain() {
  Parts& part = *parts_;
  part.log.Info("draining",
                {{"delay_seconds", absl::StrCat(part.options.drain_delay_seconds)},
                 {"timeout_seconds", absl::StrCat(part.options.drain_timeout_seconds)}});
  part.serving = false;
  // The API server's view of the endpoints needs this long; reviews that come meanwhile are taken.
  std::this_thread::sleep_for(std::chrono::duration<double>(part.options.drain_delay_seconds));
  part.listener->Drain(std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::duration<double>(part.options.drain_timeout_seconds)));
  part.log.Info("stopped");
}

}  // namespace stepcast::admission
