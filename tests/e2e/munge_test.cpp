// Nodes without a shared home directory share the key of the first one through a real MUNGE.
#include <unistd.h>

#include <filesystem>
#include <string>

#include "e2e/launcher.h"
#include "e2e/nodes/cluster.h"
#include "support/leave_out.h"

namespace fleetrun::munge_test {
namespace {

std::optional<std::string> missing() {
  if (::geteuid() != 0) return "a munged of one's own needs root";
  if (run_child(
          {"/bin/sh", "-c",
           "PATH=$PATH:/usr/sbin:/sbin; command -v munged && id munge && ldconfig -p | grep libmunge.so.2 && "
           "unshare -m -p -f --mount-proc true"})
          .code != 0)
    return "there is no MUNGE (munge, libmunge2), or no namespaces";
  return std::nullopt;
}

// munged with a key of its own, at the usual socket of this mount namespace.
constexpr const char* kStartMunge = R"sh(
PATH=$PATH:/usr/sbin:/sbin
mkdir -p munge run
head -c 1024 /dev/urandom > munge/munge.key
chmod 400 munge/munge.key; chmod 700 munge; chmod 755 . run
chown -R munge:munge munge run
mkdir -p /run/munge
mount --bind run /run/munge
setpriv --reuid=munge --regid=munge --clear-groups munged --force --key-file="$PWD/munge/munge.key" \
  --socket=/run/munge/munge.socket.2 --pid-file=/run/munge/pid --seed-file="$PWD/munge/seed" --log-file="$PWD/munge/log"
for ((try = 0; try < 100; ++try)); do [ -S /run/munge/munge.socket.2 ] && break; sleep 0.1; done
)sh";

// node RANK WORDS...: fleetrun as this node, in a folder and a home of its own.
constexpr const char* kNode = R"sh(
node() {
  local rank=$1; shift
  mkdir -p home$rank node$rank
  (cd node$rank && HOME=$PWD/../home$rank "$@" --node_rank=$rank --ips=127.0.0.1,127.0.0.2 --master_port=$port \
    --nproc_per_node=1 --cgroup=none --join_timeout=10 -- sh -c ': > rank$RANK')
}
)sh";

struct Site {
  ChildResult run(const std::string& script) const {
    folder.write("script", "cd " + (folder / "") + "\nfleetrun=" FLEETRUN_BINARY "\nport=" +
                               std::to_string(free_port()) + kNode + script);
    return ChildProcess({"/usr/bin/timeout", "50", "unshare", "-m", "-p", "-f", "--mount-proc",
                         "--kill-child", "bash", folder / "script"},
                        {.folder = folder / ""})
        .wait();
  }
  TemporaryFolder folder;
};

TEST_CASE(
    "nodes with homes of their own make one run with the key of the first node, which MUNGE gives to them") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Site site;
  const ChildResult end =
      site.run(kStartMunge + std::string("node 1 $fleetrun & node 0 $fleetrun || exit 9; wait $!"));
  CHECK_MESSAGE(end.code == 0, end.out, end.err);
  CHECK_MESSAGE(contains(end.err, "node 0 (127.0.0.1) at 127.0.0.1:"), end.err);
  CHECK_MESSAGE(contains(end.err, " has given its key to this node through MUNGE"), end.err);
  CHECK_MESSAGE(!contains(end.err, "another key"), end.err);
  for (const char* file : {"node0/rank0", "node1/rank1"}) CHECK(site.folder.has(file));
  CHECK(site.folder.read("home0/.fleetrun/key") != site.folder.read("home1/.fleetrun/key"));
}

TEST_CASE("a node whose user has no home directory gets the key of the first node through MUNGE") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Site site;
  const ChildResult end = site.run(
      kStartMunge + std::string("node 1 env HOME=/nowhere $fleetrun & node 0 $fleetrun || exit 9; wait $!"));
  CHECK_MESSAGE(end.code == 0, end.out, end.err);
  CHECK(site.folder.has("node1/rank1"));
}

TEST_CASE("MUNGE does not give the key to another user") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Site site;
  const ChildResult end = site.run(
      kStartMunge + std::string("mkdir -p node1 home1; chmod 777 node1 home1\n"
                                "node 0 $fleetrun & first=$!\n"
                                "node 1 setpriv --reuid=65534 --regid=65534 --clear-groups $fleetrun\n"
                                "echo \"code $?\"; kill $first; wait $first"));
  CHECK_MESSAGE(contains(end.out, "code 76"), end.out, end.err);
  CHECK_MESSAGE(contains(end.err, "has another key than this node; MUNGE does not share it: Unauthorized"),
                end.err);
  CHECK_FALSE(site.folder.has("node1/rank1"));
}

TEST_CASE("without a munged the error about the key says so") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Site site;
  const ChildResult end =
      site.run("node 0 $fleetrun & first=$!\nnode 1 $fleetrun\necho \"code $?\"; kill $first; wait $first");
  CHECK_MESSAGE(contains(end.out, "code 76"), end.out, end.err);
  CHECK_MESSAGE(contains(end.err, "has another key than this node; MUNGE does not share it: "), end.err);
}

}  // namespace
}  // namespace fleetrun::munge_test
