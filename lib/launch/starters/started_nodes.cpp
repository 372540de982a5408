#include "launch/starters/started_nodes.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/system/pipe.h"
#include "launch/process/exit_status.h"
#include "launch/process/pidfd.h"
#include "launch/process/start_program.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kKeptWords = 8 << 10;  // bytes of what a starter wrote
constexpr auto kRestOfWords =
    std::chrono::milliseconds(300);  // for what was written before the end to arrive
constexpr std::size_t kShownNodes = 4;

void do_not_block(const UniqueFd& fd) { ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK); }

std::string name_nodes(const std::vector<std::string>& names) {
  if (names.size() <= kShownNodes) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{}, {}, ... ({} nodes)", names[0], names[1], names.size());
}

}  // namespace

std::string end_of_agent(int node, int code) {
  return to_json(JsonValue::object({{"node", node}, {"code", code}})) + "\n";
}

StartedProgram::StartedProgram(EventLoop& loop, const StartCommand& command, StarterInput input, Tell tell)
    : loop_(loop),
      name_(command.words.front().substr(command.words.front().rfind('/') + 1)),
      ranks_(command.nodes),
      nodes_(std::move(input.nodes)),
      tell_(std::move(tell)),
      input_(std::move(input.text)),
      late_(loop) {
  Pipe in = make_pipe(), out = make_pipe(), err = make_pipe();
  if (input_.empty()) in.read_end.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  pid_ = start_program(loop_, {.command = command.words,
                               .environment = input.environment,
                               .input_fd = in.read_end.get(),
                               .output_fd = out.write_end.get(),
                               .error_fd = err.write_end.get()});
  pidfd_ = open_pidfd(pid_);
  if (!pidfd_) throw Error(ErrorKind::os, fmt::format("watching {}: {}", name_, describe_errno(errno)));
  in_ = std::move(in.write_end);
  out_ = std::move(out.read_end);
  err_ = std::move(err.read_end);
  for (const UniqueFd* fd : {&in_, &out_, &err_}) do_not_block(*fd);
  said_.emplace(loop_, out_.get(), [this](std::string_view line) { hear(line); });
  complained_.emplace(loop_, err_.get(), [this](std::string_view line) { keep(line); });
  loop_.watch_readable(pidfd_.get(), [this] { end(); });
  feed();
}

StartedProgram::~StartedProgram() {
  if (pidfd_) loop_.forget(pidfd_.get());
  if (in_) loop_.forget(in_.get());
}

void StartedProgram::feed() {
  while (in_ && !input_.empty()) {
    const ssize_t count = ::write(in_.get(), input_.data(), input_.size());
    if (count < 0 && errno == EAGAIN) return loop_.when_writable(in_.get(), [this] { feed(); });
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // it has ended, which its pidfd tells
    input_.erase(0, static_cast<std::size_t>(count));
  }
}

std::string StartedProgram::describe() const { return fmt::format("{}: {}", name_nodes(nodes_), name_); }

void StartedProgram::close_input() {
  if (!in_) return;
  loop_.forget(in_.get());
  in_.reset();
}

void StartedProgram::kill() const {
  if (pidfd_ && send_signal(pidfd_, 0)) ::kill(-pid_, SIGKILL);
}

// What the starter of a single node has to say, its own end says.
void StartedProgram::hear(std::string_view line) {
  const JsonValue root = read_json(line).root;
  const JsonValue* node = root.find("node", JsonValue::Kind::integer);
  const JsonValue* code = root.find("code", JsonValue::Kind::integer);
  if (node == nullptr || code == nullptr) return keep(line);
  const auto place = std::find(ranks_.begin(), ranks_.end(), node->integer);
  if (ranks_.size() == 1 || place == ranks_.end()) return;
  const std::string name = nodes_[static_cast<std::size_t>(place - ranks_.begin())];
  late_.call_at(Clock::now() + kRestOfWords, [this, name, code = static_cast<int>(code->integer)] {
    tell(name, fmt::format("its fleetrun ended with code {}", code), code);
  });
}

void StartedProgram::keep(std::string_view words) {
  words_ += fmt::format("{}\n", words);
  if (words_.size() > kKeptWords) words_.erase(0, words_.size() - kKeptWords);
}

void StartedProgram::end() {
  siginfo_t info{};
  ::waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &info, WEXITED);
  const ExitStatus status = ExitStatus::from_siginfo(info);
  loop_.forget(pidfd_.get());
  pidfd_.reset();
  close_input();
  late_.call_at(Clock::now() + kRestOfWords, [this, status] {
    told_ = true;
    tell(name_nodes(nodes_), fmt::format("{} {}", name_, status.describe()), status.exit_code());
  });
}

void StartedProgram::tell(const std::string& nodes, const std::string& ended, int code) {
  tell_(describe_start_problem(nodes, ended, code, words_));
}

}  // namespace fleetrun::launch
