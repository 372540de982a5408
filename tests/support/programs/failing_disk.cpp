// Preloaded, it makes reads of files called "*stalls*", fsync and rename wait while the file that FAILING_DISK_WAITS names is there, and
// reads of files called "*unreadable*" fail with EIO while the file that FAILING_DISK_BREAKS names is there.
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

struct Path {
  explicit Path(int fd) {
    char link[64];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (const ssize_t length = ::readlink(link, text, sizeof text - 1); length > 0) text[length] = '\0';
  }
  char text[PATH_MAX] = "";
};

void wait_for_disk(const char* path) {
  while (std::strstr(path, "stalls") != nullptr && is_there("FAILING_DISK_WAITS"))
    ::usleep(10'000);  // polls until the test removes the file
}

bool is_broken(const char* path) {
  return std::strstr(path, "unreadable") != nullptr && is_there("FAILING_DISK_BREAKS");
}

ssize_t read_slowly(const char* function, int fd, void* bytes, size_t count, off_t offset) {
  using Function = ssize_t (*)(int, void*, size_t, off_t);
  const Path path(fd);
  wait_for_disk(path.text);
  if (is_broken(path.text)) {
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
extern "C" ssize_t read(int fd, void* bytes, size_t count) {
  if (is_broken(Path(fd).text)) {
    errno = EIO;
    return -1;
  }
  return reinterpret_cast<ssize_t (*)(int, void*, size_t)>(::dlsym(RTLD_NEXT, "read"))(fd, bytes, count);
}
extern "C" int fsync(int fd) {
  wait_for_disk(Path(fd).text);
  return reinterpret_cast<int (*)(int)>(::dlsym(RTLD_NEXT, "fsync"))(fd);
}
extern "C" int rename(const char* from, const char* to) {
  wait_for_disk(to);
  return reinterpret_cast<int (*)(const char*, const char*)>(::dlsym(RTLD_NEXT, "rename"))(from, to);
}
