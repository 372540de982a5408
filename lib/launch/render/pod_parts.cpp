#include "launch/render/pod_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/exit_codes.h"
#include "launch/cli/flags/launch_options.h"
#include "launch/cli/flags/shell_words.h"
#include "launch/render/batch_text.h"
#include "launch/render/shell_parts.h"

namespace fleetrun::launch {
namespace {

constexpr std::string_view kKeyFolder = "/run/fleetrun";
constexpr const char* kAnyImage = "fleetrun:latest";  // the user builds it and gives it a name

constexpr std::string_view kPod = R"(spec:
  # Longer than --grace (<<grace>> s), so that fleetrun can end the ranks and write its report.
  terminationGracePeriodSeconds: <<stop_time>>
<<extra>>
  containers:
    - name: <<container>>
      # An image with fleetrun, the program and its data. Data can also come from a volume.
      image: <<image>>
<<folder>>
      command: [<<fleetrun>>]
      args:
<<args>>
<<resources>>
      volumeMounts:
<<key_mount>>
        - name: shared-memory
          mountPath: /dev/shm
  volumes:
<<key_volume>>
    # Ranks of one pod exchange data in /dev/shm, for which a container gets only 64 MiB by default.
    - name: shared-memory
      emptyDir:
        medium: Memory
)";

bool has_key(const BatchRun& run) { return run.nodes > 1 && !run.insecure; }

// The places of the nodes are expressions for Kubernetes, so they are not quoted as the user's words are.
std::string args_of(const BatchRun& run, const PodSpec& spec) {
  std::string lines;
  const auto add = [&](const std::string& quoted) { lines += "        - " + quoted + "\n"; };
  if (run.nodes > 1) {
    add(quote_yaml("--nnodes=" + nnodes_value(run, std::to_string(run.nodes))));
    add(quote_yaml("--node_rank=" + spec.node_rank));
    add(quote_yaml(fmt::format("--master={}:{}", spec.first, run.port.value_or(kPodPort))));
    if (run.least_nodes && !spec.replaced.empty())
      add(quote_yaml(fmt::format("--rejoin_at={}", fmt::join(spec.replaced, ","))));
  }
  if (has_key(run)) add(quote_yaml(fmt::format("--key_file={}/key", kKeyFolder)));
  for (const auto* words : {&run.flags, &run.program})
    for (const std::string& word : *words) add(quote_container_word(word));
  return lines;
}

std::string resources_of(const BatchRun& run) {
  if (run.gpus == 0 && !run.cores) return "";
  std::string lines = "      resources:\n";
  if (run.gpus > 0) lines += fmt::format("        limits:\n          nvidia.com/gpu: {}\n", run.gpus);
  if (run.cores) lines += fmt::format("        requests:\n          cpu: {}\n", *run.cores);
  return lines;
}

std::string key_mount(const BatchRun& run) {
  return has_key(run)
             ? fmt::format("        - name: key\n          mountPath: {}\n          readOnly: true\n",
                           kKeyFolder)
             : "";
}

// A securityContext with fsGroup would let a group read the key, and fleetrun refuses such a key.
std::string key_volume(const BatchRun& run) {
  if (!has_key(run)) return "";
  return fmt::format(
      R"(    # Only the container's user may read the key, so fsGroup must not be set. The file belongs to root.
    - name: key
      secret:
        secretName: {}-key
        defaultMode: 0400
)",
      run.name);
}

}  // namespace

std::string indented(const std::string& text, std::size_t spaces) {
  std::string lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    const std::string line = text.substr(start, end - start);
    lines += (line.empty() ? "" : std::string(spaces, ' ') + line) + "\n";
    start = end == std::string::npos ? text.size() : end + 1;
  }
  return lines;
}

std::string pod_template(const BatchRun& run, const PodSpec& spec, std::size_t indent) {
  const std::string program = run.own.fleetrun.empty() ? "fleetrun" : run.own.fleetrun;
  const std::string folder =
      run.own.folder.empty() ? "" : "      workingDir: " + quote_yaml(run.own.folder) + "\n";
  return indented(fill(kPod, {{"grace", std::to_string(run.grace.count())},
                              {"stop_time", std::to_string(run.stop_time().count())},
                              {"extra", indented(spec.extra, 2)},
                              {"container", spec.container},
                              {"image", image_of(run)},
                              {"folder", folder},
                              {"fleetrun", quote_container_word(program)},
                              {"args", args_of(run, spec)},
                              {"resources", resources_of(run)},
                              {"key_mount", key_mount(run)},
                              {"key_volume", key_volume(run)}}),
                  indent);
}

std::string wait_for_first_pod(const BatchRun& run, const std::string& first) {
  return fmt::format(R"(initContainers:
  # The first pod has a name only after it has an address.
  - name: wait-for-first-pod
    image: {}
    command: ["sh", "-c", "until getent hosts {}; do sleep 1; done"]
)",
                     image_of(run), first);
}

std::string rule_to_fail() {
  std::vector<int> codes;
  for (const ExitCode& row : exit_codes())
    if (row.repeats) codes.push_back(row.code);
  return fmt::format(
      "# Exit codes of failures that another attempt would repeat (docs/exit-codes.md). Others, such as 75, are tried again.\n"
      "- action: FailJob\n"
      "  onExitCodes:\n"
      "    containerName: fleetrun\n"
      "    operator: In\n"
      "    values: [{}]\n",
      fmt::join(codes, ", "));
}

std::string how_to_make_secret(const BatchRun& run) {
  if (!has_key(run)) return "";
  return fmt::format("Make the key once:   kubectl create secret generic {}-key --from-file=key={}\n",
                     run.name, run.key_file.empty() ? "$HOME/.fleetrun/key" : quote_word(run.key_file));
}

std::string how_to_see_ranks(const BatchRun& run) {
  std::string words = program_name(run) + " ps";
  if (run.log_dir != LaunchOptions().log_dir.value) words += " --log_dir=" + quote_word(run.log_dir);
  return words;
}

std::string deadline_line(const BatchRun& run) {
  if (!run.timeout) return "";
  return fmt::format("# From --timeout.\nactiveDeadlineSeconds: {}\n", run.timeout->count());
}

std::string image_of(const BatchRun& run) {
  return quote_yaml(run.own.image.empty() ? kAnyImage : run.own.image);
}

}  // namespace fleetrun::launch
