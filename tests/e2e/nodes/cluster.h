// The nodes of one run, which this machine plays: each has a folder of its own, and a loopback address or a network namespace.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/system/endpoint.h"
#include "base/system/unique_fd.h"
#include "e2e/faults/faults.h"
#include "e2e/namespaces.h"

namespace fleetrun {

// Below the ports that the kernel gives out, and one that nobody else in this machine's tests has.
inline int free_port() {
  static int next = 10000 + ::getpid() % 100 * 200;
  while (true) {
    const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(++next));
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return next;
  }
}

// A socket of another program that listens there. It never accepts.
inline UniqueFd listen_at(const std::string& host, int port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd.get(), SOMAXCONN) != 0)
    throw std::runtime_error("cannot listen at " + host + ":" + std::to_string(port));
  return fd;
}

class Cluster {
 public:
  static constexpr std::chrono::milliseconds kLimit =
      120s;  // nothing here takes longer, even beside other work

  // On loopback addresses without `network`, which outlives the cluster.
  explicit Cluster(int nodes, const Namespaces* network = nullptr) : network_(network), nodes_(nodes) {
    std::filesystem::create_directory(home());
    for (int node = 0; node < nodes; ++node) std::filesystem::create_directory(folder(node));
  }
  // Ends what a failed test leaves behind.
  ~Cluster() {
    processes_.clear();
    for (int node = 0; node < nodes_; ++node)
      for (const pid_t pid : left_on(node)) ::kill(pid, SIGKILL);
  }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  int nodes() const { return nodes_; }
  int port() const { return port_; }  // where the nodes meet
  std::string address(int node) const {
    return network_ != nullptr ? Namespaces::address(node, network_->family())
                               : "127.0.0." + std::to_string(node + 1);
  }
  std::string folder(int node) const { return shared_ / ("node" + std::to_string(node)); }
  std::string home() const { return shared_ / "home"; }
  const TemporaryFolder& shared() const { return shared_; }  // that all nodes see

  // The flags by which a node finds its place.
  Words by_list(int node) const {
    std::string ips = address(0);
    for (int other = 1; other < nodes_; ++other) ips += "," + address(other);
    return {"--ips=" + ips, "--node_rank=" + std::to_string(node), "--master_port=" + std::to_string(port_)};
  }
  Words by_master() const {
    return {"--nnodes=" + std::to_string(nodes_),
            "--master=" + bracketed(address(0)) + ":" + std::to_string(port_)};
  }

  // Words that the node's fleetrun starts with, such as unshare and its flags.
  void start_after(int node, Words words) { before_[node] = std::move(words); }
  // What the node sees as its /etc/hosts. Needs can_mount().
  void set_hosts(int node, const std::string& lines) {
    const std::string hosts = folder(node) + "/hosts";
    std::ofstream(hosts) << lines;
    start_after(node, {"/usr/bin/unshare", "-m", "/bin/sh", "-c",
                       "mount --bind " + hosts + " /etc/hosts && exec \"$@\"", "sh"});
  }
  void use(int node, const std::string& fleetrun) { programs_[node] = fleetrun; }
  void set(int node, const std::string& variable, const std::string& value) {
    environments_[node][variable] = value;
  }

  // fleetrun with these words on one node.
  void start_exactly(int node, const Words& words) {
    Words command = {"/bin/sh", "-c", "exec \"$@\" 2> err", "sh"};
    for (const Words& part :
         {before_[node], Words{programs_.try_emplace(node, FLEETRUN_BINARY).first->second}, words})
      command.insert(command.end(), part.begin(), part.end());
    if (network_ != nullptr) command = network_->in(node, command);
    ChildOptions options = {.folder = folder(node), .environment = environments_[node]};
    options.environment.emplace("HOME", home());
    processes_[node] = std::make_unique<ChildProcess>(command, options);
  }
  void start(int node, const Words& words) {
    Words all = by_list(node);
    all.insert(all.end(), words.begin(), words.end());
    start_exactly(node, all);
  }
  void start(const Words& words) {
    for (int node = 0; node < nodes_; ++node) start(node, words);
  }

  ChildResult end_of(int node, std::chrono::milliseconds limit = kLimit) {
    ChildResult result = processes_.at(node)->wait(within(limit));
    result.err = errors(node);
    return result;
  }
  std::vector<ChildResult> ends(std::chrono::milliseconds limit = kLimit) {
    std::vector<ChildResult> results;
    results.reserve(static_cast<std::size_t>(nodes_));
    for (int node = 0; node < nodes_; ++node) results.push_back(end_of(node, limit));
    return results;
  }
  std::vector<ChildResult> run(const Words& words) {
    start(words);
    return ends();
  }

  void send(int node, int signal) const { processes_.at(node)->send(signal); }
  pid_t front(int node) const { return processes_.at(node)->pid(); }

  // Kills all processes of the node, as if at once: they are stopped first, so none of them can report the death of another one.
  // Children are killed before their parents, because the death of a parent can wake a stopped child.
  void kill(int node) const {
    std::vector<pid_t> pids = {front(node)};
    for (const pid_t pid : left_on(node)) pids.push_back(pid);
    for (const pid_t pid : pids) ::kill(pid, SIGSTOP);
    std::reverse(pids.begin(), pids.end());
    for (const pid_t pid : pids) ::kill(pid, SIGKILL);
  }

  std::string read(int node, const std::string& file) const { return read_all(folder(node) + "/" + file); }
  std::string errors(int node) const { return read(node, "err"); }
  std::string log(int node, int local_rank) const {
    return read(node, "log/workerlog." + std::to_string(local_rank));
  }
  nlohmann::json report(int node) const { return nlohmann::json::parse(read(node, "log/report.json")); }
  // In one word, for a run that somebody stopped: "stopped by 2".
  std::string end_in_report(int node) const {
    const nlohmann::json whole = report(node);
    return whole["cause"].get<std::string>() + " by " + whole["stop_signal"].dump();
  }
  bool says(int node, const std::string& text, std::chrono::milliseconds limit = kLimit) const {
    return comes_true([&] { return contains(errors(node), text); }, within(limit));
  }

  // The pid that a rank wrote into a file in the shared folder, as soon as it is there.
  pid_t pid_in(const std::string& name) const { return fleetrun::pid_in(shared_, name, within(kLimit)); }

  // The processes that work in the node's folder.
  std::vector<pid_t> left_on(int node) const {
    std::vector<pid_t> pids;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const pid_t pid = std::atoi(entry.path().filename().c_str());
      std::error_code gone;
      if (pid > 0 && std::filesystem::read_symlink(entry.path() / "cwd", gone) == folder(node))
        pids.push_back(pid);
    }
    return pids;
  }
  bool nothing_left(std::chrono::milliseconds limit = 1s) const {
    return comes_true(
        [&] {
          for (int node = 0; node < nodes_; ++node)
            if (!left_on(node).empty()) return false;
          return true;
        },
        within(limit));
  }

 private:
  const Namespaces* const network_;
  const int nodes_;
  const int port_ = free_port();
  const TemporaryFolder shared_;
  std::map<int, Words> before_;
  std::map<int, std::string> programs_;
  std::map<int, std::map<std::string, std::string>> environments_;
  std::map<int, std::unique_ptr<ChildProcess>> processes_;
};

// The first line of fleetrun about the end of the run. Before the start it says what a stop would lose.
inline std::string cause_on(const ChildResult& end) {
  std::istringstream text(end.err);
  for (std::string line; std::getline(text, line);)
    if (line.starts_with("fleetrun: ") && !line.ends_with("so a stop will lose the training")) return line;
  return "";
}

}  // namespace fleetrun
