#include "launch/logs/own_files.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "base/system/file.h"

namespace fleetrun::launch {
namespace {

constexpr const char* kListName = ".fleetrun";
constexpr std::size_t kMostListBytes = 64 << 20;  // about 80 a file
constexpr mode_t kListMode = 0600;                // whoever writes it can have us remove files
constexpr int kMostAttempts = 100;                // at a name that nobody has

std::string_view describe(FileFacts::Kind kind) {
  switch (kind) {
    case FileFacts::Kind::file:
      return "a file";
    case FileFacts::Kind::folder:
      return "a folder";
    case FileFacts::Kind::link:
      return "a link";
    case FileFacts::Kind::socket:
      return "a socket";
    case FileFacts::Kind::other:
      break;
  }
  return "a device or a pipe";
}

// Does not follow links. Returns -1 if `name` is not a folder.
UniqueFd open_folder(int parent, const std::string& name) {
  return UniqueFd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

UniqueFd open_new(const PlaceInFolder& place, int flags, mode_t mode) {
  return UniqueFd(::openat(place.folder, place.base.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | flags, mode));
}

// 0 or the errno. Not over a name that is taken meanwhile, where the file system can do that: NFS cannot.
int rename_to_free_name(const PlaceInFolder& from, const PlaceInFolder& to) {
  const char *old_name = from.base.c_str(), *new_name = to.base.c_str();
  if (::renameat2(from.folder, old_name, to.folder, new_name, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) return errno;
  if (facts_of(to.folder, to.base)) return EEXIST;
  return ::renameat(from.folder, old_name, to.folder, new_name) == 0 ? 0 : errno;
}

}  // namespace

std::string name_of_user(uid_t user) {
  passwd entry{}, *found = nullptr;
  std::array<char, 4096> room;
  ::getpwuid_r(user, &entry, room.data(), room.size(), &found);
  return found == nullptr ? fmt::format("user {}", user) : fmt::format("user {}", found->pw_name);
}

Error in_the_way(const std::string& path, const FileFacts& found, bool changed) {
  if (found.owner != ::geteuid())
    return Error(
        ErrorKind::create,
        fmt::format("{} is in the way: {} of {}", path, describe(found.kind), name_of_user(found.owner)),
        "choose another folder for the logs with --log_dir, or ask its owner to remove it");
  const std::string_view why = changed ? "that was changed or copied after a run of fleetrun left it there"
                                       : "that no run of fleetrun left there";
  return Error(
      ErrorKind::create, fmt::format("{} is in the way: {} {}", path, describe(found.kind), why),
      changed
          ? "move it away, or the whole folder if that was copied; or choose another folder for the logs with --log_dir"
          : "move it away, or choose another folder for the logs with --log_dir");
}

Error cannot_create(const std::string& path, int code) {
  return Error(ErrorKind::create, fmt::format("creating {}: {}", path, describe_errno(code)),
               "--log_dir chooses another folder for the logs");
}

// Some file systems give every file the same owner: the new list shows which one is ours here.
OwnFiles::OwnFiles(int folder, std::string path) : folder_(folder), path_(std::move(path)) {
  for (int attempt = 0; !open_list_ && attempt < kMostAttempts; ++attempt) {
    new_list_ = fmt::format("{}.{}.{}.tmp", kListName, ::getpid(), attempt);
    open_list_ = open_new({folder_, new_list_}, O_APPEND, kListMode);
    if (!open_list_ && errno != EEXIST) throw cannot_create(path_of(kListName), errno);
  }
  const auto made = look(new_list_);
  if (!open_list_ || !made) throw cannot_create(path_of(new_list_), EEXIST);
  owner_ = made->owner;
  const auto found = look(kListName);
  if (!found) return;
  auto list = found->kind == FileFacts::Kind::file && found->owner == owner_
                  ? parse_file_list(read(kListName, kMostListBytes))
                  : std::nullopt;
  if (list) {
    for (FileRecord& record : std::exchange(list->files, {})) add(std::move(record));
    list_.run_id = list->run_id;
    list_.ranks = list->ranks;
    list_.ended = list->ended;
    return;
  }
  ::unlinkat(folder_, new_list_.c_str(), 0);
  throw in_the_way(path_of(kListName), *found);
}

OwnFiles::~OwnFiles() {
  if (!new_list_.empty()) ::unlinkat(folder_, new_list_.c_str(), 0);
}

void OwnFiles::begin(const std::string& run_id, int ranks, const std::vector<std::string>& ours) {
  std::vector<FileRecord> kept;
  for (const FileRecord& record : list_.files)
    if (owns(record.name)) kept.push_back(record);
  for (const std::string& name : ours) {
    const auto facts = look(name);
    const auto proves = [&](const FileRecord& record) { return is_ours(record, name, *facts); };
    if (facts && std::ranges::none_of(kept, proves)) kept.push_back(record_of(name, *facts));
  }
  list_.files.clear();
  by_inode_.clear();
  by_name_.clear();
  for (FileRecord& record : kept) add(std::move(record));
  list_.run_id = run_id;
  list_.ranks = ranks;
  list_.ended = false;
  write_list();
}

void OwnFiles::join_run(const std::string& run_id) {
  list_.run_id = run_id;
  append(format_run(list_));
}

void OwnFiles::go_on() { write_list(); }

void OwnFiles::write_list() {
  const std::string path = path_of(new_list_);
  write_all(open_list_.get(), format_file_list(list_), path);
  if (::renameat(folder_, new_list_.c_str(), folder_, kListName) != 0) throw cannot_create(path, errno);
  new_list_.clear();
}

void OwnFiles::end(const std::vector<std::string>& ours) {
  FileList left = {.run_id = list_.run_id, .ranks = list_.ranks, .ended = true, .files = {}};
  for (const std::string& name : ours) {
    const auto facts = look(name);
    if (!facts) continue;
    left.files.push_back(record_of(name, *facts));
    left.files.back().end = {.size = facts->size, .changed_ns = facts->changed_ns};
  }
  replace(kListName, format_file_list(left));
}

PlaceInFolder OwnFiles::place_of(const std::string& name) const {
  const auto slash = name.rfind('/');
  if (slash == std::string::npos) return {folder_, name, nullptr};
  const std::string holder = name.substr(0, slash);
  if (!last_.fd || last_.name != holder) {
    const PlaceInFolder place = place_of(holder);
    UniqueFd fd = open_folder(place.folder, place.base);
    if (!fd) return {-1, name.substr(slash + 1), nullptr};
    last_ = {holder, std::make_shared<const UniqueFd>(std::move(fd))};
  }
  return {last_.fd->get(), name.substr(slash + 1), last_.fd};
}

void OwnFiles::add(FileRecord record) {
  by_inode_.emplace(record.inode, list_.files.size());
  by_name_.emplace(record.name, list_.files.size());
  list_.files.push_back(std::move(record));
}

std::optional<FileFacts> OwnFiles::look(const std::string& name) const {
  const PlaceInFolder place = place_of(name);
  return facts_of(place.folder, place.base);
}

bool OwnFiles::owns(const std::string& name) const {
  const auto now = look(name);
  if (!now || now->owner != owner_) return false;
  const auto proves = [&](const auto& entry) { return is_ours(list_.files[entry.second], name, *now); };
  const auto [first, last] = by_inode_.equal_range(now->inode);
  const auto [first_named, last_named] = by_name_.equal_range(name);
  return std::any_of(first, last, proves) || std::any_of(first_named, last_named, proves);
}

bool OwnFiles::is_known(const std::string& name) const { return by_name_.contains(name); }

std::string OwnFiles::read(const std::string& name, std::size_t limit) const {
  const PlaceInFolder place = place_of(name);
  const UniqueFd fd(
      ::openat(place.folder, place.base.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return "";
  try {
    return read_file(fd.get(), path_of(name), limit);
  } catch (const Error&) {
    return "";
  }
}

UniqueFd OwnFiles::create(const std::string& name, int flags, mode_t mode) {
  UniqueFd fd = open_new(place_of(name), flags, mode);
  const int problem = errno;
  if (fd) {
    if (list_new(name) != EFBIG) return fd;
    remove(name);  // a later run would not know it
    throw Error(ErrorKind::create, fmt::format("creating {}: {} cannot become longer (ulimit -f)",
                                               path_of(name), path_of(kListName)));
  }
  if (const auto found = look(name); problem == EEXIST && found)
    throw in_the_way(path_of(name), *found, is_known(name));
  throw cannot_create(path_of(name), problem);
}

void OwnFiles::adopt(const std::string& name) { list_new(name); }

int OwnFiles::list_new(const std::string& name) {
  const auto facts = look(name);
  if (!facts) return 0;
  add(record_of(name, *facts));
  return append(format_record(list_.files.back()));
}

// 0, or the errno of the list. Without room on the disk, nobody recognises the file as ours later, which loses nothing. But half a line
// would spoil the next one.
int OwnFiles::append(const std::string& line) {
  const ssize_t count = ::write(open_list_.get(), line.data(), line.size());
  if (count == std::ssize(line)) return 0;
  if (count < 0) return errno;
  const auto left = line.size() - static_cast<std::size_t>(count);
  const int problem = ::write(open_list_.get(), line.data() + count, left) < 0 ? errno : EIO;
  const off_t end = ::lseek(open_list_.get(), 0, SEEK_CUR);
  [[maybe_unused]] const int result = ::ftruncate(open_list_.get(), end - count);
  return problem;
}

void OwnFiles::replace(const std::string& name, std::string_view content) {
  const bool of_list = name == kListName;
  std::string temporary = fmt::format("{}.{}.tmp", name, ::getpid());
  if (owns(temporary)) remove(temporary);
  const UniqueFd fd = create(temporary, 0, of_list ? kListMode : 0640);
  const PlaceInFolder from = place_of(temporary), to = place_of(name);
  try {
    write_all(fd.get(), content, path_of(temporary));
    int problem = rename_to_free_name(from, to);
    const auto found = look(name);
    if (problem == EEXIST && found) {
      if (!of_list && !owns(name)) throw in_the_way(path_of(name), *found, is_known(name));
      problem = ::renameat(from.folder, from.base.c_str(), to.folder, to.base.c_str()) == 0 ? 0 : errno;
    }
    if (problem != 0) throw cannot_create(path_of(name), problem);
  } catch (const Error&) {
    remove(temporary);
    throw;
  }
}

void OwnFiles::remove(const std::string& name) const {
  const auto found = look(name);
  if (!found) return;
  const bool folder = found->kind == FileFacts::Kind::folder;
  if (folder) last_ = {};
  const PlaceInFolder place = place_of(name);
  if (::unlinkat(place.folder, place.base.c_str(), folder ? AT_REMOVEDIR : 0) == 0 || errno == ENOENT) return;
  if (folder) return;  // with what somebody else put there
  throw Error(ErrorKind::create, fmt::format("removing {}: {}", path_of(name), describe_errno(errno)),
              "--log_dir chooses another folder for the logs");
}

void OwnFiles::make_folder(const std::string& name) {
  const PlaceInFolder place = place_of(name);
  if (::mkdirat(place.folder, place.base.c_str(), 0777) == 0) {
    last_ = {};  // somebody may have removed the folder of that name that was open
    return adopt(name);
  }
  const int problem = errno;
  const auto found = look(name);
  if (problem != EEXIST || !found) throw cannot_create(path_of(name), problem);
  if (found->kind != FileFacts::Kind::folder) throw in_the_way(path_of(name), *found);
}

void OwnFiles::move(const std::string& name, const std::string& to) const {
  const int problem = rename_to_free_name(place_of(name), place_of(to));
  if (problem == 0) return;
  const auto found = look(to);
  if (problem == EEXIST && found) throw in_the_way(path_of(to), *found, is_known(to));
  throw cannot_create(path_of(to), problem);
}

std::vector<std::string> OwnFiles::names(const std::string& folder) const {
  const PlaceInFolder place = place_of(folder);
  return names_in(open_folder(place.folder, place.base).get());
}

}  // namespace fleetrun::launch
