#include "launch/prepare.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/error/log.h"
#include "base/run/run_key.h"
#include "job/checks/check_inputs.h"
#include "launch/host/core_binding.h"
#include "launch/logs/folder_lock.h"
#include "launch/logs/log_folder.h"
#include "launch/logs/network_file_system.h"
#include "launch/nodes/node_key.h"
#include "launch/nodes/terms.h"
#include "launch/plan/program.h"
#include "launch/process/exit_status.h"
#include "launch/process/signals.h"
#include "launch/schedulers/settle_nodes.h"
#include "launch/schedulers/topology.h"

namespace fleetrun::launch {
namespace {

constexpr auto kNoteEvery = std::chrono::seconds(10);
constexpr auto kResolveEvery = std::chrono::milliseconds(500);

// Blocks the signals that end a run, and waits for one of them.
class EndSignals {
 public:
  EndSignals() {
    ::sigemptyset(&signals_);
    for (const int signal : handled_signals())
      if (ends_a_run(signal)) ::sigaddset(&signals_, signal);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~EndSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  int wait(std::chrono::milliseconds limit) const {  // 0: none came
    const timespec time = {.tv_sec = 0, .tv_nsec = limit / std::chrono::nanoseconds(1)};
    return std::max(0, ::sigtimedwait(&signals_, nullptr, &time));
  }

 private:
  sigset_t signals_{}, before_{};
};

// Something has started this fleetrun on a node that --exclude_hosts leaves out.
bool is_left_out(const LaunchOptions& options, const std::optional<Allocation>& allocation) {
  if (allocation && allocation->is_left_out) return true;
  if (options.left_out.empty() || options.given_key || options.node_rank.value) return false;
  const HostFacts host = probe_host();
  return std::any_of(options.left_out.begin(), options.left_out.end(), [&](const std::string& name) {
    return is_same_host(name, host.name) ||
           std::find(host.addresses.begin(), host.addresses.end(), name) != host.addresses.end();
  });
}

}  // namespace

bool stays_out(const LaunchOptions& options, const std::optional<Allocation>& allocation) {
  if (!is_left_out(options, allocation)) return false;
  log_line("fleetrun",
           fmt::format("{} leaves out this host, so nothing runs here", options.exclude_hosts.source));
  return true;
}

std::optional<job::ParsedJob> read_job(const LaunchOptions& options) {
  if (kind_of(requested_program(options)) != ProgramKind::job) {
    for (const auto& [flag, folder] :
         {std::pair("--dump_program", &options.dump_program),
          std::pair("--dump_passes", &options.dump_passes), std::pair("fleetrun tune", &options.tune),
          std::pair("fleetrun eval", &options.eval)})
      if (!folder->value.empty())
        throw Error(ErrorKind::usage,
                    fmt::format("{} is for job files, and {} is none", flag, options.program));
    return std::nullopt;
  }
  job::ParsedJob job = job::parse_job_file(options.program, options.arguments);
  job::JobSpec inputs = job.spec;
  if (!options.eval.value.empty() && inputs.data.test) {
    inputs.data.train = {.format = job::DataFormat::synthetic};  // is not read
    inputs.model.class_dim
        .reset();  // the ranks know which classes the model has, and name a folder that is none of them
  }
  if (!options.eval.value.empty())
    inputs.checkpoint = {.resume = "never"};  // no checkpoint replaces the model
  job::check_inputs(inputs);
  return job;
}

std::optional<EmbeddedRuntime> runtime_of(const std::optional<job::ParsedJob>& job) {
  if (!job) return std::nullopt;
  return EmbeddedRuntime{.device = job->spec.device,
                         .environment = job->spec.env,
                         .threads = job->spec.train.threads,
                         .notes = job->notes,
                         .values = job->values,
                         .job_text = job->text};
}

HostFacts probe(const LaunchOptions& options) {
  HostFacts host = probe_host();
  if (options.bind.value == Binding::cores) host.cpus = probe_cpus();
  return host;
}

// The first process of a container ends at no signal that it does not handle.
int wait_for_names(const LaunchOptions& options, const Environment& environment, Clock::duration patience) {
  const bool in_pod = !environment.get_or("KUBERNETES_SERVICE_HOST", "").empty();
  if (!in_pod || !asks_for_several_nodes(options)) return 0;
  const TimePoint end = Clock::now() + patience;
  TimePoint next_note = Clock::now();
  EndSignals signals;
  for (std::vector<std::string> names = needed_names(options);;) {
    std::erase_if(names, [](const std::string& name) { return !resolve_node(name).address.empty(); });
    if (names.empty() || Clock::now() >= end) return 0;
    if (Clock::now() >= next_note) {
      log_line("fleetrun",
               fmt::format("waiting for {} to get an address (--join_timeout)", fmt::join(names, ", ")));
      next_note += kNoteEvery;
    }
    if (const int signal = signals.wait(kResolveEvery); signal != 0) {
      log_line("fleetrun",
               fmt::format("stopped by {} while other nodes had no address", describe_signal(signal)));
      return signal;
    }
  }
}

std::optional<Membership> find_members(const LaunchOptions& options, const HostFacts& host) {
  if (!asks_for_several_nodes(options)) return std::nullopt;
  Membership members = resolve_membership(options, resolve_names(options), host);
  if (!members.warning.empty()) log_line("fleetrun", "warning: " + members.warning);
  return members;
}

namespace {

// Why this node must not write to the usual log folder. "": it may.
std::string why_not_usual_logs(const LaunchOptions& options, bool is_first) {
  const std::string& logs = options.log_dir.value;
  if (options.log_dir.origin != Origin::fallback || logs.empty()) return "";
  if (!is_first && is_on_network(logs)) return fmt::format("{}/ is on a network file system", logs);
  const std::string host = other_host_of_holder(logs);
  return host.empty() ? "" : fmt::format("{}/ is in use on {}", logs, host);
}

}  // namespace

void use_log_folder_of_node(LaunchOptions& options, const Membership& members,
                            const std::optional<Allocation>& allocation) {
  if (allocation && allocation->scheduler != Scheduler::host_list && members.node_rank)
    return use_own_log_folder(options, *members.node_rank, allocation->found_in);
  const bool is_first = members.node_rank ? members.node_rank == 0 : members.may_be_first;
  const std::string why = why_not_usual_logs(options, is_first);
  if (why.empty()) return;
  const std::string usual = options.log_dir.value;
  options.log_dir = {members.node_rank ? fmt::format("{}.node{}", usual, *members.node_rank)
                                       : fmt::format("{}.{}", usual, probe_host().name),
                     Origin::environment, why};
  options.notes.push_back(fmt::format("{}: the logs of this node are in {}/", why, options.log_dir.value));
}

Terms find_terms(const LaunchOptions& options, const ClusterSpec& cluster,
                 const std::optional<job::ParsedJob>& job) {
  return terms_of(options, cluster, job ? job->text : "");
}

bool starts_others(const LaunchOptions& options, const std::optional<Allocation>& allocation) {
  return allocation && allocation->start_by != StartBy::none && !options.given_key;
}

std::unique_ptr<OtherNodes> start_others(LaunchOptions& options, const Environment& environment,
                                         const std::optional<Allocation>& allocation,
                                         const std::vector<std::string>& words) {
  if (!starts_others(options, allocation)) return nullptr;
  const bool chosen = !options.key_file.value.empty() || options.insecure.value;
  options.given_key = chosen ? find_node_key(options, environment).key : make_run_key();
  return std::make_unique<OtherNodes>(plan_start(options, *allocation, words, environment));
}

}  // namespace fleetrun::launch
