// The list .fleetrun of a log folder: which files runs of ours wrote there. A file is known by its inode and its birth, so that
// one that somebody else puts under the same name is never taken for ours; of a run that ended, by its size, too.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::launch {

// What the kernel says about a name in a folder, never about what a link points to.
struct FileFacts {
  enum class Kind { file, folder, link, socket, other };
  Kind kind = Kind::file;
  std::uint64_t inode = 0;
  std::int64_t birth_ns = 0;  // 0: the file system does not know
  std::int64_t size = 0;
  std::int64_t changed_ns = 0;  // its content
  uid_t owner = 0;
};

// What is at `name` in the folder; nothing when nothing is there.
std::optional<FileFacts> facts_of(int folder, const std::string& name);

struct FileRecord {
  std::string name;  // in the folder, "attempt-0/workerlog.1"
  std::uint64_t inode = 0;
  std::int64_t birth_ns = 0;
  struct End {
    std::int64_t size = 0, changed_ns = 0;
  };
  std::optional<End> end;  // as the run left it; nothing while it runs, and when it was cut off
};

FileRecord record_of(const std::string& name, const FileFacts& facts);
// A run of ours wrote what is there now under `name`, and nobody has written to it since.
bool is_ours(const FileRecord& record, const std::string& name, const FileFacts& now);

struct FileList {
  std::string run_id;  // of the run that began last
  int ranks = 0;       // of its node
  bool ended = true;   // false: it was cut off, or runs
  std::vector<FileRecord> files;
};

constexpr std::string_view kFileListStart = "fleetrun files 1\n";  // what every list begins with

std::string format_run(const FileList& list);         // a line; the last one of a list counts
std::string format_record(const FileRecord& record);  // a line
std::string format_file_list(const FileList& list);
// Nothing for what is not a list of ours. A last line that was cut off is left out.
std::optional<FileList> parse_file_list(const std::string& text);

}  // namespace fleetrun::launch
