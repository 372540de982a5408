// A file that others append to. Whoever empties it meanwhile (`: > log`) makes it begin anew, and so does its reader.
#pragma once
#include <fcntl.h>
#include <sys/types.h>

#include <cstddef>
#include <string>
#include <utility>

#include "base/system/unique_fd.h"

namespace fleetrun::launch {

// A file that we find even after its folder was renamed. A run's logs are such files: after `mv log old` the run must not read
// what another run writes to a new log/.
struct LogFile {
  LogFile(std::string whole) : path(std::move(whole)), name(path) {}
  LogFile(int open_folder, std::string name_there, std::string shown)
      : path(std::move(shown)), folder(open_folder), name(std::move(name_there)) {}

  std::string path;       // as the user knows it
  int folder = AT_FDCWD;  // open
  std::string name;       // in that folder
};

// The file that a descriptor is open on: its name may have gone, or may be a user's file by now. Where there is no /proc, `named`.
LogFile file_behind(const UniqueFd& fd, const LogFile& named);

class GrowingFile {
 public:
  explicit GrowingFile(const LogFile& file);  // without a descriptor when it cannot be opened; errno says why

  bool is_open() const { return static_cast<bool>(fd_); }
  void close() { fd_.reset(); }
  void go_to(off_t place);
  off_t place() const { return place_; }  // of the next byte to read
  off_t size() const;
  ino_t inode() const;  // 0 without a descriptor

  // True: the file no longer has what was read of it last, and is read from its start again.
  bool begins_anew();
  // The next bytes, at most so many; "" at the end.
  std::string read(std::size_t most);
  // What was added since the last read; when that is more, only its last `most` bytes.
  std::string read_end(std::size_t most);

 private:
  std::string bytes_at(off_t place, std::size_t count) const;
  bool has_what_was_read() const;

  UniqueFd fd_;
  off_t place_ = 0;
  std::string start_;   // the first bytes of the file, as they were when they had been read
  std::string before_;  // the last bytes in front of place_, as they were read
};

}  // namespace fleetrun::launch
