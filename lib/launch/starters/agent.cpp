#include "launch/starters/agent.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/file.h"
#include "launch/host/host_facts.h"
#include "launch/schedulers/settle_nodes.h"
#include "launch/starters/started_nodes.h"

namespace fleetrun::launch {
namespace {

constexpr std::string_view kAgentWord = "--as_agent";
constexpr std::size_t kMostOrder = 64 << 20;  // bytes: lists of nodes and variables are long

// Up to the end of a line. Nothing follows it.
std::string read_line(int fd) {
  std::string text;
  std::array<char, 65536> bytes{};
  while (text.size() < kMostOrder && text.find('\n') == std::string::npos) {
    const ssize_t count = ::read(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      throw Error(ErrorKind::io, fmt::format("reading standard input: {}", describe_errno(errno)));
    if (count == 0) break;
    text.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return text;
}

void wait_for_end(int fd) {
  std::array<char, 256> bytes{};
  for (ssize_t count = 1; count > 0 || (count < 0 && errno == EINTR);)
    count = ::read(fd, bytes.data(), bytes.size());
}

// A process that waits beside us for the end of `input` and ends when we do.
void end_with(const UniqueFd& input) {
  const pid_t us = ::getpid();
  if (::fork() != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpgid(0, 0);
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) ::close(fd);
  if (::getppid() == us) {
    wait_for_end(input.get());
    if (::getppid() == us) ::kill(us, SIGHUP);
  }
  ::_exit(0);
}

}  // namespace

std::string agent_word(const std::string& order_file) {
  return order_file.empty() ? std::string(kAgentWord) : fmt::format("{}={}", kAgentWord, order_file);
}

bool is_agent_word(const std::string& word) {
  return word == kAgentWord || word.starts_with(std::string(kAgentWord) + "=");
}

Agent::Agent(const std::string& word) {
  const bool by_input = word == kAgentWord;
  const std::string text =
      by_input ? read_line(STDIN_FILENO) : read_file(word.substr(kAgentWord.size() + 1), kMostOrder);
  if (by_input && text.empty())
    throw Error(ErrorKind::usage, "standard input has no order of the fleetrun that starts this one",
                "--as_agent is for fleetrun itself");
  order_ = parse_agent_order(text);
  const std::string host = probe_host().name;
  const auto node = find_agent_node(order_, Environment::of_this_process(), host);
  if (!node)
    throw Error(ErrorKind::usage,
                fmt::format("this host is {}, but {} does not list it", host, order_.allocation.found_in));
  node_ = *node;
  take_descriptors(by_input);
}

void Agent::take_descriptors(bool by_input) {
  input_ = UniqueFd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  output_ = UniqueFd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (::dup2(nothing.get(), STDIN_FILENO) < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    throw Error(ErrorKind::os, fmt::format("dup2: {}", describe_errno(errno)));
  if (!by_input) return;
  ::signal(SIGHUP, SIG_DFL);  // also under nohup
  end_with(input_);
  input_.reset();
}

void Agent::enter() const {
  if (::chdir(order_.folder.c_str()) != 0)
    throw file_error(errno, "entering the folder of the run on this node,", order_.folder);
  ::setenv("PWD", order_.folder.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): before the first thread
  for (const std::string& line : order_.environment) {
    const std::size_t end = line.find('=');
    const std::string name = line.substr(0, end);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): before the first thread
    ::setenv(name.c_str(), line.substr(end + 1).c_str(), chooses_devices(name) ? 0 : 1);
  }
}

Allocation Agent::settle(LaunchOptions& options) const {
  Allocation allocation = order_.allocation;
  allocation.this_node = node_;
  allocation.this_node_source = "the fleetrun on the first node";
  if (!order_.hosts.empty())
    options.hosts = {parse_host_list("--hosts", order_.hosts), Origin::environment, allocation.found_in};
  options.hostfile = {};
  options.given_key = order_.key;
  options.console = {{.text = "none", .all = false, .ranges = {}}, Origin::environment, allocation.found_in};
  const bool chosen = options.log_dir.origin != Origin::fallback && !options.log_dir.value.empty();
  take_nodes(options, allocation);
  if (chosen)
    options.log_dir.value += fmt::format(".node{}", node_);
  else
    use_own_log_folder(options, node_, allocation.found_in);
  return allocation;
}

void Agent::tell_end(int exit_code) const {
  const std::string line = end_of_agent(node_, exit_code);
  if (order_.allocation.start_by != StartBy::pbsdsh)  // there it would be in the output of the job
      [[maybe_unused]]
    const ssize_t written = ::write(output_.get(), line.data(), line.size());
}

}  // namespace fleetrun::launch
