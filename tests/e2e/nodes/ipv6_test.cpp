// Runs whose nodes have IPv6 addresses only: everything that meets does so over IPv6.
#include "e2e/nodes/cluster.h"

namespace fleetrun::ipv6_test {
namespace {

const std::string kConfigs = FLEETRUN_SOURCE_DIR "/configs";
constexpr auto kFamily = Namespaces::Family::ipv6;

// What a script does that trusts its environment, as PyTorch's env:// does: each rank listens at its own endpoint, and all meet at
// MASTER_ADDR, where rank 0 listens. Ends with 0 when everybody has seen everybody.
const std::string kMeetingScript = R"(
import os, socket, struct, time

def address_of(endpoint):
    host, port = endpoint.rsplit(":", 1)
    assert host[0] == "[" and host[-1] == "]", endpoint
    return host[1:-1], int(port)

def listen(host, port):
    server = socket.create_server((host, port), family=socket.AF_INET6)
    server.settimeout(30)
    return server

def connect(address):
    for _ in range(300):
        try:
            return socket.create_connection(address, timeout=30)
        except ConnectionRefusedError:
            time.sleep(0.1)  # nothing tells when a server of another process begins to listen

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
endpoints = os.environ["PADDLE_TRAINER_ENDPOINTS"].split(",")
assert len(endpoints) == world
assert endpoints[rank] == os.environ["PADDLE_CURRENT_ENDPOINT"]
own = listen(*address_of(endpoints[rank]))
master = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
assert os.environ["PADDLE_MASTER"] == "[%s]:%d" % master
if rank == 0:
    server = listen(*master)
    guests = [server.accept()[0] for _ in range(world - 1)]
    assert sorted(struct.unpack("i", guest.recv(4))[0] for guest in guests) == list(range(1, world))
    for guest in guests:
        guest.sendall(b"go")
else:
    host = connect(master)
    host.sendall(struct.pack("i", rank))
    assert host.recv(2) == b"go"
for endpoint in endpoints:
    if endpoint != endpoints[rank]:
        connect(address_of(endpoint)).sendall(b"x")
for _ in range(world - 1):
    assert own.accept()[0].recv(1) == b"x"
assert os.environ["GLOO_SOCKET_IFNAME"] == os.environ["NCCL_SOCKET_IFNAME"] == os.environ["EXPECT_IFNAME"]
assert os.environ["NCCL_SOCKET_FAMILY"] == "AF_INET6"
print("met", world)
)";

void give_script(Cluster& cluster, const std::string& interface) {
  for (int node = 0; node < cluster.nodes(); ++node) {
    std::ofstream(cluster.folder(node) + "/meet.py") << kMeetingScript;
    cluster.set(node, "EXPECT_IFNAME", interface);
  }
}

void check_meeting(Cluster& cluster, const std::vector<ChildResult>& ends) {
  for (int node = 0; node < cluster.nodes(); ++node) {
    const ChildResult& end = ends[static_cast<std::size_t>(node)];
    CHECK_MESSAGE(end.code == 0, end.err);
    CHECK(contains(end.err, "PaddlePaddle splits PADDLE_TRAINER_ENDPOINTS at ':'"));
    for (const int rank : {0, 1})
      CHECK_MESSAGE(cluster.log(node, rank) == "met 4\n", cluster.log(node, rank));
  }
  CHECK(cluster.nothing_left());
}

TEST_CASE("a script's ranks meet over IPv6 on 2 hosts of --ips, which find their places themselves") {
  if (const auto missing = Namespaces::missing(kFamily)) LEAVE_OUT(*missing);
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Namespaces network(2, kFamily);
  Cluster cluster(2, &network);
  give_script(cluster, "eth0");
  for (const int node : {1, 0})
    cluster.start_exactly(
        node, {"--ips=" + cluster.address(0) + ", " + cluster.address(1), "--nproc_per_node=2", "meet.py"});
  check_meeting(cluster, cluster.ends());
  const std::string endpoints = cluster.read(1, "log/endpoints.log");
  CHECK_MESSAGE(contains(endpoints, "\n[fd00:77::1]:6070\n[fd00:77::1]:6071\n[fd00:77::2]:6070\n"),
                endpoints);
}

TEST_CASE("2 hosts meet at an IPv6 address in brackets, in Paddle's words and in torchrun's") {
  if (const auto missing = Namespaces::missing(kFamily)) LEAVE_OUT(*missing);
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Namespaces network(2, kFamily);
  for (const std::string flag : {"--master=", "--rdzv_endpoint="}) {
    CAPTURE(flag);
    Cluster cluster(2, &network);
    give_script(cluster, "eth0");
    const std::string meeting = "[" + cluster.address(0) + "]:" + std::to_string(cluster.port());
    for (const int node : {0, 1})
      cluster.start_exactly(node, {"--nnodes=2", flag + meeting, "--nproc_per_node=2", "meet.py"});
    check_meeting(cluster, cluster.ends());
  }
}

TEST_CASE("names that mean IPv6 addresses only are as good as the addresses") {
  if (const auto missing = Namespaces::missing(kFamily)) LEAVE_OUT(*missing);
  if (!can_mount()) LEAVE_OUT("another /etc/hosts needs mount namespaces");
  const Namespaces network(2, kFamily);
  Cluster cluster(2, &network);
  for (const int node : {0, 1}) {
    cluster.set_hosts(node, "fd00:77::1 alpha\nfd00:77::2 beta\n");
    cluster.start_exactly(node, {"--ips=alpha,beta", FAKE_WORKER, "env"});
  }
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
  CHECK_MESSAGE(contains(cluster.log(1, 0), "PADDLE_TRAINER_ENDPOINTS=alpha:6070,beta:6070\n"),
                cluster.log(1, 0));
  CHECK(contains(cluster.log(1, 0), "GLOO_SOCKET_IFNAME=eth0\n"));
}

TEST_CASE("the quickstart job trains over IPv6 on 2 hosts with 2 ranks each to accuracy 1.0") {
  if (const auto missing = Namespaces::missing(kFamily)) LEAVE_OUT(*missing);
  const Namespaces network(2, kFamily);
  Cluster cluster(2, &network);
  for (const int node : {0, 1}) {
    std::filesystem::copy(kConfigs + "/patterns", cluster.folder(node) + "/patterns");
    std::filesystem::copy_file(kConfigs + "/quickstart.json", cluster.folder(node) + "/quickstart.json");
  }
  const auto ends = cluster.run({"--nproc_per_node=2", "--device=cpu", "quickstart.json"});
  for (const ChildResult& end : ends) {
    REQUIRE_MESSAGE(end.code == 0, end.err);
    CHECK_FALSE(contains(end.err, "PaddlePaddle"));
  }
  CHECK_MESSAGE(contains(cluster.log(0, 0), "accuracy 1.0"), cluster.log(0, 0));
  CHECK(cluster.report(0)["ranks"].size() == 4);
  CHECK(cluster.nothing_left());
}

TEST_CASE("a host that goes silent over IPv6 is named, and the other one ends with 75") {
  if (const auto missing = Namespaces::missing(kFamily)) LEAVE_OUT(*missing);
  const Namespaces network(2, kFamily);
  Cluster cluster(2, &network);
  cluster.start({FAKE_WORKER, "sleep", "3600"});
  REQUIRE(cluster.says(0, "Local start 1 processes"));
  REQUIRE(cluster.says(1, "Local start 1 processes"));
  network.pull_cable(1);
  const std::vector<ChildResult> ends = cluster.ends(20s);
  CHECK(ends[0].code == 75);
  CHECK(ends[1].code == 75);
  CHECK_MESSAGE(contains(ends[0].err, "lost node 1 (fd00:77::2, "), ends[0].err);
  CHECK_MESSAGE(contains(ends[1].err, "lost node 0 (fd00:77::1)"), ends[1].err);
  CHECK(cluster.nothing_left());
}

TEST_CASE("a rehearsal on one host meets at [::1]") {
  if (!std::filesystem::exists("/proc/net/if_inet6")) LEAVE_OUT("this kernel has no IPv6");
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  Cluster cluster(2);
  give_script(cluster, "lo");
  const std::string meeting = "--master=[::1]:" + std::to_string(cluster.port());
  for (const int node : {0, 1})
    cluster.start_exactly(node, {"--nnodes=2", meeting, "--nproc_per_node=2", "meet.py"});
  check_meeting(cluster, cluster.ends());
}

TEST_CASE("a rehearsal on one host takes IPv6 addresses that its loopback interface was given") {
  if (const auto missing = Namespaces::missing(kFamily)) LEAVE_OUT(*missing);
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Namespaces network(1, kFamily);
  const std::string add =
      "PATH=$PATH:/usr/sbin:/sbin; for i in 1 2; do ip address add fd00:88::$i/128 dev lo nodad; done";
  REQUIRE(run_child(network.in(0, {"/bin/sh", "-c", add})).code == 0);
  Cluster cluster(2);
  give_script(cluster, "lo");
  for (const int node : {0, 1}) {
    cluster.use(node, "/usr/bin/nsenter");
    cluster.start_exactly(
        node, {"--net=" + network.file_prefix() + "0", FLEETRUN_BINARY, "--ips=fd00:88::1,fd00:88::2",
               "--node_rank=" + std::to_string(node), "--nproc_per_node=2", "meet.py"});
  }
  check_meeting(cluster, cluster.ends());
}

TEST_CASE("one host alone may have an IPv6 address, for scripts and for trainings") {
  if (!std::filesystem::exists("/proc/net/if_inet6")) LEAVE_OUT("this kernel has no IPv6");
  const Launch launch;
  const ChildResult end = launch.run({"--ips=[::1]", "--nproc_per_node=2"}, {"env"});
  CHECK_MESSAGE(end.code == 0, end.err);
  const std::string log = launch.folder.read("log/workerlog.1");
  CHECK_MESSAGE(contains(log, "PADDLE_CURRENT_ENDPOINT=[::1]:"), log);
  CHECK(contains(log, "MASTER_ADDR=::1\n"));
  std::filesystem::copy(kConfigs + "/patterns", launch.folder / "patterns");
  std::filesystem::copy_file(kConfigs + "/quickstart.json", launch.folder / "quickstart.json");
  ChildOptions options = launch.options();
  options.environment["FLEETRUN_COMM_BACKEND"] = "gloo";
  const ChildResult training = run_child(
      {FLEETRUN_BINARY, "--ips=::1", "--nproc_per_node=2", "--device=cpu", "quickstart.json"}, options);
  CHECK_MESSAGE(training.code == 0, training.err);
  CHECK(contains(launch.folder.read("log/workerlog.0"), "accuracy 1.0"));
}

}  // namespace
}  // namespace fleetrun::ipv6_test
