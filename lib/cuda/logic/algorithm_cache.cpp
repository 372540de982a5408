#include "cuda/logic/algorithm_cache.h"

#include <algorithm>
#include <utility>

#include "base/error/error.h"

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

void AlgorithmCache::keep_in(std::unique_ptr<const runtime::AlgorithmCache> file) {
  file_ = std::move(file);
  try {
    kept_ = file_->read();
  } catch (const Error& error) {
    add_problem(error.message());
  }
}

Algorithm AlgorithmCache::get(const std::string& problem, const AlgorithmSource& source) {
  const std::lock_guard lock(mutex_);  // held during a search: two at once would time each other
  if (const auto known = found_.find(problem); known != found_.end()) return known->second;
  const std::optional<Algorithm> kept = find_kept(problem, source);
  return found_[problem] = kept ? *kept : search(problem, source);
}

std::optional<Algorithm> AlgorithmCache::find_kept(const std::string& problem,
                                                   const AlgorithmSource& source) {
  const auto name = kept_.find(problem);
  if (name == kept_.end()) return std::nullopt;
  std::optional<Algorithm> found = source.find(name->second);
  if (found) ++hits_;
  return found;
}

Algorithm AlgorithmCache::search(const std::string& problem, const AlgorithmSource& source) {
  Algorithm found = source.search();
  ++searches_;
  if (!file_) return found;
  try {
    const std::string first = file_->add({{problem, found.name}}).at(problem);
    if (first == found.name) return found;
    if (std::optional<Algorithm> of_first = source.find(first)) return *of_first;
  } catch (const Error& error) {
    if (problems_.empty()) add_problem(error.message());
  }
  return found;
}

}  // namespace fleetrun::cuda
