// Running the real launcher on the fake worker.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "support/child_process.h"
#include "support/temporary_folder.h"

namespace fleetrun {

using Words = std::vector<std::string>;
using namespace std::chrono_literals;

// A folder to run in, and what to look at afterwards.
struct Launch {
  ChildOptions options() const { return {.folder = folder.path()}; }
  static Words command(const Words& flags, const Words& worker) {
    Words words = {FLEETRUN_BINARY};
    words.insert(words.end(), flags.begin(), flags.end());
    words.emplace_back(FAKE_WORKER);
    words.insert(words.end(), worker.begin(), worker.end());
    return words;
  }
  ChildResult run(const Words& flags, const Words& worker) const {
    return run_child(command(flags, worker), options());
  }
  ChildResult run_words(Words words) const {
    words.insert(words.begin(), FLEETRUN_BINARY);
    return run_child(words, options());
  }

  // The pid that a fake worker wrote, as soon as it is there.
  pid_t pid_in(const std::string& name) const { return fleetrun::pid_in(folder, name, 60s); }
  nlohmann::json report() const { return nlohmann::json::parse(folder.read("log/report.json")); }

  TemporaryFolder folder;
};

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline bool has_program(const std::string& name) {
  return run_child({"/bin/sh", "-c", "command -v " + name}).code == 0;
}

// The embedded runtime's processes that were started in this folder and still run.
inline std::vector<pid_t> workers_in(const TemporaryFolder& folder) {
  std::vector<pid_t> pids;
  const auto home = std::filesystem::canonical(folder.path());
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    std::error_code gone;
    if (pid > 0 && std::filesystem::read_symlink(entry.path() / "cwd", gone) == home &&
        contains(std::filesystem::read_symlink(entry.path() / "exe", gone), "fleetrun-worker"))
      pids.push_back(pid);
  }
  return pids;
}

}  // namespace fleetrun
