// The bytes of a run's summary, for whoever hands it to another process of the same program.
//
// Exact: what is read is what was written, to the bit. For machines of one byte order.
// Threads: pure functions. Cost: linear; 1 to 10 KiB a run.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/predict/run_summary.h"

namespace stepcast {

std::string BytesOf(const RunSummary& run);

// Null where the bytes are none that BytesOf gives.
std::shared_ptr<const RunSummary> RunOfBytes(std::string_view bytes);

}  // namespace stepcast
