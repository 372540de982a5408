// Which of a library's algorithms a convolution problem uses: chosen once for each distinct problem, then remembered. The
// results of a search may also be kept in a file, for the next run on this host and for its other ranks.
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

#include "runtime/exec/algorithm_cache.h"

namespace fleetrun::cuda {

class ConvolutionPlan;

struct Algorithm {
  std::string name = {};      // tells it from others of the same problem
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

// How to get an algorithm for a problem.
struct AlgorithmSource {
  std::function<Algorithm()> search;
  // The one that has this name; nothing if the library no longer offers it. Called only if results are kept.
  std::function<std::optional<Algorithm>(const std::string& name)> find = nullptr;
};

class AlgorithmCache {
 public:
  // From now on a result is looked for in this file, and added to it. The first rank that adds one decides for those
  // that share the file. If the file cannot be read or written, problems() says why, and nothing is thrown.
  void keep_in(std::unique_ptr<const runtime::AlgorithmCache> file);

  // `problem` says everything that the choice depends on. `source.search` runs for the first kernel with that problem;
  // when it throws, the cache stays as it was.
  Algorithm get(const std::string& problem, const AlgorithmSource& source);

  int searches() const { return searches_; }
  int hits() const { return hits_; }  // the number of problems for which the file had an algorithm

  // Why results are not kept, a text for each reason.
  const std::vector<std::string>& problems() const { return problems_; }
  void add_problem(const std::string& problem) { problems_.push_back(problem); }

 private:
  std::optional<Algorithm> find_kept(const std::string& problem, const AlgorithmSource& source);
  Algorithm search(const std::string& problem, const AlgorithmSource& source);

  std::mutex mutex_;
  std::map<std::string, Algorithm> found_;
  std::unique_ptr<const runtime::AlgorithmCache> file_;  // null: results are not kept
  runtime::Choices kept_;                                // what the file had
  std::vector<std::string> problems_;
  int searches_ = 0;
  int hits_ = 0;
};

}  // namespace fleetrun::cuda
