#include "launch/render/batch_run.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/printable.h"
#include "base/text/split_list.h"
#include "launch/cli/command_line.h"
#include "launch/cli/flags/flag_rows.h"
#include "launch/cli/flags/launch_flags.h"
#include "launch/cli/flags/read_flags.h"
#include "launch/plan/program.h"
#include "launch/render/target.h"

namespace fleetrun::launch {
namespace {

using Words = std::vector<std::string>;

// These show something and start nothing.
constexpr std::array kLookFlags = {"--help", "--version", "--show_config", "--dry_run", "--print_completion"};

// They name hosts, which the system chooses; --nnodes gives it their number.
constexpr std::array kPlaceFlags = {"--ips",           "--host",       "--hostfile",
                                    "--hosts",         "--master",     "--master_addr",
                                    "--rdzv_endpoint", "--standalone", "--node_rank"};

Error bad_flag(const std::string& message, const std::string& hint = "") {
  return Error(ErrorKind::usage, message, hint);
}

void refuse_flags(const Target& target, const FoundFlags& found) {
  for (const char* name : kLookFlags)
    if (found.has(name))
      throw bad_flag(fmt::format("{} starts no run, so a file for {} cannot contain it", name, target.name));
  if (target.placer.empty()) return;
  for (const char* name : kPlaceFlags)
    if (found.has(name))
      throw bad_flag(fmt::format("{} makes no sense in a file for {}: {} chooses the hosts", name,
                                 target.name, target.placer),
                     "--nnodes=N says how many");
}

// The variables of --env NAME, without a value.
Words inherited_variables(const Target& target, const LaunchOptions& options) {
  Words names;
  for (const RankVariable& variable : options.env.value)
    if (variable.setting.find('=') == std::string::npos) names.push_back(variable.setting);
  if (!names.empty() && !target.takes_environment)
    throw bad_flag(fmt::format("--env {} takes the value from the shell, which {} does not pass on",
                               names.front(), target.name),
                   fmt::format("give the value: --env {}=VALUE", names.front()));
  return names;
}

job::DeviceChoice device_of(const LaunchOptions& options, const JobFacts& job) {
  if (options.device.origin != Origin::fallback || !job) return options.device.value;
  return job->device;
}

std::optional<int> number_of_workers(const LaunchOptions& options) {
  const auto& count = options.nproc_per_node.value;
  if (count && count->of == WorkerCount::Of::number) return count->number;
  if (options.gpus.value) return static_cast<int>(split_list(*options.gpus.value).size());
  return std::nullopt;
}

// --gpus=4,5,6,7 asks for as many GPUs; which ones a job gets is for the system to say.
int number_of_gpus(const Target& target, const LaunchOptions& options, const JobFacts& job) {
  if (device_of(options, job) == job::DeviceChoice::cpu || target.placer.empty()) return 0;
  const auto& count = options.nproc_per_node.value;
  if (count && count->of == WorkerCount::Of::cores) return 0;
  if (options.gpus.value) return static_cast<int>(split_list(*options.gpus.value).size());
  if (count && count->of == WorkerCount::Of::number) return count->number;
  throw bad_flag(
      fmt::format("the flags do not say how many GPUs each node needs, which {} must know", target.placer),
      "--nproc_per_node=N starts N ranks on N GPUs of each node; --device=cpu needs no GPU");
}

// What the threads of all ranks of a node use; none where the job file does not say how many.
std::optional<int> number_of_cores(const LaunchOptions& options, const JobFacts& job) {
  const std::optional<int> workers = number_of_workers(options);
  if (!workers || !job || !job->train.threads) return std::nullopt;
  return *workers * (*job->train.threads + job->data.loader_threads);
}

bool is_expressed_by(const Target& target, const std::string& flag) {
  if (flag == "--nnodes" || flag == "--gpus" || flag == "--master_port") return !target.placer.empty();
  if (flag == "--ips") return false;
  if (flag == "--log_dir") return target.logs_in_one_folder;
  if (flag == "--timeout") return target.limits_time;
  return flag == "--key_file" && target.brings_key;
}

Words flags_of_fleetrun(const Target& target, const std::vector<Flag>& table, const FoundFlags& found,
                        const LaunchOptions& options) {
  Words words;
  for (const FoundFlag& one : found.flags)
    if (!is_expressed_by(target, one.name))
      words.push_back(flag_called(table, one.name)->takes_value() ? one.name + "=" + one.text : one.name);
  const bool counts_gpus = options.gpus.value && !target.placer.empty();
  if (counts_gpus && !options.nproc_per_node.value)
    words.push_back(fmt::format("--nproc_per_node={}", *number_of_workers(options)));
  return words;
}

// After "--" where its name could be taken for a flag or a subcommand.
Words program_of(const LaunchOptions& options) {
  const bool by_name = !options.module.value && !options.no_python.value && !options.run_path.value;
  const bool is_program = kind_of(requested_program(options)) == ProgramKind::executable && by_name;
  Words words;
  if (is_program || looks_like_a_flag(options.program)) words.emplace_back("--");
  words.push_back(options.program);
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  return words;
}

// "configs/ResNet 50.json" is "resnet-50".
std::string name_of(const LaunchOptions& options) {
  const bool chosen = options.job_id.origin != Origin::fallback;
  std::string text = chosen ? options.job_id.value : options.program.substr(options.program.rfind('/') + 1);
  if (!chosen) text = text.substr(0, text.rfind('.'));
  std::string name;
  for (const unsigned char letter : text)
    if (std::isalnum(letter) != 0 && letter < 0x80)
      name += static_cast<char>(std::tolower(letter));
    else if (!name.empty() && !name.ends_with('-'))
      name += '-';
  if (name.empty() || std::isalpha(static_cast<unsigned char>(name.front())) == 0) name.insert(0, "run-");
  name = name.substr(0, kLongestName);
  while (name.ends_with('-')) name.pop_back();
  return name;
}

// MIN of --nnodes=MIN:MAX.
std::optional<int> least_to_start(const NodeRange& nodes) {
  return nodes.least < nodes.most ? std::optional(nodes.least) : std::nullopt;
}

// A run with spares is elastic, too.
std::optional<int> least_nodes(const NodeRange& nodes, int spares) {
  const int least = std::min(nodes.least, nodes.most - spares);
  return least < nodes.most ? std::optional(least) : std::nullopt;
}

std::chrono::seconds rounded_up(Clock::duration time) {
  return std::chrono::ceil<std::chrono::seconds>(time);
}

// `has`: a file for that target has a place for the value of the flag.
void check_place(const Target& target, const char* flag, const std::string& value, bool Target::*has) {
  if (value.empty() || target.*has) return;
  std::vector<std::string> others;
  for (const Target& other : targets())
    if (other.*has) others.emplace_back(other.name);
  throw bad_flag(
      fmt::format("a file for {} has no place for {}; {} takes it", target.name, flag, listed(others)));
}

void check_own_flags(const Target& target, const RenderFlags& own) {
  check_place(target, "--queue", own.queue, &Target::takes_queue);
  check_place(target, "--image", own.image, &Target::takes_image);
  if (!own.folder.empty() && !own.folder.starts_with('/'))
    throw bad_flag(fmt::format("--folder is \"{}\", wanted a path that begins with /", own.folder));
  for (const auto& [flag, text] :
       {std::pair("--folder", &own.folder), std::pair("--fleetrun", &own.fleetrun)})
    if (printable(*text) != *text)
      throw bad_flag(
          fmt::format("{} is \"{}\", wanted a path without control characters", flag, printable(*text)));
  const auto is_odd = [](unsigned char letter) {
    return std::isalnum(letter) == 0 &&
           std::string_view("_.,-").find(static_cast<char>(letter)) == std::string_view::npos;
  };
  if (std::any_of(own.queue.begin(), own.queue.end(), is_odd))
    throw bad_flag(
        fmt::format("--queue is \"{}\", wanted letters, digits and _ . , -", printable(own.queue)));
}

bool says_where_to_meet(const LaunchOptions& options) {
  return options.ips.origin != Origin::fallback || options.master.value || options.master_addr.value ||
         options.rdzv_endpoint.value;
}

void check_hosts(const Target& target, const FoundFlags& found, const LaunchOptions& options) {
  if (!target.placer.empty()) return;
  const int nodes = options.nnodes.value.value_or(NodeRange()).most;
  if (nodes > 1 && !says_where_to_meet(options) && target.name != "ssh")
    throw bad_flag(fmt::format("a file for {} on {} nodes needs --master or --ips: where the nodes meet",
                               target.name, nodes));
  if (target.name != "ssh") return;
  if (!found.has("--ips"))
    throw bad_flag("a script for ssh needs --ips: the hosts on which it starts the run");
  if (found.has("--node_rank"))
    throw bad_flag("a script for ssh cannot contain --node_rank: it gives each host of --ips its number");
}

}  // namespace

std::chrono::seconds BatchRun::stop_time() const {
  constexpr auto kReportTime = std::chrono::seconds(5);  // for the last lines of the logs and the report
  return grace + kill_wait + kReportTime;
}

BatchRun plan_batch_run(const Target& target, const RenderFlags& own, const Words& words,
                        const JobFacts& job) {
  check_own_flags(target, own);
  LaunchOptions scratch;
  const std::vector<Flag> table = launch_flags(scratch);
  const FoundFlags found = read_leading_flags(table, words);
  refuse_flags(target, found);
  const LaunchOptions options = parse_launch_options(words, Environment()).options;
  check_hosts(target, found, options);
  const NodeRange nodes = options.nnodes.value.value_or(NodeRange());
  BatchRun run = {.own = own,
                  .made_by = {"fleetrun", "render", std::string(target.name)},
                  .name = name_of(options),
                  .nodes = nodes.most,
                  .least_nodes = least_nodes(nodes, options.spares.value),
                  .least_to_start = least_to_start(nodes),
                  .gpus = number_of_gpus(target, options, job),
                  .cores = number_of_cores(options, job),
                  .flags = flags_of_fleetrun(target, table, found, options),
                  .program = program_of(options),
                  .hosts = split_list(options.ips.value),
                  .log_dir = options.log_dir.value,
                  .key_file = options.key_file.value,
                  .insecure = options.insecure.value,
                  .port = options.master_port.value,
                  .grace = rounded_up(options.grace.value),
                  .kill_wait = rounded_up(options.kill_wait.value),
                  .timeout = std::nullopt,
                  .inherited = inherited_variables(target, options),
                  .resumes = job && job->checkpoint.dir && job->checkpoint.resume == "auto"};
  if (options.timeout.value) run.timeout = rounded_up(*options.timeout.value);
  if (run.hosts.size() > 1) run.nodes = static_cast<int>(run.hosts.size());
  run.made_by.insert(run.made_by.end(), own.as_typed.begin(), own.as_typed.end());
  run.made_by.emplace_back("--");
  run.made_by.insert(run.made_by.end(), words.begin(), words.end());
  return run;
}

}  // namespace fleetrun::launch
