// fleetrun starts itself on other nodes through programs of batch systems. Scripts that behave as the manuals of these programs say play them.
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "e2e/launcher.h"
#include "e2e/nodes/cluster.h"
#include "support/leave_out.h"

namespace fleetrun::starters_test {
namespace {

std::optional<std::string> missing() {
  if (::geteuid() != 0 || run_child({"/bin/sh", "-c", "unshare -m -u true"}).code != 0)
    return "there are no namespaces for hosts with names of their own";
  return std::nullopt;
}

// Runs its words as the host $node, with nothing of our environment but a few variables, in /.
constexpr const char* kAsHost = R"sh(
as_host() {
  node=$1; shift; own=
  [ ! -e "$JOB_OUTPUT.own_devices" ] || own="CUDA_VISIBLE_DEVICES=of_$node"
  cd /; exec env -i $own PATH="$PATH" HOME="$HOME" "PBS_NODEFILE=$PBS_NODEFILE" PBS_JOBID=7.server PBS_TASKNUM=9 \
    unshare -u sh -c 'hostname "$0"; exec "$@"' "$node" "$@"
}
)sh";

// OpenPBS: once on each node with -u; what it starts reads /dev/null and writes into the files of the job.
constexpr const char* kPbsdsh = R"sh(
[ "$1 $2" = "-u --" ] || { echo "pbsdsh: $*" >&2; exit 9; }
shift 2
stat -c '%a %n' "$HOME"/.fleetrun/* > "$JOB_OUTPUT.files"
for node in n1 n2 n3; do (as_host $node "$@") </dev/null >>"$JOB_OUTPUT" 2>&1 & tasks="$tasks $!"; done
for task in $tasks; do wait $task || code=$?; done
exit ${code:-0}
)sh";

// Spectrum LSF: one host, like rsh, with the standard input; without a shell between.
constexpr const char* kBlaunch = R"sh(
[ "$1" = -no-shell ] || { echo "blaunch: $*" >&2; exit 9; }
node=$2
shift 2
[ ! -e "$JOB_OUTPUT.without_$node" ] || { echo "blaunch: $node does not answer" >&2; exit 5; }
[ ! -e "$JOB_OUTPUT.hangs_$node" ] || { (as_host $node "$@"); exec sleep 300; }
as_host $node "$@"
)sh";

// A job with the nodes n1, n2 and n3, in a mount namespace where these names are loopback addresses.
class Job {
 public:
  Job() {
    for (const char* name : {"bin", "home", "work"}) std::filesystem::create_directory(folder_ / name);
    program("pbsdsh", kPbsdsh);
    program("blaunch", kBlaunch);
    folder_.write("names", "127.0.0.1 localhost n1\n127.0.0.2 n2\n127.0.0.3 n3\n");
    folder_.write("nodes", "n1\nn1\nn2\nn2\nn3\nn3\n");
  }

  std::unique_ptr<ChildProcess> start(Words flags, const Words& program,
                                      const std::map<std::string, std::string>& variables) const {
    flags.emplace_back("--");
    flags.insert(flags.end(), program.begin(), program.end());
    return start_words("--cgroup=none", flags, variables);
  }
  // The first word may be the name of a subcommand.
  std::unique_ptr<ChildProcess> start_words(const std::string& first, const Words& others,
                                            std::map<std::string, std::string> variables) const {
    Words words = {"/usr/bin/env",
                   "unshare",
                   "-m",
                   "/bin/sh",
                   "-c",
                   "mount --bind \"$0\" /etc/hosts; exec \"$@\"",
                   folder_ / "names",
                   FLEETRUN_BINARY,
                   first,
                   "--nproc_per_node=1",
                   "--master_port=" + std::to_string(meeting_)};
    words.insert(words.end(), others.begin(), others.end());
    variables.insert({{"PATH", (folder_ / "bin") + ":" + std::getenv("PATH")},
                      {"HOME", folder_ / "home"},
                      {"JOB_OUTPUT", folder_ / "output"},
                      {"OF_THE_SCRIPT", "yes"}});
    return std::make_unique<ChildProcess>(words,
                                          ChildOptions{.folder = folder_ / "work", .environment = variables});
  }
  // fleetrun doctor, as a job of LSF.
  ChildResult examine_lsf(const Words& flags) const {
    return start_words("doctor", flags, {{"LSB_MCPU_HOSTS", "n1 2 n2 2 n3 2"}, {"LSB_JOBID", "7"}})->wait();
  }
  ChildResult run_pbs(const Words& flags, const Words& program) const {
    return start(flags, program, {{"PBS_NODEFILE", folder_ / "nodes"}, {"PBS_JOBID", "7.server"}})->wait();
  }
  std::unique_ptr<ChildProcess> start_lsf(const Words& flags, const Words& program) const {
    return start(flags, program, {{"LSB_MCPU_HOSTS", "n1 2 n2 2 n3 2"}, {"LSB_JOBID", "7"}});
  }
  ChildResult run_lsf(const Words& flags, const Words& program) const {
    return start_lsf(flags, program)->wait();
  }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  void program(const std::string& name, const std::string& script) const {
    folder_.write("bin/" + name, "#!/bin/sh\n" + std::string(kAsHost) + script);
    std::filesystem::permissions(folder_ / ("bin/" + name), std::filesystem::perms::owner_all);
  }

  const TemporaryFolder folder_;
  const int meeting_ = free_port();
};

const Words kTellPlace = {"sh", "-c", "echo \"rank $RANK of $WORLD_SIZE in $PWD, $OF_THE_SCRIPT\""};
const Words kRank2Fails = {"sh", "-c", "[ $RANK = 2 ] && exit 7; exec sleep 60"};

void check_places(const ChildResult& end, const Job& job) {
  CHECK_MESSAGE(end.code == 0, end.out, end.err, job.folder().read("output"));
  for (const char* rank : {"rank 0", "rank 1", "rank 2"})
    CHECK_MESSAGE(contains(end.out, rank + (" of 3 in " + (job.folder() / "work")) + ", yes"), end.out,
                  end.err);
  const std::string banner = "Configuration Arguments";
  CHECK(end.out.find(banner) == end.out.rfind(banner));
}

TEST_CASE("in a job of PBS pbsdsh starts the other nodes") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Job job;
  check_places(job.run_pbs({"--console=all"}, kTellPlace), job);
  const ChildResult bad = job.run_pbs({}, kRank2Fails);
  CHECK(bad.code == 7);
  CHECK_MESSAGE(contains(bad.err, "rank 2 exited with code 7"), bad.err);
}

TEST_CASE("with --preflight the other nodes start first, and then all of them are examined") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Job job;
  const ChildResult end = job.run_lsf({"--preflight", "--device=cpu", "--console=all"}, kTellPlace);
  check_places(end, job);
  CHECK_MESSAGE(contains(end.err, "fleetrun: doctor: nothing wrong was found"), end.err);
  job.folder().write("output.without_n3", "");
  const ChildResult bad = job.run_lsf({"--preflight", "--device=cpu"}, {"sleep", "60"});
  CHECK(bad.code == 75);
  CHECK_MESSAGE(contains(bad.err, "node 2 (n3): blaunch exited with code 5"), bad.err);
}

TEST_CASE("fleetrun doctor starts itself on the other nodes of a job, and its table has all of them") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Job job;
  const ChildResult end = job.examine_lsf({"--device=cpu", "--json"});
  CHECK_MESSAGE((end.code == 0 || end.code == 75), end.code, end.err);  // this machine may be slow
  const nlohmann::json answer = nlohmann::json::parse(end.out);
  CHECK_MESSAGE(answer["nodes"].size() == 3, end.out);
  CHECK_MESSAGE(answer["links"].size() == 6, end.out);
}

TEST_CASE("fleetrun doctor examines the other nodes when one cannot be started, and says why it cannot") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Job job;
  job.folder().write("output.without_n3", "");
  const ChildResult end = job.examine_lsf({"--device=cpu", "--join_timeout=5"});
  CHECK(end.code == 75);
  CHECK_MESSAGE(
      contains(end.err, "doctor: node 2 (n3): blaunch exited with code 5: blaunch: n3 does not answer"),
      end.err);
  CHECK_MESSAGE(contains(end.out, "n2"), end.out, end.err);
}

TEST_CASE("fleetrun doctor ends with 75 when no other node can be started") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Job job;
  for (const char* node : {"n2", "n3"}) job.folder().write(std::string("output.without_") + node, "");
  CHECK(job.examine_lsf({"--device=cpu", "--join_timeout=2"}).code == 75);
}

TEST_CASE(
    "a node keeps the devices that its batch system gave it, and has those of the first one otherwise") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Words tell = {"sh", "-c", "echo \"rank $RANK on $CUDA_VISIBLE_DEVICES\""};
  for (const bool own : {false, true}) {
    const Job job;
    if (own) job.folder().write("output.own_devices", "");
    const ChildResult end =
        job.start({"--device=cpu", "--console=all"}, tell,
                  {{"LSB_MCPU_HOSTS", "n1 2 n2 2"}, {"LSB_JOBID", "7"}, {"CUDA_VISIBLE_DEVICES", "of_n1"}})
            ->wait();
    CHECK_MESSAGE(end.code == 0, end.err);
    CHECK_MESSAGE(contains(end.out, "rank 0 on of_n1"), end.out);
    CHECK_MESSAGE(contains(end.out, own ? "rank 1 on of_n2" : "rank 1 on of_n1"), end.out);
  }
}

TEST_CASE("the file of metrics that all nodes share is that of the first one, with the ranks of all nodes") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Job job;
  const Words wait_for_all = {"sh", "-c", "until grep -q 'worker_up{rank=\"2\"' m.prom; do sleep 0.1; done"};
  const ChildResult end =
      job.run_lsf({"--device=cpu", "--metrics_file=m.prom", "--timeout=120"}, wait_for_all);
  CHECK_MESSAGE(end.code == 0, end.err);
  for (const char* rank : {"{rank=\"0\"", "{rank=\"2\""})
    CHECK_MESSAGE(contains(job.folder().read("work/m.prom"), std::string("fleetrun_worker_up") + rank),
                  job.folder().read("work/m.prom"));
}

TEST_CASE("a list of hosts and the address of the first node may both be on the command line") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Job job;
  const ChildResult end =
      job.start({"--hosts=n1:1,n2:1,n3:1", "--start_by=blaunch", "--master_addr=n1", "--console=all"},
                kTellPlace, {})
          ->wait();
  check_places(end, job);
}

TEST_CASE("the file with the key for pbsdsh is private and gone when all nodes have joined") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Job job;
  const ChildResult end = job.run_pbs({}, {"sh", "-c", "ls -A \"$HOME\"/.fleetrun > files$RANK"});
  CHECK_MESSAGE(end.code == 0, end.err);
  CHECK(job.folder().read("work/files1").empty());
  const std::string files = job.folder().read("output.files");
  CHECK_MESSAGE(files.starts_with("600 "), files);
  CHECK(files.find('\n') == files.size() - 1);
  CHECK(std::filesystem::is_empty(job.folder() / "home/.fleetrun"));
}

TEST_CASE("in a job of LSF blaunch starts the other nodes") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Job job;
  check_places(job.run_lsf({"--console=all"}, kTellPlace), job);
  CHECK_FALSE(job.folder().has("home/.fleetrun"));
  const ChildResult bad = job.run_lsf({}, kRank2Fails);
  CHECK(bad.code == 7);
  CHECK_MESSAGE(contains(bad.err, "rank 2 exited with code 7"), bad.err);
}

TEST_CASE("a node that blaunch cannot reach ends the run at once, with what blaunch says") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Job job;
  job.folder().write("output.without_n3", "");
  const ChildResult end = job.run_lsf({}, {"sleep", "60"});
  CHECK(end.code == 75);
  CHECK_MESSAGE(contains(end.err, "node 2 (n3): blaunch exited with code 5: blaunch: n3 does not answer"),
                end.err);
}

TEST_CASE("a starter that hangs after the run is killed 5 s later, and a line names its node") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Job job;
  job.folder().write("output.hangs_n3", "");
  const ChildResult end = job.run_lsf({}, kRank2Fails);
  CHECK(end.code == 7);
  CHECK_MESSAGE(
      contains(end.err, "node 2 (n3): blaunch has not ended 5 s after the run, so fleetrun kills it"),
      end.err);
  CHECK_FALSE(contains(end.err, "node 1 (n2): blaunch has not ended"));
}

TEST_CASE("a signal kills a starter that hangs after the run at once") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Job job;
  job.folder().write("output.hangs_n3", "");
  const auto run = job.start_lsf({}, {"true"});
  REQUIRE(comes_true([&] { return job.folder().has("work/log/report.json"); }, 30s));
  comes_true(
      [&] {
        if (is_alive(run->pid())) run->send(SIGINT);
        return !is_alive(run->pid());
      },
      4s);
  const ChildResult end = run->wait();
  CHECK(end.code == 0);
  CHECK_MESSAGE(contains(end.err, "node 2 (n3): blaunch has not ended, so fleetrun kills it"), end.err);
}

}  // namespace
}  // namespace fleetrun::starters_test
