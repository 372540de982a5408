// The subcommands that talk to a running fleetrun: ps, stop, signal.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json_reader.h"
#include "commands.h"
#include "launch/control_server.h"
#include "launch/log_folder.h"
#include "launch/option_help.h"
#include "launch/rank_set.h"
#include "launch/subcommands.h"
#include "run_folder.h"

namespace fleetrun {
namespace {

using launch::FoundFlags;
using Kind = JsonValue::Kind;

constexpr auto kStopPollPause = std::chrono::milliseconds(20);  // between looks whether a stopped run is over

bool shows_help(const std::string& name, const FoundFlags& found) {
  if (found.has("--help")) std::fputs(subcommand_help(launch::subcommand(name)).c_str(), stdout);
  return found.has("--help");
}

void refuse_words(const std::string& name, const FoundFlags& found, std::size_t most) {
  if (found.rest.size() > most)
    throw Error(ErrorKind::usage, fmt::format("found {}, which is one word too many", found.rest[most]),
                fmt::format("fleetrun {} --help", name));
}

// The answer as an object. Throws what the run says is wrong.
JsonValue ask(const FoundFlags& found, const std::string& request) {
  JsonValue answer = read_json(launch::ask_run(run_folder(found), request)).root;
  if (const JsonMember* error = answer.find("error")) throw Error(ErrorKind::usage, error->value.text);
  return answer;
}

std::string text_of(const JsonValue& object, const std::string& key) {
  const JsonMember* member = object.find(key);
  if (member == nullptr) return "-";
  return member->value.is(Kind::integer) || member->value.is(Kind::text) ? member->value.text : "-";
}

// With one decimal.
std::string number_of(const JsonValue& object, const std::string& key) {
  const JsonMember* member = object.find(key);
  return member == nullptr ? "-" : fmt::format("{:.1f}", member->value.number);
}

std::string describe_state(const std::string& state) {
  if (state == "R") return "running";
  if (state == "S" || state == "I") return "sleeping";
  if (state == "D") return "waiting for I/O";
  if (state == "T" || state == "t") return "stopped";
  if (state == "Z") return "ended";
  return state;
}

std::string describe_run(const JsonValue& run) {
  std::string text = fmt::format("{}, fleetrun {}, attempt {}, {} s\n", text_of(run, "run_id"),
                                 text_of(run, "pid"), text_of(run, "attempt"), number_of(run, "seconds"));
  const auto row = [&](const auto&... cells) {
    text += fmt::format("{:>4}  {:>7}  {:16}  {:>8}  {:>8}  {:>8}  {:>9}  {:>8}", cells...);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  };
  row("RANK", "PID", "STATE", "SECONDS", "CPU", "MIB", "LOG AGO", "STEP");
  const JsonMember* ranks = run.find("ranks");
  if (ranks == nullptr) return text;
  for (const JsonValue& rank : ranks->value.items)
    row(text_of(rank, "rank"), text_of(rank, "pid"), describe_state(text_of(rank, "state")),
        number_of(rank, "seconds"), number_of(rank, "cpu_seconds"), number_of(rank, "memory_mib"),
        number_of(rank, "log_seconds_ago"), text_of(rank, "step"));
  return text;
}

// "USR1", "SIGUSR1", "10".
int parse_signal(const std::string& text) {
  const std::string name = text.starts_with("SIG") ? text.substr(3) : text;
  for (int number = 1; number < SIGRTMIN; ++number) {
    const char* known = ::sigabbrev_np(number);
    if (std::to_string(number) == text || (known != nullptr && name == known)) return number;
  }
  throw Error(ErrorKind::usage,
              fmt::format("the signal is \"{}\", must be a name or number like USR1, HUP, 10", text));
}

std::vector<int> chosen_ranks(const FoundFlags& found) {
  const auto text = found.value("--rank");
  if (!text || *text == "all") return {};
  std::vector<int> ranks;
  for (const auto& [first, last] : launch::parse_ranks("--rank", *text).ranges)
    for (int rank = first; rank <= last; ++rank) ranks.push_back(rank);
  if (ranks.empty()) throw Error(ErrorKind::usage, "--rank is none: no rank to send the signal to");
  return ranks;
}

}  // namespace

int run_ps_command(const std::vector<std::string>& arguments) {
  const FoundFlags found = find_flags(launch::subcommand("ps"), arguments);
  if (shows_help("ps", found)) return 0;
  refuse_words("ps", found, 0);
  const JsonValue run = ask(found, R"({"do": "ps"})");
  std::fputs((found.has("--json") ? to_json_lines(run) : describe_run(run)).c_str(), stdout);
  return 0;
}

int run_stop_command(const std::vector<std::string>& arguments) {
  const FoundFlags found = find_flags(launch::subcommand("stop"), arguments);
  if (shows_help("stop", found)) return 0;
  refuse_words("stop", found, 0);
  const JsonValue answer =
      ask(found, found.has("--now") ? R"({"do": "stop", "now": true})" : R"({"do": "stop", "now": false})");
  while (launch::is_in_use(run_folder(found))) std::this_thread::sleep_for(kStopPollPause);
  std::fputs(fmt::format("stopped {}\n", text_of(answer, "run_id")).c_str(), stdout);
  return 0;
}

int run_signal_command(const std::vector<std::string>& arguments) {
  const FoundFlags found = find_flags(launch::subcommand("signal"), arguments);
  if (shows_help("signal", found)) return 0;
  refuse_words("signal", found, 1);
  if (found.rest.empty()) throw Error(ErrorKind::usage, "no signal given", "fleetrun signal --help");
  const JsonValue answer =
      ask(found, fmt::format(R"({{"do": "signal", "signal": {}, "ranks": [{}]}})",
                             parse_signal(found.rest.front()), fmt::join(chosen_ranks(found), ", ")));
  const JsonMember* ranks = answer.find("ranks");
  std::vector<std::string> sent;
  if (ranks != nullptr)
    for (const JsonValue& rank : ranks->value.items) sent.push_back(rank.text);
  if (sent.empty()) throw Error(ErrorKind::missing, "none of these ranks runs any more");
  std::fputs(fmt::format("sent to rank {}\n", fmt::join(sent, ", ")).c_str(), stdout);
  return 0;
}

}  // namespace fleetrun
