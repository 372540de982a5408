#include "base/run/eval_folder.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/system/file.h"
#include "base/system/file_lock.h"
#include "base/system/marked_file.h"

namespace fleetrun {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAnotherFolder = "--output_dir names another folder";
constexpr std::array kFiles = {kEvalJobName,      "report.json",   "report.txt",
                               "predictions.csv", "confusion.csv", "confusion.svg"};
constexpr const char* kRecord = "/.fleetrun_eval";
constexpr std::size_t kMostRecord = 4096, kMostOfFile = std::size_t{4} << 30;  // bytes

// By which a file is known again (FNV-1a).
std::string digest_of(std::string_view content) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : content) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

std::string line_of(std::string_view name, std::string_view content) {
  return fmt::format("{} {}\n", digest_of(content), name);
}

// The files of a report that evaluations wrote into the folder, as lines "digest name".
std::string read_record(const std::string& folder) {
  std::error_code problem;
  const std::string path = folder + kRecord;
  return fs::is_regular_file(fs::symlink_status(path, problem)) ? read_file(path, kMostRecord) : "";
}

std::string path_in(const std::string& folder, std::string_view name) {
  return fmt::format("{}/{}", folder, name);
}

void require_own_files(const std::string& folder) {
  const std::string record = read_record(folder);
  for (const char* name : kFiles) {
    const std::string path = path_in(folder, name);
    const auto is_recorded = [&](int fd) {
      return record.find(line_of(name, read_file(fd, path, kMostOfFile))) != std::string::npos;
    };
    require_ours(path, is_recorded, kAnotherFolder);
  }
}

bool has_file(const std::vector<NamedContent>& files, std::string_view name) {
  return std::ranges::find(files, name, &NamedContent::name) != files.end();
}

}  // namespace

void require_own_eval_folder(const std::string& folder) {
  std::error_code problem;
  if (!fs::is_directory(folder, problem)) return;  // nothing, or what make_directories() will tell
  const UniqueFd lock = lock_folder(folder);
  require_own_files(folder);
}

// The record has the new files before they are there, so that an end in the middle leaves nothing that nobody knows.
void publish_eval_report(const std::string& folder, const std::vector<NamedContent>& files) {
  make_directories(folder);
  const UniqueFd lock = lock_folder(folder);
  require_own_files(folder);
  std::string record;
  for (const NamedContent& file : files) record += line_of(file.name, file.content);
  write_file_atomically(folder + kRecord, read_record(folder) + record);
  for (const NamedContent& file : files) write_file_atomically(path_in(folder, file.name), file.content);
  for (const char* name : kFiles)
    if (!has_file(files, name)) fs::remove(path_in(folder, name));
  write_file_atomically(folder + kRecord, record);
}

}  // namespace fleetrun
