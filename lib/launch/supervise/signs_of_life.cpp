#include "launch/supervise/signs_of_life.h"

#include <algorithm>

namespace fleetrun::launch {

SignsOfLife together(const SignsOfLife& one, const SignsOfLife& other) {
  SignsOfLife both = one;
  if (!one.silent || (other.silent && *other.silent < *one.silent)) both.silent = other.silent;
  both.unmatched.resize(std::max(one.unmatched.size(), other.unmatched.size()), Clock::duration::max());
  for (std::size_t rule = 0; rule < other.unmatched.size(); ++rule)
    both.unmatched[rule] = std::min(both.unmatched[rule], other.unmatched[rule]);
  both.excuses_steps = one.excuses_steps || other.excuses_steps;
  return both;
}

}  // namespace fleetrun::launch
