#include "launch/starters/other_nodes.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <list>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/log.h"
#include "base/run/run_key.h"
#include "base/system/file.h"
#include "base/system/pipe.h"
#include "launch/plan/program.h"
#include "launch/process/pidfd.h"
#include "launch/process/signals.h"
#include "launch/starters/agent.h"
#include "launch/starters/started_nodes.h"

namespace fleetrun::launch {
namespace {

constexpr auto kOwnEnd = std::chrono::seconds(2);    // for nodes to end by themselves after the run
constexpr auto kLastWay = std::chrono::seconds(10);  // for their end to reach us
// For starters to end after the run: all ranks have ended by then, and the nodes know it.
constexpr auto kAfterTheRun = std::chrono::seconds(5);
constexpr auto kSameSignal = std::chrono::seconds(1);  // as in SignalRepeats

// What the front process writes to the process that starts the nodes.
constexpr char kRunEnded = 'e', kRunLost = 'l', kHurry = 'h';

std::string name_of_file() {
  std::string name = "start.";
  for (const std::uint8_t byte : make_nonce()) name += fmt::format("{:02x}", byte);
  return name;
}

void write_order(const std::string& path, const std::string& text) {
  const std::string folder = path.substr(0, path.rfind('/'));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) throw file_error(errno, "making", folder);
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) throw file_error(errno, "making", path);
  write_all(fd.get(), text, path);
}

// The loop of the process that starts the nodes.
class Starting {
 public:
  Starting(const StartPlan& plan, const UniqueFd& life, int news) : plan_(plan), news_(news), late_(loop_) {
    loop_.watch_readable(life.get(), [this, fd = life.get()] { hear_front(fd); });
    for (const StartCommand& command : plan.commands) start(command);
  }

  void run() {
    while (runs() || (!over_ && !all_told())) loop_.run_one();
  }

 private:
  bool runs() const {
    return std::any_of(programs_.begin(), programs_.end(),
                       [](const StartedProgram& program) { return program.runs(); });
  }

  bool all_told() const {
    return std::all_of(programs_.begin(), programs_.end(),
                       [](const StartedProgram& program) { return program.has_told(); });
  }

  void start(const StartCommand& command) {
    AgentOrder order = plan_.order;
    if (command.nodes.size() == 1) order.node = command.nodes.front();
    std::vector<std::string> names;
    for (const int node : command.nodes)
      names.push_back(
          fmt::format("node {} ({})", node, order.allocation.nodes[static_cast<std::size_t>(node)].host));
    programs_.emplace_back(loop_, command,
                           StarterInput{.environment = plan_.environment.lines(),
                                        .text = plan_.order_file.empty() ? to_text(order) : "",
                                        .nodes = names},
                           [this](const StartProblem& problem) { tell(problem); });
  }

  void tell(const StartProblem& problem) {
    failed_ = true;
    const std::string text = to_text(problem);
    [[maybe_unused]] const ssize_t written = ::write(news_, text.data(), text.size());
  }

  void hear_front(int fd) {
    char word = 0;
    const ssize_t count = ::read(fd, &word, 1);
    if (count < 0 && errno == EINTR) return;
    if (count <= 0) loop_.forget(fd);  // whoever ran it is gone
    if (count == 1 && word == kHurry) return kill("");
    if (over_) return;
    if (count == 1 && word == kRunEnded)
      end(kAfterTheRun);
    else
      end(kOwnEnd + plan_.patience);
  }

  // The nodes end by themselves, or because their input ends. Starters that still run after `patience` are killed.
  void end(Clock::duration patience) {
    over_ = true;
    const TimePoint last = Clock::now() + patience;
    late_.call_at(Clock::now() + (failed_ ? Clock::duration() : kOwnEnd), [this, last, patience] {
      for (StartedProgram& program : programs_) program.close_input();
      late_.call_at(last, [this, patience] {
        kill(fmt::format(" {} s after the run", patience / std::chrono::seconds(1)));
      });
    });
  }

  void kill(const std::string& when) {
    for (const StartedProgram& program : programs_) {
      if (!program.runs()) continue;
      log_line("fleetrun", fmt::format("{} has not ended{}, so fleetrun kills it", program.describe(), when));
      program.kill();
    }
  }

  const StartPlan& plan_;
  const int news_;
  EventLoop loop_;
  std::list<StartedProgram> programs_;
  bool failed_ = false;  // a node has ended before the run was over
  bool over_ = false;
  Timer late_;
};

[[noreturn]] void start_nodes(const StartPlan& plan, const UniqueFd& life, const UniqueFd& news) {
  ::setpgid(0, 0);  // the keys of the terminal are for the front process
  ::signal(SIGPIPE, SIG_IGN);
  int code = 0;
  try {
    if (!plan.order_file.empty()) write_order(plan.order_file, to_text(plan.order));
    Starting(plan, life, news.get()).run();
  } catch (const std::exception& error) {
    const std::string text = to_text(StartProblem{fmt::format("starting the other nodes: {}", error.what()),
                                                  static_cast<int>(ErrorKind::os)});
    [[maybe_unused]] const ssize_t written = ::write(news.get(), text.data(), text.size());
    code = 1;
  }
  if (!plan.order_file.empty()) ::unlink(plan.order_file.c_str());
  ::_exit(code);
}

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

}  // namespace

StartPlan plan_start(const LaunchOptions& options, const Allocation& allocation,
                     const std::vector<std::string>& words, const Environment& environment) {
  const StartBy starter = allocation.start_by;
  StartPlan plan = {.commands = {},
                    .order = {.key = *options.given_key,
                              .folder = std::filesystem::current_path().string(),
                              .environment = forwards_environment(starter) ? std::vector<std::string>()
                                                                           : forwarded_variables(environment),
                              .called_as = options.called_as,
                              .hosts = options.hosts.value ? options.hosts.value->text : "",
                              .allocation = allocation,
                              .node = {}},
                    .order_file = forwards_input(starter)
                                      ? ""
                                      : environment.get_or("HOME", "") + "/.fleetrun/" + name_of_file(),
                    .environment = environment,
                    .patience = options.grace.value + options.kill_wait.value + kLastWay};
  std::vector<std::string> agent = {own_program(), agent_word(plan.order_file)};
  agent.insert(agent.end(), words.begin(), words.end());
  plan.commands = start_commands(allocation, agent);
  for (StartCommand& command : plan.commands) {
    const auto path = find_tool(command.words.front(), environment);
    if (!path)
      throw Error(ErrorKind::not_found,
                  fmt::format("{} is not on PATH, so fleetrun cannot start the other nodes with it",
                              command.words.front()),
                  "--start_by names another program");
    command.words.front() = *path;
  }
  return plan;
}

OtherNodes::OtherNodes(const StartPlan& plan) : order_file_(plan.order_file) {
  Pipe life = make_pipe(), news = make_pipe();
  std::fflush(nullptr);  // or both processes would write it
  pid_ = ::fork();
  if (pid_ < 0) throw Error(ErrorKind::os, fmt::format("fork: {}", describe_errno(errno)));
  if (pid_ == 0) {
    life.write_end.reset();
    news.read_end.reset();
    start_nodes(plan, life.read_end, news.write_end);
  }
  life_ = std::move(life.write_end);
  news_ = std::move(news.read_end);
}

// The process may have ended, and then nobody reads.
void OtherNodes::write(char word) const {
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  [[maybe_unused]] const ssize_t written = ::write(life_.get(), &word, 1);
  ::signal(SIGPIPE, before);
}

OtherNodes::~OtherNodes() {
  write(run_ended_ ? kRunEnded : kRunLost);
  wait_for_starters();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!order_file_.empty()) ::unlink(order_file_.c_str());  // when that process was killed
}

// A signal that ends a run makes the wait end at once, unless it is the one that ended the run.
void OtherNodes::wait_for_starters() const {
  const UniqueFd pidfd = open_pidfd(pid_);
  if (!pidfd) return;
  block_signals(handled_signals());
  const UniqueFd signals = open_signal_fd(handled_signals());
  const TimePoint began = Clock::now();
  std::array<pollfd, 2> events = {pollfd{.fd = pidfd.get(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = signals.get(), .events = POLLIN, .revents = 0}};
  while (events[0].revents == 0) {
    if (::poll(events.data(), events.size(), -1) < 0 && errno != EINTR) return;
    for (const ReceivedSignal& signal : read_signals(signals.get()))
      if (ends_a_run(signal.number) && (signal.from_terminal || Clock::now() - began >= kSameSignal))
        write(kHurry);
  }
}

}  // namespace fleetrun::launch
