#include "launch/starters/agent_order.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "launch/cli/flags/flag_values.h"
#include "launch/schedulers/read_values.h"

namespace fleetrun::launch {
namespace {

using Kind = JsonValue::Kind;

constexpr std::array kSchedulers = {Scheduler::host_list, Scheduler::slurm, Scheduler::lsf, Scheduler::pbs};
constexpr std::array kStarters = {StartBy::srun, StartBy::pbsdsh, StartBy::blaunch, StartBy::mpirun,
                                  StartBy::ssh};
constexpr const char* kFirstHost = "the fleetrun on the first node";

// Of a login session, of a machine, or of the shell that started us.
const std::set<std::string> kOfThisHost = {"HOME",
                                           "USER",
                                           "LOGNAME",
                                           "SHELL",
                                           "MAIL",
                                           "HOSTNAME",
                                           "HOST",
                                           "PWD",
                                           "OLDPWD",
                                           "SHLVL",
                                           "_",
                                           "TERM",
                                           "DISPLAY",
                                           "TMPDIR",
                                           "WINDOWID",
                                           "TTY",
                                           "TMUX",
                                           "STY",
                                           "XAUTHORITY",
                                           "WAYLAND_DISPLAY",
                                           "DBUS_SESSION_BUS_ADDRESS",
                                           "INVOCATION_ID",
                                           "JOURNAL_STREAM"};

Error bad_order(const std::string& what) {
  return Error(ErrorKind::protocol,
               fmt::format("what {} sent to start this node makes no sense: {}", kFirstHost, what),
               "all nodes need the same version of fleetrun");
}

// Paths and variables may have any bytes, and JSON has characters: the byte 0xE9 goes as the character U+00E9.
std::string as_characters(std::string_view bytes) {
  std::string text;
  for (const char letter : bytes) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < 0x80) {
      text += letter;
      continue;
    }
    text += static_cast<char>(0xC0 | (byte >> 6));
    text += static_cast<char>(0x80 | (byte & 0x3F));
  }
  return text;
}

std::string as_bytes(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto letter = static_cast<unsigned char>(text[i]);
    if (letter < 0x80) {
      bytes += text[i];
      continue;
    }
    if (letter > 0xC3) throw bad_order("it has characters above U+00FF");
    bytes += static_cast<char>((letter << 6) | (text[++i] & 0x3F));  // JSON is valid UTF-8, so a byte follows
  }
  return bytes;
}

std::string hex_of(const RunKey& key) {
  std::string text;
  for (const std::uint8_t byte : key.bytes) text += fmt::format("{:02x}", byte);
  return text;
}

RunKey key_of_hex(const std::string& text) {
  RunKey key;
  if (text.size() != 2 * RunKey::kBytes) throw bad_order("its key is too short or too long");
  for (std::size_t i = 0; i < RunKey::kBytes; ++i) {
    const char* begin = text.data() + 2 * i;
    const auto [stop, problem] = std::from_chars(begin, begin + 2, key.bytes[i], 16);
    if (problem != std::errc{} || stop != begin + 2) throw bad_order("its key is not hexadecimal");
  }
  return key;
}

const JsonValue& member(const JsonValue& object, const char* name, Kind kind) {
  const JsonValue* value = object.find(name, kind);
  if (value == nullptr) throw bad_order(fmt::format("\"{}\" is missing", name));
  return *value;
}

std::string text_of(const JsonValue& object, const char* name) {
  return member(object, name, Kind::text).text;
}

std::optional<int> count_of(const JsonValue& object, const char* name) {
  const JsonValue* value = object.find(name, Kind::integer);
  if (value == nullptr) return std::nullopt;
  if (value->integer < 0 || value->integer > kMostNodes) throw bad_order(fmt::format("\"{}\"", name));
  return static_cast<int>(value->integer);
}

template <typename Value, typename Values, typename Name>
Value value_called(const std::string& text, const Values& values, const Name& name) {
  const auto found =
      std::find_if(values.begin(), values.end(), [&](Value value) { return name(value) == text; });
  if (found == values.end()) throw bad_order(fmt::format("it names {}", shortened(text)));
  return *found;
}

Allocation read_allocation(const JsonValue& object) {
  Allocation allocation = {
      .scheduler = value_called<Scheduler>(text_of(object, "scheduler"), kSchedulers, word_of),
      .found_in = text_of(object, "found_in")};
  for (const JsonValue& node : member(object, "nodes", Kind::list).items) {
    allocation.nodes.push_back({text_of(node, "host"), count_of(node, "slots")});
    check_host(kFirstHost, allocation.nodes.back().host);
  }
  allocation.node_count = static_cast<int>(allocation.nodes.size());
  allocation.started_on_every_node = true;
  allocation.start_by = value_called<StartBy>(text_of(object, "start_by"), kStarters,
                                              [](StartBy starter) { return name_of(starter); });
  allocation.job_id = text_of(object, "job_id");
  allocation.job_id_source = text_of(object, "job_id_source");
  return allocation;
}

JsonValue describe(const Allocation& allocation) {
  JsonValue nodes = JsonValue::list({});
  for (const NodeSlots& node : allocation.nodes)
    nodes.items.push_back(JsonValue::object({{"host", node.host}, {"slots", node.slots}}));
  return JsonValue::object({{"scheduler", word_of(allocation.scheduler)},
                            {"found_in", allocation.found_in},
                            {"nodes", nodes},
                            {"start_by", name_of(allocation.start_by)},
                            {"job_id", allocation.job_id},
                            {"job_id_source", allocation.job_id_source}});
}

std::optional<int> node_called(const Allocation& allocation, const std::string& host) {
  const auto short_name = [](const std::string& name) { return name.substr(0, name.find('.')); };
  for (std::size_t node = 0; node < allocation.nodes.size(); ++node)
    if (allocation.nodes[node].host == host) return static_cast<int>(node);
  for (std::size_t node = 0; node < allocation.nodes.size(); ++node)
    if (short_name(allocation.nodes[node].host) == short_name(host)) return static_cast<int>(node);
  return std::nullopt;
}

}  // namespace

std::string to_text(const AgentOrder& order) {
  std::vector<std::string> environment;
  for (const std::string& variable : order.environment) environment.push_back(as_characters(variable));
  const JsonValue object = JsonValue::object({{"key", hex_of(order.key)},
                                              {"folder", as_characters(order.folder)},
                                              {"environment", environment},
                                              {"torchrun", order.called_as == CalledAs::torchrun},
                                              {"hosts", order.hosts},
                                              {"allocation", describe(order.allocation)},
                                              {"node", order.node}});
  return to_json(object) + "\n";
}

AgentOrder parse_agent_order(std::string_view line) {
  const JsonDocument document = read_json(line);
  if (!document.complete || !document.problems.empty()) throw bad_order("it is not JSON");
  const JsonValue& object = document.root;
  AgentOrder order = {.key = key_of_hex(text_of(object, "key")),
                      .folder = as_bytes(text_of(object, "folder")),
                      .environment = {},
                      .called_as = member(object, "torchrun", Kind::boolean).boolean ? CalledAs::torchrun
                                                                                     : CalledAs::fleetrun,
                      .hosts = text_of(object, "hosts"),
                      .allocation = read_allocation(member(object, "allocation", Kind::object)),
                      .node = count_of(object, "node")};
  for (const JsonValue& variable : member(object, "environment", Kind::list).items) {
    if (!variable.is(Kind::text) || variable.text.find('=') == std::string::npos)
      throw bad_order("\"environment\" lists something else than variables");
    order.environment.push_back(as_bytes(variable.text));
  }
  if (order.node && *order.node >= order.allocation.node_count) throw bad_order("there is no such node");
  return order;
}

std::vector<std::string> forwarded_variables(const Environment& environment) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : environment.variables()) {
    const bool of_session = name.starts_with("SSH_") || name.starts_with("XDG_");
    if (!of_session && kOfThisHost.count(name) == 0) lines.push_back(name + "=" + value);
  }
  return lines;
}

bool chooses_devices(const std::string& name) {
  static const std::set<std::string> kNames = {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",
                                               "GPU_DEVICE_ORDINAL", "HIP_VISIBLE_DEVICES",
                                               "ROCR_VISIBLE_DEVICES"};
  return kNames.contains(name);
}

std::optional<int> find_agent_node(const AgentOrder& order, const Environment& environment,
                                   const std::string& host) {
  if (order.node) return order.node;
  const Allocation& allocation = order.allocation;
  if (allocation.start_by == StartBy::srun)
    return node_called(allocation, environment.get_or("SLURMD_NODENAME", host));
  if (allocation.start_by == StartBy::mpirun)
    if (const auto name = first_set(environment, {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})) {
      const int node = *number_in(environment, *name) + 1;  // task 0 is on the second node
      if (node < allocation.node_count) return node;
    }
  return node_called(allocation, host);
}

}  // namespace fleetrun::launch
