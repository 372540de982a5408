// ulimit -f for a while.
#pragma once
#include <sys/resource.h>

#include <csignal>

namespace fleetrun {

// No file may become longer meanwhile.
class LongestFile {
 public:
  explicit LongestFile(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~LongestFile() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  LongestFile(const LongestFile&) = delete;
  LongestFile& operator=(const LongestFile&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

}  // namespace fleetrun
