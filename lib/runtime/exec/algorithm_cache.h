// Which algorithm was the fastest for a problem, kept in a file for the next run on this host: ranks and runs that find
// it choose alike, however their timings would have come out.
//
//   FOLDER/algorithms-0123456789abcdef.json   {"place": "node1, AMD EPYC ..., oneDNN 2.6.3",
//                                              "algorithms": {"conv2d f32[8,64,56,56] ... by direct,winograd": "winograd"}}
#pragma once
#include <map>
#include <string>

#include "base/system/environment.h"

namespace fleetrun::runtime {

using Choices = std::map<std::string, std::string>;  // algorithm by problem

// FLEETRUN_CACHE_DIR, else ${XDG_CACHE_HOME:-~/.cache}/fleetrun.
// Throws Error(config) if the environment does not name a folder, or if HOME does not exist.
std::string cache_folder(const Environment& environment);

class AlgorithmCache {
 public:
  // `place`: all that timings depend on but for the problem. Each has a file of its own.
  AlgorithmCache(const std::string& folder, std::string place);

  const std::string& path() const { return path_; }

  // Nothing when there is no such file. Throws Error(data) for one with another content, Error(permission|io).
  Choices read() const;

  // Writes those that the file does not have and returns what it says then: the first writer wins. A file that cannot
  // be understood is made anew. Throws Error(create|io), Error(temporary) when another process keeps it locked.
  Choices add(const Choices& choices) const;

 private:
  std::string folder_, place_, path_;
};

}  // namespace fleetrun::runtime
