#include "e2e/faults/test_cgroup.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <vector>

#include "support/child_process.h"

namespace fleetrun {
namespace {

using namespace std::chrono_literals;

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace

std::optional<TestCgroup> TestCgroup::make(const std::string& controller) {
  const std::string name = "/fleetrun-test-" + std::to_string(::getpid()) + "-" + controller;
  const std::string first = "/sys/fs/cgroup/" + controller, second = "/sys/fs/cgroup";
  if (exists(first + "/cgroup.procs") && ::mkdir((first + name).c_str(), 0755) == 0)
    return TestCgroup(first + name, 1);
  if (!exists(second + "/cgroup.controllers") || ::mkdir((second + name).c_str(), 0755) != 0)
    return std::nullopt;
  TestCgroup made(second + name, 2);
  std::ifstream controllers(made.path() + "/cgroup.controllers");
  for (std::string word; controllers >> word;)
    if (word == controller) return made;
  return std::nullopt;
}

TestCgroup::~TestCgroup() {
  if (!path_.empty()) comes_true([&] { return ::rmdir(path_.c_str()) == 0; }, 2s);
}

bool TestCgroup::set(const std::string& file, const std::string& value) const {
  std::ofstream stream(path_ + "/" + file);
  stream << value << std::flush;
  return static_cast<bool>(stream);
}

}  // namespace fleetrun
