// stepcast-admission as a whole: reviews in over HTTPS, advice asked for, answers out; pages
// beside.
//
// Every review that can be read is admitted, whatever becomes of the advice, within the time that
// is waited for it. Nothing is stored, so a dry run is answered as any other.
// Threads: Refresh and Drain on one thread.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "deploy/kubernetes/admission/admission_options.h"

namespace stepcast::admission {

class Webhook {
 public:
  // Fails as LoadCredentials, HttpsListener::Start and HttpServer::Start do.
  static absl::StatusOr<std::unique_ptr<Webhook>> Start(const AdmissionOptions& options);
  ~Webhook();

  std::string address() const;       // HOST:PORT for reviews
  std::string http_address() const;  // for pages; empty: none

  // Reads the files of the options again if they have changed. What is no good is logged, once, and
  // leaves what there was in force. Warns daily of a certificate that expires soon.
  void Refresh();

  // Turns not ready, answers what is in flight.
  void Drain();

 private:
  struct Parts;

  explicit Webhook(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace stepcast::admission
