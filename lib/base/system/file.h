// Whole files, and what the operating system says about them in our words.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun {

// The content of a regular file of at most `limit` bytes.
// Throws Error(missing|permission|io), Error(config) when it is not a regular file or larger than that.
std::string read_file(const std::string& path, std::size_t limit);
std::string read_file(int fd, const std::string& path, std::size_t limit);  // that is open on it

void write_all(int fd, std::string_view content, const std::string& path);  // Throws Error(io).

// Writes to a temporary name beside `path`, syncs, and renames: readers see the old or the new content.
// Throws Error(create|io).
void write_file_atomically(const std::string& path, std::string_view content);

// The same without the sync, which may take as long as the disk is busy: for what a new run makes anew.
enum class Readers { user_and_group, all };  // as the umask allows
void replace_file(const std::string& path, std::string_view content,
                  Readers readers = Readers::user_and_group);

// What was created, renamed or removed in the folder reaches the disk. Throws Error(io).
void sync_folder(const std::string& path);

// What is in a folder that is open, but for "." and ".."; nothing when it cannot be read.
std::vector<std::string> names_in(int folder);

// Creates the folder and its parents. Throws Error(create) that names the folder.
void make_directories(const std::string& path);

}  // namespace fleetrun
