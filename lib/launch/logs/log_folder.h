// The folder log/ of one run: nobody else's while we hold it, and without remains of earlier runs. What no run of ours wrote
// stays as it is (own_files.h).
#pragma once
#include <sys/types.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/system/endpoint.h"
#include "base/system/unique_fd.h"
#include "launch/logs/growing_file.h"
#include "launch/logs/log_names.h"
#include "launch/logs/own_files.h"

namespace fleetrun::launch {

// A fleetrun uses the folder now.
bool is_in_use(const std::string& path);

// Removes what runs of ours wrote to the folder, and the folder when nothing else is in it.
void remove_log_folder(const std::string& path);

// The process of a run is gone without a report: writes what `files(run_id)` returns, by name. Leaves a folder alone in which no run
// was cut off. Throws Error(create|io), also when another run holds the folder.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;
void write_lost_report(const std::string& path,
                       const std::function<NamedTexts(const std::string& run_id)>& files);

constexpr std::size_t kMostHistoryBytes = std::size_t{256} << 20;  // of log/history.csv

// What will be written to it: files of others that have such names are in the way.
struct LogPlan {
  std::string run_id = "run";
  pid_t pid = ::getpid();         // that the user knows the run by
  int ranks = 1;                  // of this node
  bool has_train_report = false;  // of the embedded runtime
  bool may_start_again = false;   // --max_restart
  bool keeps_previous = false;    // the files of the run before go to previous/; else they are removed
  bool keeps_places = false;      // of the nodes of the run before, until this node has a place in a run
};

class LogFolder {
 public:
  // Makes the folder, locks it, and moves or removes what an earlier run left. Throws Error(create), also when something that is
  // not ours has a name that we need.
  explicit LogFolder(std::string path, LogPlan plan = {});

  ~LogFolder();
  LogFolder(const LogFolder&) = delete;
  LogFolder& operator=(const LogFolder&) = delete;

  const std::string& path() const { return path_; }        // as the user wrote it
  const std::string& warning() const { return warning_; }  // "" when all is well
  // Where the files of the run before are now: "log/previous"; "": there was none, or they were removed.
  const std::string& previous() const { return previous_; }
  std::string absolute() const;  // where it is now, if somebody renamed it
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string worker_log(int rank) const { return file("workerlog." + std::to_string(rank)); }
  std::string error_log(int rank) const { return worker_log(rank) + ".err"; }  // of stderr, where it is apart

  // For reading, whatever the folder is called by now. They live no longer than we.
  LogFile find(const std::string& name) const { return {folder_.get(), name, file(name)}; }
  LogFile find_worker_log(int rank) const { return find(fmt::format("workerlog.{}", rank)); }
  LogFile find_error_log(int rank) const { return find(fmt::format("workerlog.{}.err", rank)); }
  std::optional<FileFacts> look(const std::string& name) const { return files_->look(name); }
  std::string read_error_file(int rank) const;  // of PyTorch's @record; "" when there is none

  // Somebody has removed the folder: no file can be made in it any more.
  bool is_removed() const;
  // Makes the folder again. If another run uses the name by now, the number of our process is appended to it. Throws Error(create).
  void make_again();

  // This node has joined the run: its rank 0 may write here as one of that run.
  void join_run(const std::string& run_id) const { files_->join_run(run_id); }
  // Moves what the ranks wrote to attempt-K/. Also keeps there which rank was on which node. Throws Error(create).
  void keep_attempt(int attempt) const;
  // Moves what rank 0 reported of its training there, too. Until another attempt begins, it tells how to go on. Throws Error(create).
  void keep_train_report(int attempt) const;
  // Empty, for writing. All throw Error(create), also when something that is not ours has the name.
  UniqueFd open_worker_log(int rank) const;
  UniqueFd open_error_log(int rank) const;
  UniqueFd open_times() const;           // for appending
  void prepare_history() const;          // for rank 0 of a job, which writes it
  UniqueFd open_stacks(int rank) const;  // instead of earlier ones
  void write(const std::string& name, std::string_view content) const;  // whole, instead of an earlier one
  void write_private(const std::string& name, std::string_view content) const;  // that only our user reads
  void adopt(const std::string& name) const;   // which was made by other means: a socket
  void remove(const std::string& name) const;  // if it is ours
  void try_to_remove(const std::string& name)
      const;  // likewise; for the end of a run: it is left where it cannot be removed

  // The errno of a file system that has no room, or refuses every write, by now; 0: it takes more.
  int problem_of_writing() const;

  void reserve() const;          // room for the report, before logs fill the disk
  void release_reserve() const;  // for the report, if there is any
  void write_endpoints(const std::vector<Endpoint>& endpoints) const;
  std::string read_train_report() const;  // of this run; "" when there is none
  // Of this training; "" when there is none. Of a file with more bytes the first line and the last rows.
  std::string read_history(std::size_t most) const;
  std::vector<std::string> shown_names() const;  // of files in the folder that the page of the run links

 private:
  std::vector<std::string> own_names() const;
  void add_own_names(const std::string& folder, std::vector<std::string>& own) const;
  void clear();
  void keep_as_previous(const std::vector<std::string>& names);
  void require_free_previous(const std::vector<std::string>& names) const;
  bool owns(const std::string& name) const;
  bool is_empty_folder(const std::string& name) const;
  bool was_cut_off(const std::string& name) const;
  void require_free(const std::string& name) const;  // or ours
  void require_free_names() const;
  void require_free_attempt(const std::string& folder) const;

  void swap(LogFolder& other);

  LogPlan plan_;
  std::string path_;
  UniqueFd folder_;
  UniqueFd lock_;
  std::string warning_, previous_;
  std::unique_ptr<OwnFiles> files_;
  bool began_ = false;                 // what earlier runs left is gone
  bool foreign_train_report_ = false;  // there before we began
};

}  // namespace fleetrun::launch
