#include "launch/logs/file_list.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <sstream>

#include <fmt/format.h>

#include "launch/logs/log_names.h"

namespace fleetrun::launch {
namespace {

std::int64_t nanoseconds(const statx_timestamp& time) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return time.tv_sec * kSecond + time.tv_nsec;
}

FileFacts::Kind kind_of(unsigned mode) {
  if (S_ISREG(mode)) return FileFacts::Kind::file;
  if (S_ISDIR(mode)) return FileFacts::Kind::folder;
  if (S_ISLNK(mode)) return FileFacts::Kind::link;
  return S_ISSOCK(mode) ? FileFacts::Kind::socket : FileFacts::Kind::other;
}

// "workerlog.0" of "attempt-0/workerlog.0", and what replaces a file bears its name.
std::string_view last_name(std::string_view name) { return final_name(name.substr(name.rfind('/') + 1)); }

// "made INODE BIRTH NAME" or "left INODE BIRTH SIZE CHANGED NAME".
std::optional<FileRecord> parse_record(const std::string& line) {
  std::istringstream words(line);
  std::string word;
  FileRecord record;
  words >> word >> record.inode >> record.birth_ns;
  if (word == "left") {
    FileRecord::End end;
    words >> end.size >> end.changed_ns;
    record.end = end;
  } else if (word != "made") {
    return std::nullopt;
  }
  if (!words.ignore(1) || !std::getline(words, record.name) || record.name.empty()) return std::nullopt;
  return record;
}

// "run RANKS ID" or "ended RANKS ID".
bool parse_run(const std::string& line, FileList& list) {
  std::istringstream words(line);
  std::string word;
  if (!(words >> word) || (word != "run" && word != "ended")) return false;
  list.ended = word == "ended";
  words >> list.ranks >> std::ws;
  std::getline(words, list.run_id);
  return true;
}

}  // namespace

std::optional<FileFacts> facts_of(int folder, const std::string& name) {
  struct statx facts {};
  if (::statx(folder, name.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &facts) != 0)
    return std::nullopt;
  const bool has_birth = (facts.stx_mask & STATX_BTIME) != 0;
  return FileFacts{.kind = kind_of(facts.stx_mode),
                   .inode = facts.stx_ino,
                   .birth_ns = has_birth ? nanoseconds(facts.stx_btime) : 0,
                   .size = static_cast<std::int64_t>(facts.stx_size),
                   .changed_ns = nanoseconds(facts.stx_mtime),
                   .owner = facts.stx_uid};
}

FileRecord record_of(const std::string& name, const FileFacts& facts) {
  return {.name = name, .inode = facts.inode, .birth_ns = facts.birth_ns, .end = std::nullopt};
}

// A copy may keep times in whole seconds, as tar does.
bool is_same_time(std::int64_t recorded_ns, std::int64_t now_ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return recorded_ns == now_ns || (now_ns % kSecond == 0 && recorded_ns / kSecond == now_ns / kSecond);
}

// Some file systems give a file another inode after a while, and a copy of the folder has others, too: there the name, the
// size and the time of the last change prove as much. A file that is empty now is not a loss.
bool is_ours(const FileRecord& record, const std::string& name, const FileFacts& now) {
  const bool same_file = record.inode == now.inode && record.birth_ns == now.birth_ns;
  // Without a birth another file may have the inode of one that is gone: we give a file no other name than these.
  if (!record.end) return same_file && (now.birth_ns != 0 || last_name(record.name) == last_name(name));
  const bool same_time = is_same_time(record.end->changed_ns, now.changed_ns);
  const bool certain = same_file && now.birth_ns != 0;  // without a birth it may be another file's old inode
  if (now.kind == FileFacts::Kind::folder) return certain || (same_time && record.name == name);
  if (certain && now.size == 0) return true;
  return record.end->size == now.size && same_time && (certain || record.name == name);
}

std::string format_run(const FileList& list) {
  return fmt::format("{} {} {}\n", list.ended ? "ended" : "run", list.ranks, list.run_id);
}

std::string format_record(const FileRecord& record) {
  if (!record.end) return fmt::format("made {} {} {}\n", record.inode, record.birth_ns, record.name);
  return fmt::format("left {} {} {} {} {}\n", record.inode, record.birth_ns, record.end->size,
                     record.end->changed_ns, record.name);
}

std::string format_file_list(const FileList& list) {
  std::string text(kFileListStart);
  text += format_run(list);
  for (const FileRecord& record : list.files) text += format_record(record);
  return text;
}

std::optional<FileList> parse_file_list(const std::string& text) {
  if (!text.starts_with(kFileListStart)) return std::nullopt;
  FileList list;
  for (std::size_t start = kFileListStart.size(), end = 0;
       (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
    const std::string line = text.substr(start, end - start);
    if (parse_run(line, list)) continue;
    if (auto record = parse_record(line)) list.files.push_back(std::move(*record));
  }
  return list;
}

}  // namespace fleetrun::launch
