#include "client/src/convert/duration_proto.h"

#include <cstdint>
#include <limits>

namespace stepcast::client {

namespace {

constexpr int64_t kSecond = 1'000'000'000;

int64_t Saturated(int64_t seconds, int32_t nanos) {
  int64_t whole = 0;
  int64_t total = 0;
  if (!__builtin_mul_overflow(seconds, kSecond, &whole) && !__builtin_add_overflow(whole, int64_t{nanos}, &total)) return total;
  return seconds < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

}  // namespace

void ToProto(std::chrono::nanoseconds from, google::protobuf::Duration& to) {
  to.set_seconds(from.count() / kSecond);
  to.set_nanos(static_cast<int32_t>(from.count() % kSecond));
}

void ToProto(SystemNanoseconds from, google::protobuf::Timestamp& to) {
  // A timestamp's nanos count forward, also before 1970.
  const auto seconds = std::chrono::floor<std::chrono::seconds>(from);
  to.set_seconds(seconds.time_since_epoch().count());
  to.set_nanos(static_cast<int32_t>((from - seconds).count()));
}

void FromProto(const google::protobuf::Duration& from, std::chrono::nanoseconds& to) {
  to = std::chrono::nanoseconds(Saturated(from.seconds(), from.nanos()));
}

void FromProto(const google::protobuf::Timestamp& from, SystemNanoseconds& to) {
  to = SystemNanoseconds(std::chrono::nanoseconds(Saturated(from.seconds(), from.nanos())));
}

}  // namespace stepcast::client
