#include "launch/nodes/terms.h"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/json/redact_variables.h"
#include "base/run/version.h"
#include "base/text/redact.h"
#include "base/text/split_list.h"
#include "launch/cli/flags/flag_values.h"
#include "launch/cli/flags/launch_flags.h"
#include "launch/cli/flags/redact_command.h"
#include "launch/cli/flags/shell_words.h"

namespace fleetrun::launch {
namespace {

constexpr const char* kArguments = "its arguments";
constexpr std::string_view kOfJob = " of the job file";

// Spaces after commas mean nothing.
std::string show(const Flag& flag) {
  if (flag.name() != "--ips") return flag.show();
  return fmt::format("{}", fmt::join(split_list(flag.show()), ","));
}

void add_values(const JsonValue& value, const std::string& path, Terms& terms) {
  if (value.is(JsonValue::Kind::object)) {
    for (const JsonMember& member : value.members)
      add_values(member.value, child_path(path, member.key), terms);
    return;
  }
  terms.emplace_back(path + std::string(kOfJob), to_json(value));
}

// A node may learn it from --nnodes, from --ips, or from a batch system.
std::string number_of_nodes(const LaunchOptions& options, const ClusterSpec& cluster) {
  return options.nnodes.value ? show_value(*options.nnodes.value) : std::to_string(cluster.node_count());
}

}  // namespace

Terms terms_of(const LaunchOptions& options, const ClusterSpec& cluster, const std::string& job_text) {
  Terms terms = {{"fleetrun --version", own_version()},
                 {"the device", cluster.device == DeviceKind::cuda ? "cuda" : "cpu"},
                 {"the number of nodes", number_of_nodes(options, cluster)}};
  LaunchOptions copy = options;
  for (const Flag& flag : launch_flags(copy))
    if (flag.show && !flag.of_node) terms.emplace_back(flag.name(), show(flag));
  if (job_text.empty()) terms.emplace_back("the program", options.program);
  terms.emplace_back(kArguments, quote_words(options.arguments));
  add_values(read_json(job_text).root, "", terms);
  return terms;
}

namespace {

using Words = std::vector<std::string>;

// Another node may have quoted the words.
template <typename Redact>
std::string without_secrets(const std::string& name, const std::string& words, Redact redact_words) {
  try {
    return quote_words(redact_words(split_words(name, words)));
  } catch (const Error&) {
    return "words that cannot be read";
  }
}

Words redact_settings(Words words) {
  for (std::string& word : words) word = redact_setting(word);
  return words;
}

}  // namespace

std::string shown_term(const std::string& name, const std::string& value) {
  constexpr std::string_view kVariable = "env.";
  if (name == kArguments) return without_secrets(name, value, redact_variables);
  if (sets_variables(name)) return without_secrets(name, value, redact_settings);
  if (!name.starts_with(kVariable) || !name.ends_with(kOfJob)) return value;
  return redact(name.substr(kVariable.size(), name.size() - kVariable.size() - kOfJob.size()), value);
}

}  // namespace fleetrun::launch
