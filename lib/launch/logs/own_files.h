// The files of ours in a folder that others use, too. What is not ours is never written to, replaced or removed, and no link
// is followed: what stands where we have to write is an error. Names are "workerlog.0" or "previous/attempt-0/workerlog.0".
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error/error.h"
#include "base/system/unique_fd.h"
#include "launch/logs/file_list.h"

namespace fleetrun::launch {

std::string name_of_user(uid_t user);  // "user alice"; "user 1234" when that one has no name

// "log/report.json is in the way: a link that no run of fleetrun left there".
Error in_the_way(const std::string& path, const FileFacts& found, bool changed = false);
Error cannot_create(const std::string& path, int code);

// A name as system calls take it, for which no link is followed on the way.
struct PlaceInFolder {
  int folder = -1;  // descriptor of the folder; -1 if the folder does not exist
  std::string base;
  std::shared_ptr<const UniqueFd> holder;  // keeps `folder` open; null: it is the log folder
};

class OwnFiles {
 public:
  // `folder` is open on `path`. Throws Error(create) when it cannot be written to, or holds a list that is not ours.
  OwnFiles(int folder, std::string path);
  ~OwnFiles();
  OwnFiles(const OwnFiles&) = delete;
  OwnFiles& operator=(const OwnFiles&) = delete;

  const FileList& list() const { return list_; }
  uid_t owner() const { return owner_; }  // of the files that we make here
  // Begins the list of a run: what it says of files that are gone is forgotten. `ours`: files that the caller knows to be ours. The list
  // may have them by the names under which they were made. Throws Error(create|io).
  void begin(const std::string& run_id, int ranks, const std::vector<std::string>& ours = {});
  void join_run(const std::string& run_id);  // the list names this one from now on: the node has joined it
  void go_on();  // with the run that the list names, which was cut off. Throws Error(create|io).
  void end(const std::vector<std::string>& ours);  // notes how the run left them

  std::optional<FileFacts> look(const std::string& name) const;
  bool owns(const std::string& name) const;
  bool is_known(const std::string& name) const;                        // ours, or was when it had that name
  std::string read(const std::string& name, std::size_t limit) const;  // "" when it cannot be read

  // A new file, for writing. Throws Error(create) when there is one of that name.
  UniqueFd create(const std::string& name, int flags = 0, mode_t mode = 0640);
  void adopt(const std::string& name);  // what was made by other means
  // Whole or not at all. Throws Error(create|io).
  void replace(const std::string& name, std::string_view content);
  void remove(
      const std::string& name) const;  // the caller knows that it is ours; a folder only when it is empty
  void make_folder(const std::string& name);                        // if there is none. Throws Error(create).
  void move(const std::string& name, const std::string& to) const;  // to a free name. Throws Error(create).

  // What is in the folder, or in a folder of it; nothing if it is not a real folder.
  std::vector<std::string> names(const std::string& folder = ".") const;

 private:
  void add(FileRecord record);
  int append(const std::string& line);
  int list_new(const std::string& name);
  void write_list();
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }
  PlaceInFolder place_of(const std::string& name) const;

  const int folder_;
  const std::string path_;
  FileList list_;
  std::string new_list_;  // its name until the run begins
  UniqueFd open_list_;    // for appending
  uid_t owner_ = 0;
  std::unordered_multimap<std::uint64_t, std::size_t> by_inode_;  // places in the list
  std::unordered_multimap<std::string, std::size_t> by_name_;
  // The folder that was opened last: a run moves many files in a row to previous/.
  struct OpenFolder {
    std::string name;
    std::shared_ptr<const UniqueFd> fd;
  };
  mutable OpenFolder last_;
};

}  // namespace fleetrun::launch
