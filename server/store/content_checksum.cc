#include "server/store/content_checksum.h"

#include <zlib.h>

namespace stepcast::server {

int64_t ContentChecksum(const ProfileSummary& summary, std::string_view content) {
  uLong sum = crc32_z(0, nullptr, 0);
  for (const std::string_view part :
       {std::string_view(summary.id), std::string_view(summary.digest), content}) {
    sum = crc32_z(sum, reinterpret_cast<const Bytef*>(part.data()), part.size());
  }
  return static_cast<int64_t>(sum);
}

}  // namespace stepcast::server
