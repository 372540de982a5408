// Which of a library's algorithms a convolution problem uses: chosen once for each distinct problem, then remembered.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace fleetrun::cuda {

class ConvolutionPlan;

struct Algorithm {
  std::size_t workspace = 0;  // bytes
  std::shared_ptr<const ConvolutionPlan> plan = nullptr;
  std::int64_t channels = 0;  // of the filters that it takes
  bool operator==(const Algorithm&) const = default;
};

// One that the library offers for a problem.
struct Candidate {
  Algorithm algorithm;
  bool usable = false;  // it ran, or would run
};

// The first usable one that asks for no more than `workspace_limit` bytes. The library's order is the fastest first:
// measured by a search, else expected.
std::optional<Algorithm> first_within(const std::vector<Candidate>& candidates, std::size_t workspace_limit);

// The least workspace of the usable ones, for the error when none fits; nothing when there is none.
std::optional<std::size_t> least_workspace(const std::vector<Candidate>& candidates);

class AlgorithmCache {
 public:
  // `problem` says everything that the choice depends on. `search` runs for the first kernel with that problem; when it
  // throws, the cache stays as it was.
  Algorithm get(const std::string& problem, const std::function<Algorithm()>& search);

  int searches() const { return searches_; }
  int hits() const { return hits_; }

 private:
  std::mutex mutex_;
  std::map<std::string, Algorithm> found_;
  int searches_ = 0;
  int hits_ = 0;
};

}  // namespace fleetrun::cuda
