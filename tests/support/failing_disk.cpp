// Preloaded, it makes reads of files called "*stalls*" wait while the file that FAILING_DISK_WAITS names is there, and those of
// files called "*unreadable*" fail with EIO while the file that FAILING_DISK_BREAKS names is there.
#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

bool is_there(const char* variable) {
  const char* const path = std::getenv(variable);
  return path != nullptr && ::access(path, F_OK) == 0;
}

ssize_t read_slowly(const char* function, int fd, void* bytes, size_t count, off_t offset) {
  using Function = ssize_t (*)(int, void*, size_t, off_t);
  char link[64], path[PATH_MAX] = "";
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (const ssize_t length = ::readlink(link, path, sizeof path - 1); length > 0) path[length] = '\0';
  while (std::strstr(path, "stalls") != nullptr && is_there("FAILING_DISK_WAITS")) ::usleep(10'000);
  if (std::strstr(path, "unreadable") != nullptr && is_there("FAILING_DISK_BREAKS")) {
    errno = EIO;
    return -1;
  }
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, function))(fd, bytes, count, offset);
}

}  // namespace

extern "C" ssize_t pread(int fd, void* bytes, size_t count, off_t offset) {
  return read_slowly("pread", fd, bytes, count, offset);
}
extern "C" ssize_t pread64(int fd, void* bytes, size_t count, off_t offset) {
  return read_slowly("pread64", fd, bytes, count, offset);
}
