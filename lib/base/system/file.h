// Reads and writes whole files. Turns errors of the operating system into Error.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/unique_fd.h"

namespace fleetrun {

// The content of a regular file of at most `limit` bytes.
// Throws Error(missing|permission|io), Error(config) when it is not a regular file or larger than that.
std::string read_file(const std::string& path, std::size_t limit);
std::string read_file(int fd, const std::string& path, std::size_t limit);  // `fd` is open on `path`

void write_all(int fd, std::string_view content, const std::string& path);  // Throws Error(io).

// Writes to a temporary name beside `path`, syncs, and renames: readers see the old or the new content.
// Throws Error(create|io).
void write_file_atomically(const std::string& path, std::string_view content);

// The same without the sync, which can take long on a busy disk: for files that a new run writes again anyway.
enum class Readers { user_and_group, all };  // limited by the umask
void replace_file(const std::string& path, std::string_view content,
                  Readers readers = Readers::user_and_group);

// Gives the open file the name `path` too, or copies its content there if the file system cannot do that. Throws Error(create|io), also
// when something has the name.
void link_or_copy(const UniqueFd& file, const std::string& path);

bool have_same_content(const UniqueFd& one, const UniqueFd& other);  // false if one cannot be read

// Makes sure that files created, renamed or removed in the folder have reached the disk. Throws Error(io).
void sync_folder(const std::string& path);

// The names in an open folder, except "." and ".."; empty when the folder cannot be read.
std::vector<std::string> names_in(int folder);

// Opens the folder only so that path_now() can find it: the descriptor can neither read nor write. Invalid if the folder does not exist.
UniqueFd remember_folder(const std::string& path);
// Where an open folder is now: somebody may have renamed it since it was opened as `path`. None if that is not known, for instance because
// the folder was removed; another one may be at `path` then.
std::optional<std::string> path_now(const UniqueFd& folder, const std::string& path);

// Creates the folder and its parents. Throws Error(create) that names the folder.
void make_directories(const std::string& path);

// Throws Error(missing) when somebody removed it.
std::string current_folder();

}  // namespace fleetrun
