#include "launch/process/cgroup_files.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::cgroup_files_test {
namespace {

TEST_CASE("the own cgroup is found in both kinds of hierarchy") {
  CHECK(cgroup2_folder("30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
                       "0::/user.slice/user-1000.slice/session-2.scope\n") ==
        "/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope");
  CHECK(cgroup2_folder("30 23 0:25 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                       "31 23 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
                       "4:memory:/job\n0::/\n") == "/sys/fs/cgroup/unified");
}

TEST_CASE("a mount that shows a part of the hierarchy is understood") {
  CHECK(cgroup2_folder("30 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
                       "0::/docker/abc/x\n") == "/sys/fs/cgroup/x");
}

TEST_CASE("without a version 2 hierarchy, or with one that we cannot see, there is none") {
  CHECK(cgroup2_folder("", "0::/\n").empty());
  CHECK(cgroup2_folder("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "4:memory:/\n").empty());
  CHECK(cgroup2_folder("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/../other\n").empty());
}

}  // namespace
}  // namespace fleetrun::launch::cgroup_files_test
