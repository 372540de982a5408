// Preloaded, it takes from a program what old kernels, sandboxes and some file systems do not have: MISSING_CALLS lists
// "close_range" (ENOSYS) and "locks" (ENOLCK, of files).
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

namespace {

bool is_missing(const char* call) {
  const char* const missing = std::getenv("MISSING_CALLS");
  return missing != nullptr && std::strstr(missing, call) != nullptr;
}

int control(const char* function, int fd, int command, void* argument) {
  using Function = int (*)(int, int, ...);
  if ((command == F_OFD_SETLK || command == F_OFD_GETLK) && is_missing("locks")) {
    errno = ENOLCK;
    return -1;
  }
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, function))(fd, command, argument);
}

}  // namespace

extern "C" int close_range(unsigned first, unsigned last, int flags) {
  using Function = int (*)(unsigned, unsigned, int);
  if (is_missing("close_range")) {
    errno = ENOSYS;
    return -1;
  }
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "close_range"))(first, last, flags);
}

extern "C" int flock(int fd, int operation) {
  using Function = int (*)(int, int);
  struct stat facts {};
  if (is_missing("locks") && ::fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode)) {
    errno = ENOLCK;
    return -1;
  }
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "flock"))(fd, operation);
}

extern "C" int fcntl(int fd, int command, ...) {
  std::va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return control("fcntl", fd, command, argument);
}
extern "C" int fcntl64(int fd, int command, ...) {
  std::va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return control("fcntl64", fd, command, argument);
}
