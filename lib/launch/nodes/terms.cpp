#include "launch/nodes/terms.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/json/json_reader.h"
#include "launch/cli/launch_flags.h"
#include "launch/cli/shell_words.h"

namespace fleetrun::launch {
namespace {

// Flags that concern one node: where it is, what devices it has, where its logs go, what its console shows.
constexpr std::array<std::string_view, 29> kOwnFlags = {"--node_rank",
                                                        "--host",
                                                        "--gpus",
                                                        "--nproc_per_node",
                                                        "--hosts",
                                                        "--bind",
                                                        "--start_port",
                                                        "--no_port_hold",
                                                        "--master",
                                                        "--rdzv_endpoint",
                                                        "--master_addr",
                                                        "--nnodes",
                                                        "--key_file",
                                                        "--console",
                                                        "--log_prefix",
                                                        "--log_dir",
                                                        "--log_level",
                                                        "--redirects",
                                                        "--tee",
                                                        "--metrics_port",
                                                        "--metrics_file",
                                                        "--dump_program",
                                                        "--dump_passes",
                                                        "--cgroup",
                                                        "--dry_run",
                                                        "--show_config",
                                                        "--config",
                                                        "--device",
                                                        "--log_line_prefix_template"};

bool is_own(std::string_view name) {
  return std::find(kOwnFlags.begin(), kOwnFlags.end(), name) != kOwnFlags.end();
}

void add_values(const JsonValue& value, const std::string& path, Terms& terms) {
  if (value.is(JsonValue::Kind::object)) {
    for (const JsonMember& member : value.members)
      add_values(member.value, child_path(path, member.key), terms);
    return;
  }
  terms.emplace_back(path + " of the job file", to_json(value));
}

}  // namespace

Terms terms_of(const LaunchOptions& options, const ClusterSpec& cluster, const std::string& job_text) {
  Terms terms = {{"fleetrun --version", FLEETRUN_VERSION},
                 {"the device", cluster.device == DeviceKind::cuda ? "cuda" : "cpu"}};
  LaunchOptions copy = options;
  for (const Flag& flag : launch_flags(copy))
    if (flag.show && !is_own(flag.name())) terms.emplace_back(flag.name(), flag.show());
  if (job_text.empty()) terms.emplace_back("the program", options.program);
  terms.emplace_back("its arguments", quote_words(options.arguments));
  add_values(read_json(job_text).root, "", terms);
  return terms;
}

}  // namespace fleetrun::launch
