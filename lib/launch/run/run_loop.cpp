#include "launch/run/run_loop.h"

#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/error/error.h"
#include "launch/host/limits.h"
#include "launch/run/announcements.h"
#include "launch/run/fill_report.h"
#include "launch/run/prepare_attempt.h"
#include "launch/serve/control_requests.h"

namespace fleetrun::launch {
namespace {

constexpr auto kReaderPatience = std::chrono::seconds(2);  // for a reader of our output that takes nothing

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;  // older versions of clang need to be told

LogPlan plan_logs(const RunPlan& plan, const std::string& run_id) {
  return {.run_id = run_id,
          .pid = ::getppid(),  // the front process, as in `fleetrun ps`
          .ranks = plan.cluster.local_size(),
          .has_train_report = plan.embedded.has_value(),
          .may_start_again = plan.options.max_restart.value > 0};
}

SupervisorOptions supervisor_options(const LaunchOptions& options) {
  const auto& signals = options.signals_to_handle.value;
  return {.stop_signals = signals ? signals->numbers : std::vector<int>(),
          .grace = options.grace.value,
          .kill_wait = options.kill_wait.value,
          .timeout = options.timeout.value,
          .early_exit_wait = options.early_exit_wait.value,
          .restart = {.most = options.max_restart.value, .first_delay = options.restart_delay.value}};
}

ProcessGroupOptions group_options(const RunPlan& plan) {
  return {.ranks = plan.cluster.local_size(),
          .use_cgroup = plan.options.cgroup.value != UseCgroup::none,
          .kill_wait = plan.options.kill_wait.value};
}

void write_to_stderr(const Error& error) {
  const std::string text = error.describe("fleetrun");
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

// That the report cannot be written does not hide why the run could not go on.
void try_to_write(const LogFolder& logs, const ExitReport& report) {
  try {
    logs.release_reserve();
    write_report(logs, report);
  } catch (const Error& problem) {
    write_to_stderr(problem);
  }
}

}  // namespace

int run_until_done(const RunPlan& plan, int front_fd) {
  raise_descriptor_limit(plan.cluster.local_size());
  ExitReport report = begin_report(plan);
  const LogFolder logs(plan.options.log_dir.value, plan_logs(plan, report.run_id));
  try {
    RunLoop(plan, front_fd, logs, report).run();
  } catch (const Error& error) {
    if (report.ended.steady != TimePoint()) throw;  // the run is over: only its last words failed
    end_report(error, report);
    try_to_write(logs, report);
    if (report.attempts.empty()) throw;
    write_to_stderr(error.with("starting again after: " + report.attempts.back().message));
  }
  return report.verdict.exit_code;
}

RunLoop::RunLoop(const RunPlan& plan, int front_fd, const LogFolder& logs, ExitReport& report)
    : plan_(plan),
      logs_(logs),
      report_(report),
      console_(loop_, plan.options.log_level.value),
      support_(loop_, plan.cluster.host, plan.embedded ? plan.cluster.local_size() : 0, report.run_id, say()),
      supervisor_(plan.cluster.local_size(), supervisor_options(plan.options)),
      group_(loop_, events_, group_options(plan)),
      signals_(loop_, events_, group_.records()),
      state_{supervisor_.verdict(), group_.records(), support_.pages(), group_.survivors()},
      hangs_(plan, logs),
      roll_call_(loop_, events_, plan.environment, {state_, attempt_, logs, console_}),
      display_(loop_, {plan, logs, state_, console_}),
      disk_(logs, say()),
      control_(loop_, logs,
               [control = RunControl{events_, group_, state_, logs, report}](const std::string& request,
                                                                             const std::string& sender) {
                 return control.answer(request, sender);
               }),
      metrics_(loop_, plan.options, {state_, report}, say()) {
  watch_front(front_fd);
  begin_ticks();
}

std::function<void(std::string_view line)> RunLoop::say() {
  return [this](std::string_view line) { console_.say(line); };
}

void RunLoop::run() {
  perform(supervisor_.start(Clock::now()));
  while (!supervisor_.done()) {
    const Event event = events_.next();
    const Actions actions = supervisor_.on(event, Clock::now());
    display_.show(event);
    perform(actions);
  }
  end();
}

void RunLoop::watch_front(int front_fd) {
  loop_.watch_readable(front_fd, [this, front_fd] {  // nobody writes there: it can only be the end
    loop_.forget(front_fd);
    events_.push(FrontLost{});
  });
}

// What is looked at again and again. All else happens by itself: a signal, a death, a line in a log, a request at the socket.
void RunLoop::begin_ticks() {
  if (const auto interval = hangs_.interval()) loop_.call_every(*interval, [this] { look_for_hang(); });
  if (const auto interval = display_.draw_interval())
    loop_.call_every(*interval, [this] { display_.draw(); });
  loop_.call_every(EventQueue::kBeat, [this] { events_.notice_standstill(); });
  loop_.call_every(LogDisk::kInterval, [this] { disk_.look(); });
}

void RunLoop::look_for_hang() {
  if (supervisor_.suspended()) return hangs_.forgive();
  if (const auto why = hangs_.look(state_, Clock::now())) events_.push(HangFound{*why});
}

void RunLoop::perform(const Actions& actions) {
  std::vector<PassOn> left_alone;
  for (const Action& action : actions)
    std::visit(Overloaded{[&](const StartAttempt& start) { begin_attempt(start.attempt); },
                          [&](const EndAttempt& ended) { end_attempt(ended.delay); },
                          [&](const CallRoll&) { roll_call_.call(); },
                          [&](const WakeAt& wake) { events_.push_at(wake.time, Woke{}); },
                          [&](const PassOn& signal) {
                            if (!group_.pass_on(signal.rank, signal.signal)) left_alone.push_back(signal);
                          },
                          [&](const auto& other) { group_.act(other); }},
               action);
  announce_left_alone(left_alone, console_);
}

void RunLoop::begin_attempt(int number) {
  if (number > 0) support_.begin_attempt(number);
  attempt_ = {};  // releases its ports first: one that the user named is taken again
  attempt_ = prepare_attempt(plan_, {report_.run_id, number}, logs_, support_);
  if (number == 0) display_.begin_run(attempt_.workers);
  display_.begin_attempt(number, report_.host);
  hangs_.follow_new_logs();
  roll_call_.forget();
  group_.start(attempt_);
}

// The Supervisor begins another attempt after the delay.
void RunLoop::end_attempt(Clock::duration delay) {
  group_.end();
  report_attempt();
  display_.show_end(report_, patience());
  archive_attempt(logs_, report_);
  announce_restart(state_.verdict.attempt + 1, plan_.options.max_restart.value, delay,
                   report_.attempts.back(), console_);
}

void RunLoop::end() {
  group_.end();
  control_.close();
  disk_.look();
  if (is_archived(state_.verdict.attempt, report_))
    fill_end_before_restart(state_.verdict, report_);
  else
    report_attempt();
  end_report(logs_, roll_call_.lines(), report_);
  metrics_.finish(report_.verdict.exit_code);
  try_to_write_report();  // before the console, which may take its time
  display_.end_run(report_, patience());
}

void RunLoop::report_attempt() {
  fill_attempt(state_, attempt_, logs_, report_);
  const bool called = !roll_call_.collectives().ranks.empty();  // then the moment of the roll call counts
  fill_collectives(called ? roll_call_.collectives() : read_collectives(state_.pages), logs_, report_);
  fill_limit(attempt_.workers.front().environment, report_);
  report_.log_disk_full = disk_.was_full();
}

// A run does not fail because its report does not fit on the disk.
void RunLoop::try_to_write_report() {
  logs_.release_reserve();
  try {
    write_report(logs_, report_);
  } catch (const Error& error) {
    console_.say(error.message());
  }
}

Patience RunLoop::patience() {
  return {kReaderPatience, [this] { return signals_.take(); }};
}

}  // namespace fleetrun::launch
