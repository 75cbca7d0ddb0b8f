// Numbers without rounding, for references that an engine in integer ticks is measured against.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>

namespace stepcast::testing {

using Exact = boost::multiprecision::cpp_rational;

}  // namespace stepcast::testing
