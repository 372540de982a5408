// Files of a data set: regular ones only, read into memory that the caller keeps from file to file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/system/unique_fd.h"

namespace fleetrun::runtime {

struct OpenedFile {
  UniqueFd fd;
  std::size_t bytes = 0;
};

// Throws Error(missing|permission|os|io), Error(data) when it is a folder, pipe or device.
OpenedFile open_data_file(const std::string& path);

// Fills `count` bytes from `offset`, or fewer where the file ends. Throws Error(io).
std::size_t read_at(const UniqueFd& fd, const std::string& path, std::size_t offset, std::size_t count,
                    std::uint8_t* bytes);

// Replaces `bytes` by the file's first `limit` bytes, or all when it has fewer.
void read_start(const std::string& path, std::size_t limit, std::vector<std::uint8_t>& bytes);

// Replaces `bytes` by the whole file. Throws Error(data) too when it has more than `limit` bytes.
void read_whole(const std::string& path, std::size_t limit, std::vector<std::uint8_t>& bytes);

}  // namespace fleetrun::runtime
