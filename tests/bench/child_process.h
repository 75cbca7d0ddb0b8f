// A computation in a process of its own, which begins as a copy of this one.
#pragma once

#include <functional>
#include <string>

namespace stepcast::bench {

// The text that `compute` returns there. Throws std::runtime_error where it throws or its process
// dies.
std::string InChildProcess(const std::function<std::string()>& compute);

}  // namespace stepcast::bench
