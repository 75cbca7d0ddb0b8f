#include "deploy/kubernetes/admission/https_listener.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <atomic>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"

namespace stepcast::admission {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using tcp = asio::ip::tcp;
using boost::system::error_code;

constexpr uint32_t kMaxHeaderBytes = 16 << 10;
constexpr int kIoThreads = 2;

absl::Status ListenFailed(const std::string& address, const std::string& why) {
  return MakeError(absl::StatusCode::kUnavailable,
                   absl::StrCat("cannot listen for HTTPS on ", address, ": ", why),
                   {.reason = "LISTEN_FAILED", .metadata = {{"address", address}}});
}

absl::StatusOr<std::shared_ptr<ssl::context>> MakeContext(const TlsIdentity& identity) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  error_code error;
  SSL_CTX* native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  context->use_certificate_chain(asio::buffer(identity.certificate), error);
  if (!error) context->use_private_key(asio::buffer(identity.key), ssl::context::pem, error);
  if (!error && !identity.client_ca.empty()) {
    context->add_certificate_authority(asio::buffer(identity.client_ca), error);
    if (!error) {
      context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert, error);
    }
  }
  ERR_clear_error();
  if (!error) return context;
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("OpenSSL does not take certificate, key or client CA: ", error.message()),
      {.reason = "CERTIFICATE_INVALID"});
}

using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;

}  // namespace

// The threads and what all connections share.
//
// Member order is lifetime: connections that are left when it is destroyed go with io_.
class HttpsListener::Impl {
 public:
  Impl(const HttpsListenerOptions& options, Handler handler, Observer observer)
      : options_(options),
        handler_(std::move(handler)),
        observer_(std::move(observer)),
        io_(kIoThreads),
        acceptor_(io_),
        handlers_(static_cast<size_t>(options.handler_threads)) {}

  absl::Status Listen();
  void Serve() {
    Accept();
    for (int i = 0; i < kIoThreads; ++i) threads_.emplace_back([this] { io_.run(); });
  }
  absl::Status Replace(const TlsIdentity& identity) {
    absl::StatusOr<std::shared_ptr<ssl::context>> context = MakeContext(identity);
    if (!context.ok()) return context.status();
    const std::lock_guard lock(mutex_);
    context_ = *std::move(context);
    return absl::OkStatus();
  }
  void Drain(std::chrono::milliseconds timeout);
  void Stop();
  int port() const { return port_; }

 private:
  class Session;

  void Accept();
  std::shared_ptr<ssl::context> context() {
    const std::lock_guard lock(mutex_);
    return context_;
  }

  const HttpsListenerOptions options_;
  const Handler handler_;
  const Observer observer_;
  std::mutex mutex_;
  std::shared_ptr<ssl::context> context_;  // guarded by mutex_
  std::atomic<int> connections_{0};
  std::atomic<int> requests_{0};  // from their first byte to their answer's last
  std::atomic<size_t> pending_bytes_{0};
  std::atomic<bool> draining_{false};
  int port_ = 0;
  asio::io_context io_;
  tcp::acceptor acceptor_;
  asio::thread_pool handlers_;
  std::vector<std::thread> threads_;
};

// A connection: handshake, then one request after the other. It lives as long as an operation of
// its own is under way.
class HttpsListener::Impl::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Impl* owner, tcp::socket socket)
      : owner_(owner), context_(owner_->context()), stream_(std::move(socket), *context_) {
    ++owner_->connections_;
  }
  ~Session() {
    Release();
    EndRequest();
    --owner_->connections_;
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Begin() {
    asio::dispatch(stream_.get_executor(), [self = shared_from_this()] {
      self->Expire(self->owner_->options_.request_timeout);
      self->stream_.async_handshake(ssl::stream_base::server, [self](error_code error) {
        if (!error) self->Await();
      });
    });
  }

 private:
  void Expire(std::chrono::milliseconds after) {
    beast::get_lowest_layer(stream_).expires_after(after);
  }

  // Waits for the first byte of a request, which may be long in coming, and only then counts it.
  void Await() {
    if (owner_->draining_) return Close();
    parser_.emplace();
    parser_->header_limit(kMaxHeaderBytes);
    parser_->body_limit(owner_->options_.max_body_bytes);
    Expire(is_known_ ? owner_->options_.idle_timeout : owner_->options_.request_timeout);
    if (buffer_.size() > 0) return ReadHeader();
    stream_.async_read_some(buffer_.prepare(4096),
                            [self = shared_from_this()](error_code error, size_t size) {
                              if (error) return self->Close();
                              self->buffer_.commit(size);
                              self->ReadHeader();
                            });
  }

  void ReadHeader() {
    BeginRequest();
    Expire(owner_->options_.request_timeout);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = shared_from_this()](error_code error, size_t /*size*/) {
                              if (error) return self->Refuse(error);
                              self->OnHeader();
                            });
  }

  void OnHeader() {
    const auto& header = parser_->get();
    const std::string_view target(header.target().data(), header.target().size());
    // The API server adds ?timeout=2s.
    if (target.substr(0, target.find('?')) != owner_->options_.path)
      return Answer(Error(404, "there is nothing here\n"));
    if (header.method() != http::verb::post) {
      Response reply = Error(405, "POST only\n");
      reply.set(http::field::allow, "POST");
      return Answer(std::move(reply));
    }
    const auto type = header[http::field::content_type];
    if (!beast::iequals(type.substr(0, type.find(';')), "application/json"))
      return Answer(Error(415, "application/json only\n"));
    const size_t most = owner_->options_.max_body_bytes;
    const auto length = parser_->content_length();
    if (length && *length > most) return Answer(TooLarge());
    if (!Reserve(length ? static_cast<size_t>(*length) : most))
      return Answer(Error(503, "too many bytes are under way\n"));
    if (!beast::iequals(header[http::field::expect], "100-continue")) return ReadBody();
    continue_.emplace(http::status::continue_, 11);
    http::async_write(stream_, *continue_,
                      [self = shared_from_this()](error_code error, size_t /*size*/) {
                        if (!error) self->ReadBody();
                      });
  }

  void ReadBody() {
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](error_code error, size_t /*size*/) {
                       if (error) return self->Refuse(error);
                       self->Handle();
                     });
  }

  // On one of the handlers' threads, so that no other connection waits.
  void Handle() {
    beast::get_lowest_layer(stream_).expires_never();
    asio::post(owner_->handlers_, [self = shared_from_this()] {
      HttpsReply made = self->owner_->handler_(self->parser_->get().body());
      Response reply(static_cast<http::status>(made.code), 11);
      reply.set(http::field::content_type, made.type);
      reply.keep_alive(self->parser_->get().keep_alive() && !self->owner_->draining_);
      reply.body() = std::move(made.body);
      asio::post(self->stream_.get_executor(),
                 [self, reply = std::make_shared<Response>(std::move(reply))] {
                   self->Answer(std::move(*reply));
                 });
    });
  }

  // The answer to what is no request, or too large a one. Others have gone.
  void Refuse(error_code error) {
    if (error == http::error::body_limit) return Answer(TooLarge());
    if (error == http::error::header_limit) return Answer(Error(431, "the header is too large\n"));
    const bool is_malformed =
        error.category() == make_error_code(http::error::bad_method).category() &&
        error != http::error::end_of_stream && error != http::error::partial_message;
    if (is_malformed) return Answer(Error(400, "this is no HTTP request\n"));
    Close();
  }

  static Response Error(int code, const char* text) {
    Response reply(static_cast<http::status>(code), 11);
    reply.set(http::field::content_type, "text/plain; charset=utf-8");
    reply.keep_alive(false);
    reply.body() = text;
    return reply;
  }

  Response TooLarge() const {
    Response reply = Error(413, "");
    reply.body() =
        absl::StrCat("a review has at most ", owner_->options_.max_body_bytes, " bytes\n");
    return reply;
  }

  void Answer(Response reply) {
    reply.set(http::field::cache_control, "no-store");
    reply.prepare_payload();
    owner_->observer_(static_cast<int>(reply.result_int()));
    reply_.emplace(std::move(reply));
    Expire(owner_->options_.request_timeout);
    http::async_write(stream_, *reply_,
                      [self = shared_from_this()](error_code error, size_t /*size*/) {
                        const bool goes_on = !error && self->reply_->keep_alive();
                        self->Release();
                        self->EndRequest();
                        if (!goes_on) return self->Linger(0);
                        self->parser_.reset();
                        self->is_known_ = true;
                        self->Await();
                      });
  }

  // Reads on for a second, lest what is still sent of a refused body resets the connection before
  // the answer has been read.
  void Linger(size_t read) {
    if (read == 0) Expire(std::chrono::seconds(1));
    if (parser_->is_done() || read > 4 * owner_->options_.max_body_bytes) return Close();
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(size_t{64} << 10),
                            [self = shared_from_this(), read](error_code error, size_t size) {
                              if (!error) self->Linger(read + size);
                            });
  }

  void Close() {
    EndRequest();
    Expire(std::chrono::seconds(1));
    stream_.async_shutdown([self = shared_from_this()](error_code /*error*/) {});
  }

  void BeginRequest() {
    in_request_ = true;
    ++owner_->requests_;
  }
  void EndRequest() {
    if (std::exchange(in_request_, false)) --owner_->requests_;
  }
  bool Reserve(size_t bytes) {
    if ((owner_->pending_bytes_ += bytes) > owner_->options_.max_pending_bytes) {
      owner_->pending_bytes_ -= bytes;
      return false;
    }
    reserved_ = bytes;
    return true;
  }
  void Release() { owner_->pending_bytes_ -= std::exchange(reserved_, 0); }

  Impl* const owner_;
  const std::shared_ptr<ssl::context> context_;
  beast::ssl_stream<beast::tcp_stream> stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::empty_body>> continue_;
  std::optional<Response> reply_;
  bool in_request_ = false;
  bool is_known_ = false;  // a review was answered on it
  size_t reserved_ = 0;
};

absl::Status HttpsListener::Impl::Listen() {
  const size_t colon = options_.address.rfind(':');
  std::string host = options_.address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  error_code error;
  tcp::resolver resolver(io_);
  const auto found =
      resolver.resolve(host, options_.address.substr(colon + 1), tcp::resolver::passive, error);
  if (error || found.empty()) return ListenFailed(options_.address, error.message());
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (!error) port_ = acceptor_.local_endpoint(error).port();
  return error ? ListenFailed(options_.address, error.message()) : absl::OkStatus();
}

void HttpsListener::Impl::Accept() {
  acceptor_.async_accept(asio::make_strand(io_), [this](error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted || draining_) return;
    // One too many is closed as it is destroyed.
    if (!error && connections_ < options_.max_connections)
      std::make_shared<Session>(this, std::move(socket))->Begin();
    // A process out of descriptors would spin.
    if (error) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    Accept();
  });
}

void HttpsListener::Impl::Drain(std::chrono::milliseconds timeout) {
  draining_ = true;
  asio::post(io_, [this] {
    error_code ignored;
    acceptor_.close(ignored);
  });
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (requests_ > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

void HttpsListener::Impl::Stop() {
  Drain(std::chrono::milliseconds(0));
  handlers_.stop();
  handlers_.join();
  io_.stop();
  for (std::thread& thread : threads_) thread.join();
}

absl::StatusOr<std::unique_ptr<HttpsListener>> HttpsListener::Start(
    const HttpsListenerOptions& options, const TlsIdentity& identity, Handler handler,
    Observer observer) {
  // The library's constructors report want of descriptors or threads by exceptions.
  try {
    auto impl = std::make_unique<Impl>(options, std::move(handler), std::move(observer));
    if (absl::Status status = impl->Replace(identity); !status.ok()) return status;
    if (absl::Status status = impl->Listen(); !status.ok()) return status;
    impl->Serve();
    return std::unique_ptr<HttpsListener>(new HttpsListener(std::move(impl)));
  } catch (const std::exception& exception) {
    return ListenFailed(options.address, exception.what());
  }
}

HttpsListener::HttpsListener(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpsListener::~HttpsListener() { impl_->Stop(); }

absl::Status HttpsListener::Replace(const TlsIdentity& identity) {
  return impl_->Replace(identity);
}

void HttpsListener::Drain(std::chrono::milliseconds timeout) { impl_->Drain(timeout); }

int HttpsListener::port() const { return impl_->port(); }

}  // namespace stepcast::admission
