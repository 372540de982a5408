// Somebody who follows the logs of a run on several nodes while a test goes on.
#pragma once
#include <memory>
#include <string>

#include "e2e/nodes/cluster.h"

namespace fleetrun {

// `fleetrun logs -f` with these flags on a node.
class Follower {
 public:
  Follower(const Cluster& cluster, int node, const std::string& name, const Words& flags = {})
      : path_(cluster.shared() / name) {
    Words words = {"/bin/sh",
                   "-c",
                   "exec \"$@\" > \"$0\" 2>&1",
                   path_,
                   FLEETRUN_BINARY,
                   "logs",
                   "-f",
                   "--log_dir=" + cluster.folder(node) + "/log"};
    words.insert(words.end(), flags.begin(), flags.end());
    process_ = std::make_unique<ChildProcess>(words);
  }

  std::string shown() const { return std::filesystem::exists(path_) ? read_all(path_) : ""; }
  bool shows(const std::string& text) const {
    const bool shown_in_time = comes_true([&] { return contains(shown(), text); }, within(30s));
    CHECK_MESSAGE(shown_in_time, text << " is not in:\n" << shown());
    return shown_in_time;
  }
  bool ends_with(const std::string& text) const {
    const bool shown_in_time = comes_true([&] { return shown().ends_with(text); }, within(30s));
    CHECK_MESSAGE(shown_in_time, text << " is not the end of:\n" << shown());
    return shown_in_time;
  }
  int end() { return process_->wait(within(10s)).code; }

 private:
  std::string path_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace fleetrun
