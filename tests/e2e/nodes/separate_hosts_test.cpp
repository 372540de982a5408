// Nodes that share nothing but the network between them: each has a network, mounts, processes, a host name and clocks of its own, and a
// home, /tmp and /dev/shm that no other node sees.
#include <sys/stat.h>

#include "e2e/nodes/cluster.h"

namespace fleetrun::separate_hosts_test {
namespace {

// Runs "$@" as the first process of a host with this number; 9 is the folder of the test, 8 that of the binaries.
constexpr const char* kBecomeHost =
    "number=$0; shared=$1; binaries=$2; shift 2; folder=$PWD; exec 8< \"$binaries\" 9< \"$shared\"\n"
    "mount --make-rprivate / && hostname host$number && mount -t proc proc /proc &&\n"
    "mount -t tmpfs tmpfs /dev/shm && mount -t tmpfs tmpfs /tmp || exit 99\n"
    "[ -d \"$shared\" ] || { mkdir -p \"$shared\" && mount -c --bind /proc/self/fd/9 \"$shared\" || exit 99; }\n"
    "[ -d \"$binaries\" ] || { mkdir -p \"$binaries\" && mount -c --bind /proc/self/fd/8 \"$binaries\" || exit 99; }\n"
    "cd \"$folder\" && exec \"$@\" 8<&- 9<&-";

struct Clocks {
  int monotonic = 0;  // seconds ahead
  int wall = 0;
};

class Hosts : public Cluster {
 public:
  Hosts(const Namespaces& network, const std::vector<Clocks>& clocks)
      : Cluster(static_cast<int>(clocks.size()), &network) {
    for (int node = 0; node < nodes(); ++node) become_host(node, clocks[static_cast<std::size_t>(node)]);
  }

 private:
  void become_host(int node, const Clocks& clocks) {
    const std::string home = folder(node) + "/home", moved = folder(node) + "/moved";
    std::filesystem::create_directories(home + "/.fleetrun");
    std::ofstream(home + "/.fleetrun/key") << std::string(40, 'k');  // as if it was copied
    ::chmod((home + "/.fleetrun/key").c_str(), 0600);
    std::ofstream(moved) << clocks.wall;
    set(node, "HOME", home);
    set(node, "LD_PRELOAD", MOVED_CLOCK);
    set(node, "FLEETRUN_TEST_MOVED", moved);
    start_after(node, {"/usr/bin/unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--time",
                       "--monotonic", std::to_string(clocks.monotonic), "/bin/sh", "-c", kBecomeHost,
                       std::to_string(node), shared().path(),
                       std::filesystem::path(FLEETRUN_BINARY).parent_path().parent_path()});
  }
};

std::optional<std::string> missing() {
  if (testing::kSlowdown > 1) return "the address sanitizer allows no library before it";
  if (auto network = Namespaces::missing()) return network;
  const ChildResult result = run_child({"/usr/bin/unshare", "--mount", "--uts", "--pid", "--fork", "--time",
                                        "--monotonic", "3600", "/bin/mount", "-t", "tmpfs", "tmpfs", "/tmp"});
  if (result.code != 0) return "namespaces of mounts, processes and time: " + result.err;
  return std::nullopt;
}

const std::vector<Clocks> kFarApart = {{.monotonic = 360000, .wall = 3}, {.monotonic = 36000, .wall = -3}};

TEST_CASE("the quickstart job trains on 2 hosts that share nothing but the network") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  const Namespaces network(2);
  Hosts hosts(network, kFarApart);
  for (const int node : {0, 1}) {
    std::filesystem::copy(FLEETRUN_SOURCE_DIR "/configs/patterns", hosts.folder(node) + "/patterns");
    std::filesystem::copy_file(FLEETRUN_SOURCE_DIR "/configs/quickstart.json",
                               hosts.folder(node) + "/quickstart.json");
  }
  for (const ChildResult& end : hosts.run({"--nproc_per_node=2", "--device=cpu", "quickstart.json"}))
    REQUIRE_MESSAGE(end.code == 0, end.err);
  CHECK_MESSAGE(contains(hosts.log(0, 0), "accuracy 1.0"), hosts.log(0, 0));
  const auto report = hosts.report(0);
  CHECK(report["host"] == "host0");
  REQUIRE(report["ranks"].size() == 4);
  CHECK(report["ranks"][3]["host"] == "host1");
  CHECK(hosts.nothing_left());
}

// The network swallows everything while the ranks fail, so that only the clocks can tell which was the first.
TEST_CASE(
    "of two failures the first is named by hosts whose clocks are hours apart and that hear of both at one "
    "time") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  const Namespaces network(2);
  for (const int first : {0, 1}) {
    CAPTURE(first);
    Hosts hosts(network, kFarApart);
    const std::string waiting =
        std::string(FAKE_WORKER) + " pid " + (hosts.shared() / "%r") + " await " + (hosts.shared() / "go");
    hosts.start({"--nproc_per_node=1", "--", "/bin/sh", "-c",
                 "[ $RANK = " + std::to_string(first) + " ] && exec " + waiting + " exit 7; exec " + waiting +
                     " sleep 0.3 exit 5"});
    for (const char* rank : {"0", "1"}) hosts.pid_in(rank);
    network.drop_all(1);
    hosts.shared().write("go", "");
    for (const int node : {0, 1}) REQUIRE(hosts.says(node, "was aborted", 3s));
    network.let_through(1);
    for (const ChildResult& end : hosts.ends()) {
      CHECK_MESSAGE(end.code == 7, end.err);
      CHECK_MESSAGE(
          cause_on(end).starts_with("fleetrun: rank " + std::to_string(first) + " exited with code 7"),
          end.err);
      CHECK_FALSE(contains(end.err, "at the same time"));
    }
    CHECK(hosts.nothing_left());
  }
}

TEST_CASE("a host that loses its network is named, and nothing is left on either") {
  if (const auto what = missing()) LEAVE_OUT(*what);
  const Namespaces network(2);
  Hosts hosts(network, kFarApart);
  hosts.start({"--nproc_per_node=2", "--grace=1", FAKE_WORKER, "ignore-term", "daemon",
               hosts.shared() / "daemon.%r", "pid", hosts.shared() / "%r", "sleep", "100"});
  for (const char* rank : {"0", "1", "2", "3"}) hosts.pid_in(rank);
  network.drop_all(1);
  const auto ends = hosts.ends(20s);
  for (const int node : {0, 1}) {
    const ChildResult& end = ends[static_cast<std::size_t>(node)];
    CHECK_MESSAGE(end.code == 75, end.err);
    CHECK_MESSAGE(contains(cause_on(end), "lost node " + std::to_string(1 - node)), end.err);
  }
  CHECK(contains(cause_on(ends[0]), "host1"));
  CHECK(hosts.nothing_left());
}

}  // namespace
}  // namespace fleetrun::separate_hosts_test
