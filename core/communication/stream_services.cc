#include "core/communication/stream_services.h"

#include <algorithm>
#include <variant>

namespace stepcast {

StreamServices StreamServices::Windowed(int64_t size_bytes, int64_t window_bytes,
                                        int64_t quantum_bytes) {
  if (size_bytes <= window_bytes) return Whole(size_bytes);
  const int64_t left = size_bytes - window_bytes;
  const int64_t middle = quantum_bytes > 0 ? std::min(quantum_bytes, left) : left;
  const int64_t middles = (left - 1) / middle;
  return {.first = window_bytes,
          .middle = middle,
          .last = left - middles * middle,
          .count = static_cast<int32_t>(middles) + 2};
}

StreamServices StreamServices::Of(int64_t size_bytes, const Multiplexing& multiplexing) {
  if (const auto* window = std::get_if<Window>(&multiplexing))
    return Windowed(size_bytes, window->bytes, window->quantum_bytes);
  if (const auto* robin = std::get_if<RoundRobin>(&multiplexing))
    return Windowed(size_bytes, robin->window_bytes, robin->quantum_bytes);
  return Whole(size_bytes);
}

std::optional<StreamServices> StreamServices::Of(int64_t size_bytes, const Scenario& scenario) {
  if (!scenario.has_servers()) return std::nullopt;
  return Of(size_bytes, scenario.servers().multiplexing);
}

TransferWork StreamServices::WorkOn(const Bandwidth& link) const {
  if (count == 1) return {.first = link.TimeFor(first), .middle = {}, .last = {}};
  return {.first = link.TimeFor(first),
          .middle = link.TimeFor(middle),
          .last = link.TimeFor(last),
          .services = count};
}

}  // namespace stepcast
