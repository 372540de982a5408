#include "cuda/logic/algorithm_cache.h"

#include <algorithm>

namespace fleetrun::cuda {

std::optional<Algorithm> first_within(const std::vector<Candidate>& candidates, std::size_t workspace_limit) {
  for (const Candidate& candidate : candidates)
    if (candidate.usable && candidate.algorithm.workspace <= workspace_limit) return candidate.algorithm;
  return std::nullopt;
}

std::optional<std::size_t> least_workspace(const std::vector<Candidate>& candidates) {
  std::optional<std::size_t> least;
  for (const Candidate& candidate : candidates)
    if (candidate.usable)
      least = std::min(least.value_or(candidate.algorithm.workspace), candidate.algorithm.workspace);
  return least;
}

Algorithm AlgorithmCache::get(const std::string& problem, const std::function<Algorithm()>& search) {
  const std::lock_guard lock(mutex_);  // held during a search: two at once would time each other
  const auto known = found_.find(problem);
  if (known != found_.end()) {
    ++hits_;
    return known->second;
  }
  const Algorithm algorithm = search();
  ++searches_;
  return found_[problem] = algorithm;
}

}  // namespace fleetrun::cuda
