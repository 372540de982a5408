#include "launch/starters/other_nodes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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
#include "launch/starters/agent.h"
#include "launch/starters/started_nodes.h"

namespace fleetrun::launch {
namespace {

constexpr auto kOwnEnd = std::chrono::seconds(2);    // for nodes to end by themselves after the run
constexpr auto kLastWay = std::chrono::seconds(10);  // for their end to reach us

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
    loop_.watch_readable(life.get(), [this, fd = life.get()] {
      loop_.forget(fd);
      end();
    });
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

  // The run is over, or whoever ran it is gone.
  void end() {
    over_ = true;
    late_.call_at(Clock::now() + (failed_ ? Clock::duration() : kOwnEnd), [this] {
      for (StartedProgram& program : programs_) program.close_input();
      late_.call_at(Clock::now() + plan_.patience, [this] {
        for (const StartedProgram& program : programs_) program.kill();
      });
    });
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

OtherNodes::OtherNodes(const StartPlan& plan) {
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

OtherNodes::~OtherNodes() {
  life_.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace fleetrun::launch
