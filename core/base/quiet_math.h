// The policy under which Boost's distributions are asked.
#pragma once

#include <boost/math/policies/policy.hpp>

namespace stepcast {

// Nothing is thrown, whatever is asked: what is not defined is NaN, what is out of range infinite.
using QuietMath = boost::math::policies::policy<
    boost::math::policies::domain_error<boost::math::policies::ignore_error>,
    boost::math::policies::pole_error<boost::math::policies::ignore_error>,
    boost::math::policies::overflow_error<boost::math::policies::ignore_error>,
    boost::math::policies::evaluation_error<boost::math::policies::ignore_error>,
    boost::math::policies::rounding_error<boost::math::policies::ignore_error>>;

}  // namespace stepcast
