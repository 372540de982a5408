#include "become.h"

#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun {

void become(const launch::Program& program) {
  std::vector<char*> words;
  for (const std::string& word : program.argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execv(program.executable.c_str(), words.data());
  throw Error(ErrorKind::os, fmt::format("starting {}: {}", program.executable, describe_errno(errno)));
}

}  // namespace fleetrun
