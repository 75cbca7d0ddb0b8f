#include "tests/testbed/node/worker.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "tests/testbed/node/messages.h"
#include "tests/testbed/node/steady_time.h"

namespace stepcast::testbed {

namespace {

constexpr std::chrono::seconds kConnectLimit{5};
// A computation never shrinks below this share of its time.
constexpr double kMinShare = 0.2;

size_t Index(int32_t i) { return static_cast<size_t>(i); }

}  // namespace

Worker::Worker(const Job& job, WorkerOptions options)
    : job_(job),
      options_(std::move(options)),
      random_(options_.seed),
      durations_ns_(job.operations.size()),
      pending_(job.operations.size()),
      ready_ns_(job.operations.size()) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  for (const std::string& server : options_.servers) {
    channels_.push_back(
        grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments));
    stubs_.push_back(std::make_unique<grpc::GenericStub>(channels_.back()));
  }
}

bool Worker::Connect() {
  const auto until = std::chrono::system_clock::now() + kConnectLimit;
  return std::all_of(channels_.begin(), channels_.end(),
                     [&](const auto& channel) { return channel->WaitForConnected(until); });
}

void Worker::WarmUp() {
  std::mutex mutex;
  std::condition_variable ended;
  int left = 0;
  std::string fault;
  const auto end_one = [&](const grpc::Status& status) {
    const std::lock_guard lock(mutex);
    if (!status.ok()) fault = status.error_message();
    --left;
    ended.notify_one();
  };
  std::unique_lock lock(mutex);
  for (const Resource resource : {Resource::kDownlink, Resource::kUplink}) {
    for (size_t i = 0; i < job_.operations.size(); ++i) {
      if (job_.operations[i].resource != resource) continue;
      ++left;
      lock.unlock();
      const auto operation = static_cast<int32_t>(i);
      if (resource == Resource::kDownlink) {
        Download(operation, end_one);
      } else {
        Upload(operation, 0,
               [&](const grpc::Status& status, const UploadReply&) { end_one(status); });
      }
      lock.lock();
    }
    ended.wait(lock, [&left] { return left == 0; });
  }
  if (!fault.empty()) throw std::runtime_error("warming up: " + fault);
}

std::vector<StepRecord> Worker::Run(int64_t origin_ns) {
  std::thread sender([this] { Send(); });
  SleepUntilNs(origin_ns + options_.start_offset_ns);
  {
    const std::lock_guard lock(mutex_);
    until_ns_ = origin_ns + options_.length_ns;
    BeginStep(NowNs());
  }
  Compute();
  transfer_ready_.notify_one();
  sender.join();
  if (!fault_.empty()) throw std::runtime_error(fault_);
  return std::move(steps_);
}

void Worker::VaryDurations() {
  std::normal_distribution<double> normal(1, options_.variation);
  const auto factor = [&] {
    return std::max(kMinShare, options_.variation > 0 ? normal(random_) : 1.0);
  };
  const double of_step = factor();
  for (size_t i = 0; i < durations_ns_.size(); ++i) {
    durations_ns_[i] = static_cast<int64_t>(static_cast<double>(job_.operations[i].duration_ns) *
                                            of_step * factor());
  }
}

void Worker::BeginStep(int64_t now_ns) {
  VaryDurations();
  step_ = {.begin_ns = now_ns,
           .start_ns = std::vector<int64_t>(job_.operations.size()),
           .done_ns = std::vector<int64_t>(job_.operations.size())};
  left_ = static_cast<int32_t>(job_.operations.size());
  std::vector<int32_t> downloads = job_.download_order;
  for (size_t i = 0; i < job_.operations.size(); ++i) {
    pending_[i] = static_cast<int32_t>(job_.operations[i].waiting_for.size());
    ready_ns_[i] = now_ns;
    if (pending_[i] > 0) continue;
    const auto operation = static_cast<int32_t>(i);
    if (job_.operations[i].resource == Resource::kWorker) computations_.emplace(now_ns, operation);
    if (job_.operations[i].resource == Resource::kDownlink && job_.download_order.empty())
      downloads.push_back(operation);
  }
  if (job_.download_order.empty()) std::shuffle(downloads.begin(), downloads.end(), random_);
  transfers_.insert(transfers_.end(), downloads.begin(), downloads.end());
  transfer_ready_.notify_one();
  computation_ready_.notify_one();
}

void Worker::Compute() {
  int64_t free_at_ns = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    computation_ready_.wait(lock, [this] { return over_ || !computations_.empty(); });
    if (over_) return;
    const auto [ready_at_ns, operation] = computations_.top();
    computations_.pop();
    const int64_t start_ns = std::max(ready_at_ns, free_at_ns);
    free_at_ns = start_ns + durations_ns_[Index(operation)];
    lock.unlock();
    SleepUntilNs(free_at_ns);
    lock.lock();
    step_.start_ns[Index(operation)] = start_ns;
    Done(operation, free_at_ns);
  }
}

void Worker::Send() {
  std::unique_lock lock(mutex_);
  while (true) {
    transfer_ready_.wait(lock, [this] { return over_ || !transfers_.empty(); });
    if (over_) return;
    const int32_t operation = transfers_.front();
    transfers_.pop_front();
    if (job_.operations[Index(operation)].resource == Resource::kDownlink) {
      step_.start_ns[Index(operation)] = NowNs();
      lock.unlock();
      Download(operation,
               [this, operation](const grpc::Status& status) { OnDownloaded(operation, status); });
    } else {
      const int64_t update_ns = durations_ns_[Index(UpdateAfter(operation))];
      lock.unlock();
      Upload(operation, update_ns,
             [this, operation](const grpc::Status& status, const UploadReply& reply) {
               OnUploaded(operation, status, reply);
             });
    }
    lock.lock();
  }
}

void Worker::Download(int32_t operation, Downloaded done) {
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer request;
    grpc::ByteBuffer reply;
  };
  const JobOperation& of = job_.operations[Index(operation)];
  auto call = std::make_shared<Call>();
  const grpc::Slice request = SliceOf(DownloadRequest{.size_bytes = of.size_bytes});
  call->request = grpc::ByteBuffer(&request, 1);
  stubs_[Index(of.parameter_server)]->UnaryCall(
      &call->context, kDownloadMethod, {}, &call->request, &call->reply,
      [call, done = std::move(done)](const grpc::Status& status) { done(status); });
}

void Worker::OnDownloaded(int32_t operation, const grpc::Status& status) {
  const int64_t now_ns = NowNs();
  const std::lock_guard lock(mutex_);
  if (!status.ok()) fault_ = "download: " + status.error_message();
  Done(operation, now_ns);
}

int32_t Worker::UpdateAfter(int32_t upload) const {
  for (const int32_t follower : job_.operations[Index(upload)].followers) {
    if (job_.operations[Index(follower)].resource == Resource::kParameterServer) return follower;
  }
  throw std::runtime_error("an upload without an update: " + job_.operations[Index(upload)].name);
}

void Worker::Upload(int32_t operation, int64_t update_ns, Uploaded done) {
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer request;
    grpc::ByteBuffer reply;
  };
  const JobOperation& of = job_.operations[Index(operation)];
  auto call = std::make_shared<Call>();
  const grpc::Slice slices[] = {
      SliceOf(UploadHeader{.worker = options_.worker, .update_ns = update_ns}),
      TensorOf(of.size_bytes)};
  call->request = grpc::ByteBuffer(slices, 2);
  stubs_[Index(of.parameter_server)]->UnaryCall(
      &call->context, kUploadMethod, {}, &call->request, &call->reply,
      [call, done = std::move(done)](const grpc::Status& status) {
        UploadReply reply;
        const bool read = status.ok() && ReadFrom(call->reply, reply);
        done(read || !status.ok() ? status : grpc::Status(grpc::StatusCode::INTERNAL, "no reply"),
             reply);
      });
}

void Worker::OnUploaded(int32_t operation, const grpc::Status& status, const UploadReply& reply) {
  const int32_t update = UpdateAfter(operation);
  const std::lock_guard lock(mutex_);
  if (!status.ok()) fault_ = "upload: " + status.error_message();
  Done(operation, reply.received_ns);
  step_.start_ns[Index(update)] = reply.update_start_ns;
  Done(update, reply.update_end_ns);
}

void Worker::Done(int32_t operation, int64_t at_ns) {
  step_.done_ns[Index(operation)] = at_ns;
  for (const int32_t follower : job_.operations[Index(operation)].followers) {
    int64_t& ready_ns = ready_ns_[Index(follower)];
    ready_ns = std::max(ready_ns, at_ns);
    if (--pending_[Index(follower)] > 0) continue;
    switch (job_.operations[Index(follower)].resource) {
      case Resource::kWorker:
        computations_.emplace(ready_ns, follower);
        computation_ready_.notify_one();
        break;
      case Resource::kUplink:
        step_.start_ns[Index(follower)] = ready_ns;
        transfers_.push_back(follower);
        transfer_ready_.notify_one();
        break;
      case Resource::kDownlink:
      case Resource::kParameterServer:  // the server's own business
        break;
    }
  }
  if (--left_ > 0) return;
  const int64_t now_ns = NowNs();
  step_.end_ns = now_ns;
  steps_.push_back(std::move(step_));
  if (now_ns < until_ns_ && static_cast<int32_t>(steps_.size()) < options_.most_steps &&
      fault_.empty())
    return BeginStep(now_ns);
  over_ = true;
  computation_ready_.notify_one();
  transfer_ready_.notify_one();
}

}  // namespace stepcast::testbed
