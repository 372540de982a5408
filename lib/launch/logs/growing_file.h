// A file that others append to. Whoever empties it meanwhile (`: > log`) makes it begin anew, and so does its reader.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <string>

#include "base/unique_fd.h"

namespace fleetrun::launch {

class GrowingFile {
 public:
  explicit GrowingFile(
      const std::string& path);  // without a descriptor when it cannot be opened; errno says why

  bool is_open() const { return static_cast<bool>(fd_); }
  void close() { fd_.reset(); }
  void go_to(off_t place) { place_ = place; }
  off_t size() const;

  // True: the file is shorter than what was read of it, and is read from its start again.
  bool begins_anew();
  // The next bytes, at most so many; "" at the end.
  std::string read(std::size_t most);
  // What was added since the last read; when that is more, only its last `most` bytes.
  std::string read_end(std::size_t most);

 private:
  UniqueFd fd_;
  off_t place_ = 0;
};

}  // namespace fleetrun::launch
