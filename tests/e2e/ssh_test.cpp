// fleetrun starts itself on other hosts through a real ssh. Two sshd on loopback addresses play the hosts.
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "e2e/launcher.h"
#include "e2e/nodes/cluster.h"
#include "support/leave_out.h"

namespace fleetrun::ssh_test {
namespace {

std::optional<std::string> missing() {
  if (::geteuid() != 0) return "an sshd of one's own needs root";
  if (run_child({"/bin/sh", "-c",
                 "PATH=$PATH:/usr/sbin:/sbin; command -v sshd && command -v ssh && command -v ssh-keygen && "
                 "unshare -m -p -f --mount-proc true"})
          .code != 0)
    return "there is no OpenSSH (openssh-server, openssh-client), or no namespaces";
  return std::nullopt;
}

// Each host has a process namespace of its own, so that all its processes can end at once, as in a power failure.
class Hosts {
 public:
  Hosts() {
    for (const char* folder : {"bin", "home", "work"}) std::filesystem::create_directory(folder_ / folder);
    const ChildResult made = run_child({"/bin/sh", "-c",
                                        "ssh-keygen -q -t ed25519 -N '' -f host && "
                                        "ssh-keygen -q -t ed25519 -N '' -f user && cp user.pub authorized"},
                                       {.folder = folder_.path()});
    REQUIRE_MESSAGE(made.code == 0, made.err);
    folder_.write("client", "Host *\n  Port " + std::to_string(port_) + "\n  IdentityFile " +
                                (folder_ / "user") + "\n  IdentitiesOnly yes\n  UserKnownHostsFile " +
                                (folder_ / "known") + "\n");
    folder_.write("bin/ssh",
                  "#!/bin/sh\nexec " + where_ssh_is() + " -F " + (folder_ / "client") + " \"$@\"\n");
    std::filesystem::permissions(folder_ / "bin/ssh", std::filesystem::perms::owner_all);
    for (int host : {1, 2}) start(host);
    folder_.write("known", known_);
  }

  static std::string address(int host) { return "127.0.0." + std::to_string(host + 1); }
  // Ends its sshd. The kernel closes the sshd's port a moment later.
  void cut(int host) {
    servers_.at(static_cast<std::size_t>(host - 1)).reset();
    const std::string port = fmt::format(": > /dev/tcp/{}/{}", address(host), port_);
    REQUIRE(comes_true(
        [&] {
          return contains(run_child({"/bin/bash", "-c", port}).err, "Connection refused");
        },
        10s));
  }
  const TemporaryFolder& folder() const { return folder_; }

  std::unique_ptr<ChildProcess> start_run(const Words& flags, const Words& program,
                                          const std::string& hosts = "127.0.0.1:1,127.0.0.2:1,127.0.0.3:1") {
    Words words = {FLEETRUN_BINARY, "--start_by=ssh", "--hosts=" + hosts, "--cgroup=none",
                   "--master_port=" + std::to_string(meeting_)};
    words.insert(words.end(), flags.begin(), flags.end());
    words.emplace_back("--");
    words.insert(words.end(), program.begin(), program.end());
    return std::make_unique<ChildProcess>(
        words, ChildOptions{.folder = folder_ / "work",
                            .environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                            {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                            {"PATH", (folder_ / "bin") + ":" + std::getenv("PATH")},
                                            {"HOME", folder_ / "home"},
                                            {"OF_THE_FRONT", "a 'b'\n\"c\""}}});
  }
  ChildResult run(const Words& flags, const Words& program) { return start_run(flags, program)->wait(); }

  // Whether no fleetrun, rank or ssh of a run is left.
  // Each of the three ranks has made its file up0, up1 or up2.
  bool all_ranks_are_up() const {
    const auto is_up = [&](const char* file) { return folder().has(file); };
    return comes_true([&] { return is_up("work/up0") && is_up("work/up1") && is_up("work/up2"); }, 30s);
  }
  bool nothing_left() const {
    return comes_true(
        [&] {
          for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
            std::error_code gone;
            if (std::atoi(entry.path().filename().c_str()) > 0 &&
                std::filesystem::read_symlink(entry.path() / "cwd", gone) ==
                    std::filesystem::canonical(folder_ / "work"))
              return false;
          }
          return true;
        },
        10s);
  }

 private:
  static std::string where_ssh_is() {
    const std::string path = run_child({"/bin/sh", "-c", "command -v ssh"}).out;
    return path.substr(0, path.find('\n'));
  }

  void start(int host) {
    const std::string name = "sshd" + std::to_string(host);
    folder_.write(name, "Port " + std::to_string(port_) + "\nListenAddress " + address(host) + "\nHostKey " +
                            (folder_ / "host") + "\nAuthorizedKeysFile " + (folder_ / "authorized") +
                            "\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n");
    known_ += "[" + address(host) + "]:" + std::to_string(port_) + " " + folder_.read("host.pub");
    // sshd as root wants the folder /run/sshd.
    const std::string serve =
        "PATH=$PATH:/usr/sbin:/sbin; mount -t tmpfs none /run && mkdir /run/sshd && "
        "exec \"$(command -v sshd)\" -D -e -f \"$1\" 2> \"$1.log\"";
    servers_.push_back(
        std::make_unique<ChildProcess>(Words{"/usr/bin/env", "unshare", "-m", "-p", "-f", "--mount-proc",
                                             "--kill-child", "/bin/sh", "-c", serve, "sh", folder_ / name}));
    REQUIRE(comes_true([&] { return contains(folder_.read(name + ".log"), "listening"); }, 10s));
  }

  const TemporaryFolder folder_;
  const int port_ = free_port(), meeting_ = free_port();
  std::string known_;
  std::vector<std::unique_ptr<ChildProcess>> servers_;
};

TEST_CASE("--start_by=ssh starts the run on all hosts, in the same folder and with the same variables") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  Hosts hosts;
  const ChildResult end = hosts.run(
      {"--console=all"}, {"sh", "-c", "echo \"rank $RANK of $WORLD_SIZE in $PWD: $OF_THE_FRONT\" >&2"});
  CHECK_MESSAGE(end.code == 0, end.out, end.err);
  for (const char* rank : {"rank 0 of 3", "rank 1 of 3", "rank 2 of 3"})
    CHECK_MESSAGE(contains(end.out, rank), end.out, end.err);
  CHECK(contains(end.out, "rank 2 of 3 in " + (hosts.folder() / "work") + ": a 'b'"));
  const std::string banner = "Configuration Arguments";
  CHECK(end.out.find(banner) == end.out.rfind(banner));
  CHECK(hosts.folder().has("work/log/workerlog.0"));
  CHECK(hosts.folder().has("work/log.node2/workerlog.0"));
}

TEST_CASE("the key of a run that ssh starts is in no file, argument or variable") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  Hosts hosts;
  const ChildResult end =
      hosts.run({}, {"sh", "-c",
                     "for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/cmdline; tr '\\0' '\\n' < "
                     "$p/environ; done > seen$RANK 2>/dev/null; true"});
  CHECK_MESSAGE(end.code == 0, end.err);
  CHECK_FALSE(hosts.folder().has("home/.fleetrun"));
  const std::string seen = hosts.folder().read("work/seen1");
  CHECK(contains(seen, "--as_agent"));
  CHECK_FALSE(contains(seen, "\"key\""));
}

TEST_CASE("a rank that fails on another host ends the run everywhere with its code") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  Hosts hosts;
  const ChildResult end = hosts.run({}, {"sh", "-c", "[ $RANK = 2 ] && exit 7; exec sleep 60"});
  CHECK(end.code == 7);
  CHECK_MESSAGE(contains(end.err, "rank 2 exited with code 7"), end.err);
  CHECK(end.err.find("exited with code 7") == end.err.rfind("exited with code 7"));
  CHECK(hosts.nothing_left());
}

TEST_CASE("--max_restart restarts the ranks of all hosts without starting the hosts again") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  Hosts hosts;
  const ChildResult end = hosts.run(
      {"--max_restart=1", "--restart_delay=0"},
      {"sh", "-c", "[ $RANK = 2 ] && [ ! -e failed ] && : > failed && exit 7; : > again$RANK; sleep 0.2"});
  CHECK_MESSAGE(end.code == 0, end.err);
  for (const char* file : {"work/again0", "work/again1", "work/again2"}) CHECK(hosts.folder().has(file));
  CHECK_MESSAGE(!contains(end.err, "ssh exited"), end.err);
}

TEST_CASE("a host that ssh cannot reach ends the run at once, with its name and what ssh says") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  Hosts hosts;
  hosts.cut(2);
  const ChildResult end = hosts.run({}, {"sleep", "60"});
  CHECK(end.code == 75);
  CHECK_MESSAGE(
      contains(end.err, "node 2 (127.0.0.3): ssh exited with code 255: ssh: connect to host 127.0.0.3"),
      end.err);
  CHECK(contains(end.err, "Connection refused"));
  CHECK(end.seconds < 20);
  CHECK(hosts.nothing_left());
}

TEST_CASE("a host that refuses our key is named, with the answer of ssh") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  Hosts hosts;
  hosts.folder().write("authorized", "");
  const ChildResult end = hosts.run({}, {"sleep", "60"});
  CHECK(end.code == 75);
  CHECK_MESSAGE(contains(end.err, "Permission denied"), end.err);
}

TEST_CASE("a fleetrun that cannot run on its host ends the run with its reason") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  Hosts hosts;
  hosts.folder().write("work/log.node1", "a file of mine");
  const ChildResult end = hosts.run({}, {"sleep", "60"});
  CHECK(end.code == 73);
  CHECK_MESSAGE(contains(end.err, "node 1 (127.0.0.2)"), end.err);
  CHECK_MESSAGE(contains(end.err, "log.node1"), end.err);
}

TEST_CASE("SIGTERM to fleetrun ends the ranks of all hosts, and leaves no process") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  Hosts hosts;
  const auto run = hosts.start_run(
      {}, {"sh", "-c", "trap 'echo term > got$RANK; exit 0' TERM; : > up$RANK; sleep 60 & wait"});
  REQUIRE(hosts.all_ranks_are_up());
  run->send(SIGTERM);
  CHECK(run->wait().code == 143);
  for (const char* file : {"work/got0", "work/got1", "work/got2"}) CHECK(hosts.folder().has(file));
  CHECK(hosts.nothing_left());
}

TEST_CASE("SIGUSR1 to fleetrun reaches the ranks of all hosts") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  Hosts hosts;
  const auto run = hosts.start_run(
      {}, {"sh", "-c", "trap ': > got$RANK; exit 0' USR1; : > up$RANK; while :; do sleep 0.05; done"});
  REQUIRE(hosts.all_ranks_are_up());
  run->send(SIGUSR1);
  CHECK(run->wait().code == 0);
  CHECK(hosts.folder().has("work/got2"));
}

TEST_CASE("when fleetrun is killed the other hosts end what it started there") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  Hosts hosts;
  const auto run = hosts.start_run({}, {"sh", "-c", ": > up$RANK; exec sleep 60"});
  REQUIRE(comes_true([&] { return hosts.folder().has("work/up1") && hosts.folder().has("work/up2"); }, 10s));
  run->send(SIGKILL);
  CHECK(hosts.nothing_left());
}

TEST_CASE("when the process that started the other hosts is killed the run ends with 75") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  Hosts hosts;
  const auto run = hosts.start_run({}, {"sh", "-c", ": > up$RANK; exec sleep 60"});
  REQUIRE(comes_true([&] { return hosts.folder().has("work/up1") && hosts.folder().has("work/up2"); }, 30s));
  // fleetrun starts it before the process that runs the ranks.
  const ChildResult first = run_child({"/usr/bin/env", "pgrep", "-o", "-P", std::to_string(run->pid())});
  REQUIRE(first.code == 0);
  ::kill(std::stoi(first.out), SIGKILL);
  const ChildResult end = run->wait();
  CHECK(end.code == 75);
  CHECK_MESSAGE(contains(end.err, "the connection over which it was started has ended"), end.err);
  CHECK(hosts.nothing_left());
}

TEST_CASE("a host that loses power ends the run, and its loss is the cause") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  Hosts hosts;
  const auto run = hosts.start_run({}, {"sh", "-c", ": > up$RANK; exec sleep 60"});
  REQUIRE(comes_true([&] { return hosts.folder().has("work/up1") && hosts.folder().has("work/up2"); }, 10s));
  hosts.cut(1);
  const ChildResult end = run->wait();
  CHECK(end.code == 75);
  CHECK_MESSAGE(contains(end.err, "lost node 1 (127.0.0.2"), end.err);
  CHECK(hosts.nothing_left());
}

TEST_CASE("--start_by=mpirun starts the run on all hosts, and a rank that fails there ends it") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  if (!contains(run_child({"/bin/sh", "-c", "mpirun --version"}).out, "Open MPI"))
    LEAVE_OUT("there is no Open MPI");
  Hosts hosts;
  // On a busy machine the start of Open MPI's own daemons fails now and then.
  const auto run = [&](const Words& program) {
    const Words by_mpirun = {"--start_by=mpirun", "--console=all"};
    ChildResult end = hosts.run(by_mpirun, program);
    for (int more = 2; more > 0 && contains(end.err, "PMIX ERROR"); --more)
      end = hosts.run(by_mpirun, program);
    return end;
  };
  const ChildResult good = run({"sh", "-c", "echo \"rank $RANK of $WORLD_SIZE: $OF_THE_FRONT\""});
  CHECK_MESSAGE(good.code == 0, good.out, good.err);
  for (const char* rank : {"rank 0 of 3: a 'b'", "rank 1 of 3: a 'b'", "rank 2 of 3: a 'b'"})
    CHECK_MESSAGE(contains(good.out, rank), good.out, good.err);
  const ChildResult bad = run({"sh", "-c", "[ $RANK = 2 ] && exit 7; exec sleep 60"});
  CHECK(bad.code == 7);
  CHECK_MESSAGE(contains(bad.err, "rank 2 exited with code 7"), bad.err);
  std::filesystem::remove_all(hosts.folder() / "work/log.node2");
  hosts.folder().write("work/log.node2", "a file of mine");
  const ChildResult none = run({"sleep", "60"});
  CHECK(none.code == 73);
  CHECK_MESSAGE(contains(none.err, "node 2 (127.0.0.3): its fleetrun ended with code 73"), none.err);
  CHECK(hosts.nothing_left());
}

TEST_CASE("where ssh is missing the error says so before anything starts") {
  Launch launch;
  const ChildResult end = run_child({"/usr/bin/env", "PATH=/nowhere", FLEETRUN_BINARY, "--start_by=ssh",
                                     "--hosts=127.0.0.1,127.0.0.2", "--", "/bin/true"},
                                    launch.options());
  CHECK(end.code == 127);
  CHECK_MESSAGE(contains(end.err, "ssh is not on PATH"), end.err);
}

}  // namespace
}  // namespace fleetrun::ssh_test
