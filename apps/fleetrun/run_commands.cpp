// The subcommands that talk to a running fleetrun: ps, stop, signal.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/error/log.h"
#include "base/json/json_reader.h"
#include "base/system/file.h"
#include "base/system/standard_output.h"
#include "base/text/printable.h"
#include "commands.h"
#include "launch/cli/command_line.h"
#include "launch/cli/flags/rank_set.h"
#include "launch/logs/log_names.h"
#include "launch/process/exit_status.h"
#include "launch/process/process_state.h"
#include "launch/report/utc_time.h"
#include "launch/serve/control_client.h"

namespace fleetrun {
namespace {

using Kind = JsonValue::Kind;

constexpr auto kSayAgain = std::chrono::seconds(5);  // that a run which was stopped has not ended yet
constexpr std::size_t kMostReport = 64 << 20;        // bytes of report.json, of 65,536 ranks
constexpr std::size_t kLongestCell = 60, kLongestId = 200,
                      kLongestMessage = 2000;  // bytes of what a run says

// The answer as an object. Throws what the run says is wrong.
JsonValue ask(launch::ControlClient& client, const std::string& folder, const JsonValue& request) {
  const std::string text = client.ask(to_json(request));
  JsonValue answer = with_context(fmt::format("reading the answer of the run in {}/", folder),
                                  [&] { return read_json(text).root; });
  if (!answer.is(Kind::object))
    throw Error(ErrorKind::protocol,
                fmt::format("the answer of the run in {}/ is not a JSON object", folder));
  if (const JsonMember* error = answer.find("error"))
    throw Error(ErrorKind::usage, printable_start(error->value.text, kLongestMessage));
  return answer;
}

JsonValue ask(const std::string& folder, const JsonValue& request) {
  launch::ControlClient client(folder);
  return ask(client, folder, request);
}

// Whoever answers may be anybody: a folder tells nothing about whose it is.
std::string text_of(const JsonValue& object, const std::string& key, std::size_t limit = kLongestCell) {
  const JsonMember* member = object.find(key);
  if (member == nullptr) return "-";
  const bool has_text = member->value.is(Kind::integer) || member->value.is(Kind::text);
  return has_text ? printable_start(member->value.text, limit) : "-";
}

// With one decimal.
std::string decimal_of(const JsonValue& object, const std::string& key) {
  constexpr double kMost = 1e15;  // what fits into a cell
  const JsonMember* member = object.find(key);
  const bool fits = member != nullptr && std::abs(member->value.number) < kMost;
  return fits ? fmt::format("{:.1f}", member->value.number) : "-";
}

// Why no rank runs yet; none when ranks run.
std::optional<std::string> wait_of(const JsonValue& answer) {
  if (answer.find("waiting") == nullptr) return std::nullopt;
  return "no rank runs yet: " + text_of(answer, "waiting", kLongestMessage);
}

// A line for each rank that was found to be slow in the present attempt.
std::string stragglers_in(const JsonValue& run) {
  std::string text;
  const JsonValue* const list = run.find("stragglers", Kind::list);
  if (list == nullptr) return text;
  for (const JsonValue& one : list->items)
    if (text_of(one, "attempt") == text_of(run, "attempt"))
      text += text_of(one, "message", kLongestMessage) + "\n";
  return text;
}

// "97 %, 40960 MiB, 61 C, 412 W", with the parts that the driver says. Without a GPU it is "".
std::string describe_gpu(const JsonValue& rank) {
  const JsonValue* const gpu = rank.find("gpu", Kind::object);
  if (gpu == nullptr) return "";
  std::string text;
  const auto add = [&](const char* key, std::int64_t divisor, const char* unit) {
    if (const JsonValue* const value = gpu->find(key, Kind::integer))
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", value->integer / divisor, unit);
  };
  add("busy_percent", 1, "%");
  add("memory_used", 1 << 20, "MiB");
  add("celsius", 1, "C");
  add("milliwatts", 1000, "W");
  return text;
}

bool any_has(const JsonMember* ranks, const char* key) {
  return ranks != nullptr && std::ranges::any_of(ranks->value.items, [&](const JsonValue& rank) {
           return rank.find(key) != nullptr;
         });
}

std::string describe_run(const JsonValue& run) {
  std::string text = fmt::format("{}, fleetrun {}, attempt {}, {} s\n", text_of(run, "run_id", kLongestId),
                                 text_of(run, "pid"), text_of(run, "attempt"), decimal_of(run, "seconds"));
  const JsonMember* ranks = run.find("ranks");
  const bool has_hosts = any_has(ranks, "host"), has_gpus = any_has(ranks, "gpu");
  const auto gpu_cell = [&](const std::string& words) {
    return has_gpus ? fmt::format("{:30}  ", words) : std::string();
  };
  const auto row = [&](const auto&... cells) {
    text += fmt::format("{:>4}  {:>7}  {:16}  {:>8}  {:>8}  {:>8}  {:>9}  {:>8}  {}{}", cells...);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  };
  if (const auto why = wait_of(run)) return text + *why + "\n";
  row("RANK", "PID", "STATE", "SECONDS", "CPU", "MIB", "LOG AGO", "STEP", gpu_cell("GPU"),
      has_hosts ? "HOST" : "");
  if (ranks == nullptr) return text;
  for (const JsonValue& rank : ranks->value.items) {
    const std::string state = text_of(rank, "state");  // a letter while the process runs
    row(text_of(rank, "rank"), text_of(rank, "pid"), state.size() == 1 ? launch::name_state(state[0]) : state,
        decimal_of(rank, "seconds"), decimal_of(rank, "cpu_seconds"), decimal_of(rank, "memory_mib"),
        decimal_of(rank, "log_seconds_ago"), text_of(rank, "step"), gpu_cell(describe_gpu(rank)),
        has_hosts ? text_of(rank, "host") : "");
  }
  return text + stragglers_in(run);
}

// "USR1", "RTMIN+3"; "" for a number that has no name, as those that the C library keeps for itself.
std::string name_of_signal(int number) {
  if (number >= SIGRTMIN) return number == SIGRTMIN ? "RTMIN" : fmt::format("RTMIN+{}", number - SIGRTMIN);
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? "" : name;
}

// "USR1", "SIGUSR1", "10", "RTMIN+3".
int parse_signal(const std::string& text) {
  const std::string name = text.starts_with("SIG") ? text.substr(3) : text;
  for (int number = 1; number <= SIGRTMAX; ++number) {
    const std::string known = name_of_signal(number);
    if (!known.empty() && (name == known || text == std::to_string(number))) return number;
  }
  throw Error(ErrorKind::usage,
              fmt::format("the signal is \"{}\", must be a name or number like USR1, HUP, 10", text));
}

// Of ranks, each to be printed.
std::vector<std::string> list_of(const JsonValue& answer, const char* key) {
  std::vector<std::string> ranks;
  if (const JsonMember* member = answer.find(key))
    for (const JsonValue& rank : member->value.items)
      ranks.push_back(printable_start(rank.text, kLongestCell));
  return ranks;
}

std::string chosen_ranks(const FoundFlags& found) {
  std::string text = found.value("--rank").value_or("all");
  const launch::RankSet ranks = launch::parse_ranks("--rank", text);
  if (!ranks.all && ranks.ranges.empty())
    throw Error(ErrorKind::usage, "--rank is none: no rank to send the signal to");
  return text;
}

void wait_for_end(launch::ControlClient& client, const std::string& run_id, const char* advice) {
  std::chrono::seconds waited{0};
  while (!client.is_over_within(kSayAgain)) {
    waited += kSayAgain;
    log_line("fleetrun", fmt::format("{} has not ended after {} s{}", run_id, waited.count(), advice));
  }
}

// The report of the last run in the folder, if that run could write one. Throws Error(data) for a file that is not a report, and what
// read_file() throws.
std::optional<JsonValue> read_report(const std::string& folder) {
  const std::string path = fmt::format("{}/{}", folder, launch::kReportName);
  try {
    JsonDocument document = read_json(read_file(path, kMostReport));
    if (document.complete && document.root.find("run_id", Kind::text) != nullptr)
      return std::move(document.root);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::missing) return std::nullopt;
    throw;
  }
  throw Error(ErrorKind::data, fmt::format("{} is not a report of fleetrun, or is incomplete", path));
}

std::string describe_time_ago(std::chrono::seconds time) {
  constexpr std::int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  const std::int64_t seconds = std::max<std::int64_t>(time.count(), 0);
  if (seconds < 2 * kMinute) return fmt::format("{} s ago", seconds);
  if (seconds < 2 * kHour) return fmt::format("{} min ago", seconds / kMinute);
  if (seconds < 2 * kDay) return fmt::format("{} h ago", seconds / kHour);
  return fmt::format("{} days ago", seconds / kDay);
}

// "job-7f3a, ended 3 min ago with code 1, rank 1: RuntimeError: cannot load shard 3"
std::string describe_ended_run(const JsonValue& report, std::chrono::system_clock::time_point now) {
  const auto ended = launch::parse_utc_time(text_of(report, "ended"));
  const std::string when =
      ended ? describe_time_ago(std::chrono::duration_cast<std::chrono::seconds>(now - *ended)) : "earlier";
  const std::string rank = text_of(report, "first_failed_rank"),
                    error = text_of(report, "exception", kLongestMessage);
  const bool named = rank != "-" && error != "-" && !error.empty();
  return fmt::format(
      "{}, ended {} with code {}, {}\n", text_of(report, "run_id", kLongestId), when,
      text_of(report, "exit_code"),
      named ? fmt::format("rank {}: {}", rank, error) : text_of(report, "message", kLongestMessage));
}

}  // namespace

int run_ps_command(const FoundFlags& found, const Environment& environment) {
  const std::string folder = find_log_dir(found, environment);
  const bool as_json = found.has("--json");
  try {
    const JsonValue run = ask(folder, JsonValue::object({{"do", "ps"}}));
    print_answer(as_json ? to_json_lines(run) : describe_run(run));
  } catch (const Error& error) {
    const std::optional<JsonValue> ended =
        error.kind() == ErrorKind::missing ? read_report(folder) : std::nullopt;
    if (!ended) throw;
    print_answer(as_json ? to_json_lines(*ended)
                         : describe_ended_run(*ended, std::chrono::system_clock::now()));
  }
  return 0;
}

int run_stop_command(const FoundFlags& found, const Environment& environment) {
  const std::string folder = find_log_dir(found, environment);
  launch::ControlClient client(folder);
  const bool now = found.has("--now");
  const JsonValue request = JsonValue::object({{"do", "stop"}, {"now", now}});
  const std::string run_id = text_of(ask(client, folder, request), "run_id", kLongestId);
  wait_for_end(client, run_id, now ? "" : "; fleetrun stop --now kills its ranks");
  print_answer(fmt::format("stopped {}\n", run_id));
  return 0;
}

std::string name_ranks_of(const std::vector<std::string>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

int run_signal_command(const FoundFlags& found, const Environment& environment) {
  if (found.rest.empty()) throw Error(ErrorKind::usage, "no signal given", "fleetrun signal --help");
  const int signal = parse_signal(found.rest.front());
  const JsonValue answer =
      ask(find_log_dir(found, environment),
          JsonValue::object({{"do", "signal"}, {"signal", signal}, {"ranks", chosen_ranks(found)}}));
  if (const auto why = wait_of(answer)) throw Error(ErrorKind::temporary, *why);
  const auto sent = list_of(answer, "ranks"), spared = list_of(answer, "spared"),
             silent = list_of(answer, "silent");
  const std::string not_answered =
      fmt::format("the nodes of {} did not answer; the signal may arrive late", name_ranks_of(silent));
  if (sent.empty() && spared.empty() && !silent.empty()) throw Error(ErrorKind::temporary, not_answered);
  if (sent.empty() && spared.empty()) throw Error(ErrorKind::temporary, "none of these ranks runs any more");
  const std::string not_sent = fmt::format("{} was not sent to {}: a rank without a handler for it would end",
                                           launch::describe_signal(signal), name_ranks_of(spared));
  if (sent.empty()) throw Error(ErrorKind::temporary, not_sent, "TERM and KILL end a rank");
  print_answer(fmt::format("sent to {}\n", name_ranks_of(sent)));
  if (!spared.empty()) log_line("fleetrun", not_sent);
  if (!silent.empty()) log_line("fleetrun", not_answered);
  return 0;
}

}  // namespace fleetrun
