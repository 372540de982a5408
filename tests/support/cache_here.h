// What is kept for the next run on this host is kept in a folder of one test.
#pragma once
#include <cstdlib>
#include <string>

#include "support/temporary_folder.h"

namespace fleetrun {

class CacheHere {
 public:
  CacheHere() : CacheHere("") {}
  // Below the folder, or with a file in the way.
  explicit CacheHere(const std::string& below) : before_(std::getenv("FLEETRUN_CACHE_DIR")) {
    ::setenv("FLEETRUN_CACHE_DIR", (folder_ / below).c_str(), 1);
  }
  ~CacheHere() { ::setenv("FLEETRUN_CACHE_DIR", before_.c_str(), 1); }
  CacheHere(const CacheHere&) = delete;
  CacheHere& operator=(const CacheHere&) = delete;

  const TemporaryFolder& folder() const { return folder_; }

 private:
  std::string before_;
  TemporaryFolder folder_;
};

}  // namespace fleetrun
