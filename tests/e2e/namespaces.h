// Hosts that this machine plays: network namespaces, each with one interface, and a switch between them in a namespace
// of its own. They go with the object, however the test ends. Needs root, ip and nft.
#pragma once
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/system/unique_fd.h"
#include "e2e/launcher.h"

namespace fleetrun {

class Namespaces {
 public:
  // What is missing for them here, in words; nothing when they can be made.
  static std::optional<std::string> missing() {
    const std::string test =
        "PATH=$PATH:/usr/sbin:/sbin; name=fleetrun-" + std::to_string(::getpid()) +
        "-try; command -v ip nsenter >/dev/null || exit 1; ip netns add $name || exit 2; "
        "nsenter --net=/run/netns/$name nft add table inet try || result=3; "
        "ip netns del $name; exit ${result:-0}";
    if (run_child({"/bin/sh", "-c", test}).code != 0) return "network namespaces need root, ip and nft";
    try {
      const Namespaces one(1);
      one.reset_all(0);
      one.lose(0, 1);
    } catch (const std::exception& problem) {
      return std::string("this kernel cannot make a network: ") + problem.what();
    }
    return std::nullopt;
  }

  // The addresses of the nodes are all of one family.
  enum class Family { ipv4, ipv6 };

  static std::optional<std::string> missing(Family family) {
    if (family == Family::ipv6 && !std::filesystem::exists("/proc/net/if_inet6"))
      return "this kernel has no IPv6";
    return missing();
  }

  explicit Namespaces(int nodes, Family family = Family::ipv4) : nodes_(nodes), family_(family) {
    static std::atomic<int> made = 0;
    prefix_ = "fleetrun-" + std::to_string(::getpid()) + "-" + std::to_string(++made);
    try {
      build();
    } catch (...) {
      remove();
      throw;
    }
  }
  ~Namespaces() { remove(); }
  Namespaces(const Namespaces&) = delete;
  Namespaces& operator=(const Namespaces&) = delete;

  int nodes() const { return nodes_; }
  std::string file_prefix() const {
    return "/run/netns/" + prefix_ + "-";
  }  // with the node's number after it
  static std::string address(int node, Family family = Family::ipv4) {
    return (family == Family::ipv6 ? "fd00:77::" : "10.77.0.") + std::to_string(node + 1);
  }
  Family family() const { return family_; }

  // Words that run in a node.
  Words in(int node, const Words& command) const {
    Words words = {"/usr/bin/nsenter", "--net=" + file_prefix() + std::to_string(node)};
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }

  // Runs `work` on a thread in a node; what it throws is thrown here.
  void run_in(int node, const std::function<void()>& work) const {
    std::exception_ptr failure;
    std::thread([&] {
      try {
        const UniqueFd space(::open((file_prefix() + std::to_string(node)).c_str(), O_RDONLY | O_CLOEXEC));
        if (::setns(space.get(), CLONE_NEWNET) != 0) throw std::runtime_error("setns");
        work();
      } catch (...) {
        failure = std::current_exception();
      }
    }).join();
    if (failure) std::rethrow_exception(failure);
  }

  // The node loses its network: nobody hears of it.
  void pull_cable(int node) const { ip({"-n", switch_name(), "link", "set", port(node), "down"}); }
  void plug_cable(int node) const { ip({"-n", switch_name(), "link", "set", port(node), "up"}); }
  void drop_all(int node) const {
    rule(node, "input", "drop");
    rule(node, "output", "drop");
  }
  void let_through(int node) const { nft(node, "delete table inet fault"); }
  void drop_one_way(int node) const { rule(node, "input", "drop"); }
  // Nobody can connect to the node, and its own connections work.
  void refuse_connections(int node) const { rule(node, "input", "tcp flags & (syn | ack) == syn drop"); }
  // Nobody can connect to the ports of the node that the kernel chooses.
  void close_chosen_ports(int node) const {
    rule(node, "input", "tcp flags & (syn | ack) == syn tcp dport 32768-60999 drop");
  }
  // Also for the node itself.
  void close_port(int node, int port) const {
    add_chain(node, "input");
    nft(node, "add rule inet fault input tcp dport " + std::to_string(port) + " drop");
  }
  void set_mtu(int node, int bytes) const {
    ip({"-n", name(node), "link", "set", "eth0", "mtu", std::to_string(bytes)});
  }
  // The network carries smaller packets to the node than its interface may send, and says nothing about it. The kernel
  // must not hand over several packets as one.
  void lose_full_packets(int node) const {
    for (int each = 0; each < nodes_; ++each)
      ip({"-n", name(each), "link", "set", "eth0", "gso_max_segs", "1"});
    rule(node, "input", "meta length > 1400 drop");
  }
  // Packets to the node are answered with resets, as a firewall does that has forgotten its connections.
  void reset_all(int node) const { rule(node, "input", "meta l4proto tcp reject with tcp reset"); }
  void lose(int node, int percent) const {
    rule(node, "input", "numgen random mod 100 < " + std::to_string(percent) + " drop");
  }

 private:
  void build() const {
    ip({"netns", "add", switch_name()});
    ip({"-n", switch_name(), "link", "add", "bridge", "type", "bridge"});
    ip({"-n", switch_name(), "link", "set", "bridge", "up"});
    for (int node = 0; node < nodes_; ++node) {
      ip({"netns", "add", name(node)});
      ip({"-n", switch_name(), "link", "add", port(node), "type", "veth", "peer", "name", "eth0", "netns",
          name(node)});
      ip({"-n", switch_name(), "link", "set", port(node), "master", "bridge", "up"});
      give_address(node);
      ip({"-n", name(node), "link", "set", "eth0", "up"});
      ip({"-n", name(node), "link", "set", "lo", "up"});
    }
  }

  // Nobody else has the address: without "nodad" the kernel asks for seconds.
  void give_address(int node) const {
    const std::string bits = family_ == Family::ipv6 ? "/64" : "/24";
    Words words = {"-n", name(node), "address", "add", address(node, family_) + bits, "dev", "eth0"};
    if (family_ == Family::ipv6) words.emplace_back("nodad");
    ip(words);
  }

  void remove() const {
    for (int node = 0; node < nodes_; ++node) run_tool("ip", {"netns", "del", name(node)});
    run_tool("ip", {"netns", "del", switch_name()});
  }

  // Traffic of the node's own, over loopback, is let through.
  void rule(int node, const std::string& hook, const std::string& what) const {
    const std::string interface = hook == "input" ? "iifname" : "oifname";
    add_chain(node, hook);
    nft(node, "add rule inet fault " + hook + " " + interface + " eth0 " + what);
  }
  void add_chain(int node, const std::string& hook) const {
    nft(node, "add table inet fault");
    nft(node, "add chain inet fault " + hook + " { type filter hook " + hook + " priority 0; }");
  }
  void nft(int node, const std::string& text) const {
    const ChildResult result =
        run_child(in(node, {"/bin/sh", "-c", "PATH=$PATH:/usr/sbin:/sbin; exec nft \"$0\"", text}));
    if (result.code != 0) throw std::runtime_error("nft " + text + ": " + result.err);
  }

  static ChildResult run_tool(const std::string& tool, const Words& words) {
    Words command = {"/bin/sh", "-c", "PATH=$PATH:/usr/sbin:/sbin; exec \"$0\" \"$@\"", tool};
    command.insert(command.end(), words.begin(), words.end());
    return run_child(command);
  }
  static void ip(const Words& words) {
    const ChildResult result = run_tool("ip", words);
    if (result.code != 0) throw std::runtime_error("ip: " + result.err);
  }

  std::string name(int node) const { return prefix_ + "-" + std::to_string(node); }
  std::string switch_name() const { return prefix_ + "-switch"; }
  static std::string port(int node) { return "port" + std::to_string(node); }

  const int nodes_;
  const Family family_;
  std::string prefix_;
};

// The launcher on the first node, with a worker program beside it that goes to its rank's node before it begins.
class NodesLaunch : public Launch {
 public:
  NodesLaunch(const Namespaces& network, int ranks) : network_(network), ranks_(ranks) {
    const std::string per_node = std::to_string(ranks / network.nodes());
    std::filesystem::copy_file(FLEETRUN_BINARY, folder / "fleetrun");
    folder.write("fleetrun-worker", "#!/bin/sh\nexec nsenter --net=" + network.file_prefix() +
                                        "$((FLEETRUN_RANK / " + per_node + ")) " + FLEETRUN_WORKER +
                                        " \"$@\"\n");
    std::filesystem::permissions(folder / "fleetrun-worker", std::filesystem::perms::owner_all);
  }

  Words command(const Words& words) const {
    Words all = {folder / "fleetrun", "--nproc_per_node=" + std::to_string(ranks_), "--device=cpu",
                 "--host=" + Namespaces::address(0), "--grace=0.2"};
    all.insert(all.end(), words.begin(), words.end());
    return network_.in(0, all);
  }

 private:
  const Namespaces& network_;
  const int ranks_;
};

}  // namespace fleetrun
