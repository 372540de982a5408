// How much longer than promised a program may take in this build.
#pragma once

namespace fleetrun::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kSlowdown = 5;
#else
constexpr double kSlowdown = 1;
#endif

}  // namespace fleetrun::testing
