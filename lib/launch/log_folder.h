// The folder log/ of one run: nobody else's while we hold it, and without remains of earlier runs.
#pragma once
#include <string>
#include <vector>

#include "base/endpoint.h"
#include "base/unique_fd.h"

namespace fleetrun::launch {

// A fleetrun uses the folder now.
bool is_in_use(const std::string& path);

class LogFolder {
 public:
  // Makes the folder, locks it, and removes what an earlier run left. Throws Error(create).
  explicit LogFolder(std::string path);

  ~LogFolder();
  LogFolder(const LogFolder&) = delete;
  LogFolder& operator=(const LogFolder&) = delete;

  const std::string& path() const { return path_; }  // as the user wrote it
  std::string absolute() const;
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string worker_log(int rank) const { return file("workerlog." + std::to_string(rank)); }
  std::string error_log(int rank) const { return worker_log(rank) + ".err"; }  // of stderr, where it is apart
  std::string log_of_end(int rank) const;  // the one that says why the rank failed

  // Moves what the ranks wrote to attempt-K/. Throws Error(create).
  void keep_attempt(int attempt) const;
  // Empty, for writing. Throws Error(create).
  UniqueFd open_worker_log(int rank) const;
  UniqueFd open_error_log(int rank) const;
  void reserve() const;          // room for the report, before logs fill the disk
  void release_reserve() const;  // for the report, if there is any
  void write_endpoints(const std::vector<Endpoint>& endpoints) const;

 private:
  void lock();
  void remove_remains() const;

  std::string path_;
  UniqueFd lock_;
};

}  // namespace fleetrun::launch
