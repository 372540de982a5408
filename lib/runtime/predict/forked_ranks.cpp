#include "runtime/predict/forked_ranks.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/library_error.h"
#include "base/system/file.h"
#include "base/system/pipe.h"

namespace fleetrun::runtime {
namespace {

// A message: the number of its texts, and each text with its length in front. An answer is its lines and its problems; an error has a first
// text of its own.
constexpr const char* kErrorMark = "\x01";

void put_number(std::uint64_t number, std::string& message) {
  message.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void send_texts(int fd, const std::vector<std::string>& texts) {
  std::string message;
  put_number(texts.size(), message);
  for (const std::string& text : texts) {
    put_number(text.size(), message);
    message += text;
  }
  write_all(fd, message, "the pipe of the answers");
}

void send_error(int fd, const Error& error) {
  send_texts(fd, {kErrorMark, std::to_string(error.exit_code()), error.message(), error.hint()});
}

// False at the end of the pipe.
bool receive(int fd, char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t got = ::read(fd, bytes, count);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes += got;
    count -= static_cast<std::size_t>(got);
  }
  return true;
}

bool receive_number(int fd, std::uint64_t& number) {
  return receive(fd, reinterpret_cast<char*>(&number), sizeof number);
}

// Empty at the end of the pipe.
std::vector<std::string> receive_texts(int fd) {
  std::uint64_t count = 0;
  if (!receive_number(fd, count)) return {};
  std::vector<std::string> texts(count);
  for (std::string& text : texts) {
    std::uint64_t bytes = 0;
    if (!receive_number(fd, bytes)) return {};
    text.resize(bytes);
    if (!receive(fd, text.data(), bytes)) return {};
  }
  return texts;
}

// The life of a rank's process.
[[noreturn]] void live(int rank, int fd, pid_t parent,
                       const std::function<void(int rank, const SendAnswer& send)>& work) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) std::_Exit(EXIT_FAILURE);  // it ended before the call
  try {
    work(rank, [&](const BatchAnswer& answer) {
      std::vector<std::string> texts = answer.problems;
      texts.insert(texts.begin(), answer.lines);
      send_texts(fd, texts);
    });
  } catch (const Error& error) {
    send_error(fd, error);
  } catch (const std::exception& thrown) {
    send_error(fd, error_of_library(thrown));
  }
  std::_Exit(EXIT_SUCCESS);
}

}  // namespace

ForkedRanks::ForkedRanks(int count, const std::function<void(int rank, const SendAnswer& send)>& work) {
  const pid_t parent = ::getpid();
  for (int rank = 0; rank < count; ++rank) {
    Pipe pipe = make_pipe();
    const pid_t pid = ::fork();
    if (pid < 0) throw Error(ErrorKind::os, fmt::format("starting rank {}: {}", rank, describe_errno(errno)));
    if (pid == 0) {
      ranks_.clear();  // the ends of the others' pipes
      pipe.read_end = {};
      live(rank, pipe.write_end.get(), parent, work);
    }
    ranks_.push_back({pid, std::move(pipe.read_end)});
  }
}

ForkedRanks::~ForkedRanks() {
  for (const Rank& rank : ranks_)
    if (rank.pid > 0) ::kill(rank.pid, SIGKILL);
  for (const Rank& rank : ranks_)
    while (rank.pid > 0 && ::waitpid(rank.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
}

BatchAnswer ForkedRanks::next(int rank) {
  std::vector<std::string> texts = receive_texts(ranks_.at(static_cast<std::size_t>(rank)).answers.get());
  if (texts.empty()) tell_end(rank);
  if (texts.front() == kErrorMark)
    throw Error(static_cast<ErrorKind>(std::stoi(texts.at(1))), fmt::format("rank {}: {}", rank, texts.at(2)),
                texts.at(3));
  BatchAnswer answer = {.lines = std::move(texts.front())};
  answer.problems.assign(std::next(texts.begin()), texts.end());
  return answer;
}

void ForkedRanks::tell_end(int rank) {
  Rank& ended = ranks_.at(static_cast<std::size_t>(rank));
  int status = 0;
  const pid_t pid = std::exchange(ended.pid, -1);
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  const std::string how = WIFSIGNALED(status) ? fmt::format("by the signal {}", ::strsignal(WTERMSIG(status)))
                                              : fmt::format("with code {}", WEXITSTATUS(status));
  throw Error(ErrorKind::os, fmt::format("rank {} ended {} before it had answered for its images", rank, how),
              "if the system ran out of memory, fewer ranks or a smaller --batch_size need less");
}

}  // namespace fleetrun::runtime
