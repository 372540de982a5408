#include "base/run/job_text.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/file.h"

namespace fleetrun {
namespace {

constexpr int kReadOnly = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

UniqueFd put_job_text(std::string_view text) {
  UniqueFd fd(::memfd_create("fleetrun-job", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd) write_all(fd.get(), text, "the job's text in memory");
  if (!fd || ::fcntl(fd.get(), F_ADD_SEALS, kReadOnly) != 0)
    throw Error(ErrorKind::os, fmt::format("putting the job's text into memory: {}", describe_errno(errno)));
  return fd;
}

std::string read_job_text(int fd) {
  struct stat facts {};
  std::string text;
  if (::fstat(fd, &facts) == 0) text.resize(static_cast<std::size_t>(facts.st_size));
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::pread(fd, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (count <= 0) text.clear();
    done += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  if (text.empty())
    throw Error(ErrorKind::protocol, fmt::format("reading the job's text from descriptor {}: {}", fd,
                                                 errno != 0 ? describe_errno(errno) : "it is empty"));
  return text;
}

}  // namespace fleetrun
