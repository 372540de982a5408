#include "base/system/standard_descriptors.h"

#include <fcntl.h>
#include <unistd.h>

namespace fleetrun {

void open_standard_descriptors() {
  int fd = ::open("/dev/null", O_RDONLY);
  while (fd >= 0 && fd <= STDERR_FILENO) fd = ::open("/dev/null", O_RDONLY);
  if (fd >= 0) ::close(fd);
}

}  // namespace fleetrun
