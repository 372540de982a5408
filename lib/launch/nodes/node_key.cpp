#include "launch/nodes/node_key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/unique_fd.h"
#include "launch/nodes/munge.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kLeastBytes = 32, kMostBytes = 4096;

// Of any text: its digest.
RunKey key_of(std::string_view secret) { return {hmac_sha256(RunKey(), secret)}; }

// Without O_NONBLOCK the opening of a FIFO would wait for a writer.
UniqueFd open_key(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

std::string read_secret(const UniqueFd& fd, const std::string& path) {
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) throw file_error(errno, "reading", path);
  if (!S_ISREG(facts.st_mode)) throw Error(ErrorKind::protocol, fmt::format("{} is not a file", path));
  if ((facts.st_mode & 077) != 0)
    throw Error(ErrorKind::protocol,
                fmt::format("other users may use the key {}: its mode is {:04o}, wanted 0600", path,
                            facts.st_mode & 07777),
                fmt::format("chmod 600 {}", path));
  std::string text(kMostBytes, '\0');
  const ssize_t count = ::read(fd.get(), text.data(), text.size());
  if (count < 0) throw file_error(errno, "reading", path);
  text.resize(static_cast<std::size_t>(count));
  if (text.size() < kLeastBytes)
    throw Error(ErrorKind::protocol,
                fmt::format("the key {} has {} bytes, wanted {} or more", path, text.size(), kLeastBytes));
  return text;
}

std::string random_text() {
  std::string text;
  for (const std::uint8_t byte : make_nonce()) text += fmt::format("{:02x}", byte);
  return text + "\n";
}

// The error when the key cannot be kept in the user's home directory.
Error home_error(int code, const std::string& doing, const std::string& path) {
  const Error error = file_error(code, doing, path);
  return Error(error.kind(), error.message(), "--key_file names another file for the key of all nodes");
}

// Several nodes of one home may make it at the same time: both take the one that is there.
void make_secret(const std::string& folder, const std::string& path) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) throw home_error(errno, "making", folder);
  const std::string text = random_text();
  const std::string fresh = path + "." + random_text().substr(0, 16);  // pids of two hosts may be equal
  UniqueFd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) throw home_error(errno, "making", fresh);
  const bool written = ::write(fd.get(), text.data(), text.size()) == std::ssize(text);
  const int problem = errno;
  if (written) [[maybe_unused]]
    const int linked = ::link(fresh.c_str(), path.c_str());  // EEXIST: the other's
  ::unlink(fresh.c_str());
  if (!written) throw home_error(problem, "writing", fresh);
}

RunKey key_at_home(const std::string& folder) {
  const std::string path = folder + "/key";
  UniqueFd fd = open_key(path);
  if (!fd && errno == ENOENT) {
    make_secret(folder, path);
    fd = open_key(path);
  }
  if (!fd) throw home_error(errno, "reading the key", path);
  return key_of(read_secret(fd, path));
}

}  // namespace

NodeKey find_node_key(const LaunchOptions& options, const Environment& environment) {
  if (options.given_key) return {.key = *options.given_key};
  if (options.insecure.value) return {.key = key_of("insecure")};
  if (const std::string& path = options.key_file.value; !path.empty()) {
    const UniqueFd fd = open_key(path);
    if (!fd) throw file_error(errno, "reading the key", path);
    return {.key = key_of(read_secret(fd, path)), .file = path};
  }
  try {
    return {.key = key_at_home(environment.get_or("HOME", "") + "/.fleetrun"), .by_munge = true};
  } catch (const Error& error) {
    const bool unsafe = error.kind() == ErrorKind::protocol;
    if (unsafe || !make_credential("does it work").problem.empty()) throw;
    return {.key = make_run_key(), .by_munge = true};
  }
}

RunKey derive_rank_key(const RunKey& node_key, const std::string& run_id) {
  return {hmac_sha256(node_key, "ranks of " + run_id)};
}

}  // namespace fleetrun::launch
