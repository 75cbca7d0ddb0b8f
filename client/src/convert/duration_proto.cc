#include "client/src/convert/duration_proto.h"

#include <cstdint>
#include <limits>

namespace stepcast::client {

namespace {

constexpr int64_t kSecond = 1'000'000'000;

int64_t Saturated(int64_t seconds, int32_t nanos) {
  int64_t whole = 0;
  int64_t total = 0;
  if (!__builtin_mul_overflow(seconds, kSecond, &whole) &&
      !__builtin_add_overflow(whole, int64_t{nanos}, &total))
    return total;
  return seconds < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

}  // namespace

void ToProto(std::chrono::nanoseconds from, google::protobuf::Duration& to) {
  to.set_seconds(from.count() / kSecond);
  to.set_nanos(static_cast<int32_t>(from.count() % kSecond));
}

void ToProto(SystemNanoseconds from, google::protobuf::Timestamp& to) {
  // A timestamp's nanos count forward, also before 1970. The earliest time's whole second is beyond
  // what nanoseconds count to.
  const int64_t total = from.time_since_epoch().count();
  const bool is_between = total % kSecond < 0;
  to.set_seconds(total / kSecond - (is_between ? 1 : 0));
  to.set_nanos(static_cast<int32_t>(total % kSecond + (is_between ? kSecond : 0)));
}

void FromProto(const google::protobuf::Duration& from, std::chrono::nanoseconds& to) {
  to = std::chrono::nanoseconds(Saturated(from.seconds(), from.nanos()));
}

void FromProto(const google::protobuf::Timestamp& from, SystemNanoseconds& to) {
  to = SystemNanoseconds(std::chrono::nanoseconds(Saturated(from.seconds(), from.nanos())));
}

}  // namespace stepcast::client
