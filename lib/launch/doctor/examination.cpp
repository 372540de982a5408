#include "launch/doctor/examination.h"

#include <initializer_list>

namespace fleetrun::launch {
namespace {

using Kind = JsonValue::Kind;

// The members of an object that another node sent; anything may be missing.
struct Members {
  const JsonValue& object;

  std::string text(const char* name) const {
    const JsonValue* const value = object.find(name, Kind::text);
    return value == nullptr ? "" : value->text;
  }
  double real(const char* name) const {
    const JsonMember* const member = object.find(name);
    return member == nullptr ? 0 : member->value.number;
  }
  std::int64_t whole(const char* name) const {
    const JsonValue* const value = object.find(name, Kind::integer);
    return value == nullptr ? 0 : value->integer;
  }
  int small(const char* name) const { return static_cast<int>(whole(name)); }
  bool yes(const char* name) const {
    const JsonValue* const value = object.find(name, Kind::boolean);
    return value != nullptr && value->boolean;
  }
  std::vector<JsonValue> list(const char* name) const {
    const JsonValue* const value = object.find(name, Kind::list);
    return value == nullptr ? std::vector<JsonValue>() : value->items;
  }
  std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> found;
    for (const JsonValue& item : list(name)) found.push_back(item.text);
    return found;
  }
};

JsonValue as_list(const std::vector<FolderFacts>& folders) {
  JsonValue list = JsonValue::list({});
  for (const FolderFacts& folder : folders)
    list.items.push_back(JsonValue::object({{"purpose", folder.purpose},
                                            {"path", folder.path},
                                            {"free_bytes", folder.free_bytes},
                                            {"problem", folder.problem}}));
  return list;
}

JsonValue as_list(const std::vector<TakenPort>& taken) {
  JsonValue list = JsonValue::list({});
  for (const TakenPort& port : taken)
    list.items.push_back(
        JsonValue::object({{"port", port.port}, {"required", port.required}, {"owner", port.owner}}));
  return list;
}

JsonValue as_list(const Terms& terms) {
  JsonValue list = JsonValue::list({});
  for (const auto& [name, value] : terms)
    list.items.push_back(JsonValue::object({{"name", name}, {"value", value}}));
  return list;
}

void read_lists(const Members& members, NodeFacts& facts) {
  for (const JsonValue& item : members.list("terms")) {
    const Members one{item};
    facts.terms.emplace_back(one.text("name"), one.text("value"));
  }
  for (const JsonValue& item : members.list("folders")) {
    const Members one{item};
    facts.folders.push_back(
        {one.text("purpose"), one.text("path"), one.whole("free_bytes"), one.text("problem")});
  }
  for (const JsonValue& item : members.list("taken_ports")) {
    const Members one{item};
    facts.taken.push_back({one.small("port"), one.yes("required"), one.text("owner")});
  }
}

}  // namespace

JsonValue to_value(const NodeFacts& facts) {
  return JsonValue::object({{"host", facts.host},
                            {"version", facts.version},
                            {"binary", facts.binary},
                            {"terms", as_list(facts.terms)},
                            {"data", facts.data},
                            {"job_problem", facts.job_problem},
                            {"folders", as_list(facts.folders)},
                            {"taken_ports", as_list(facts.taken)},
                            {"shm_free", facts.shm_free},
                            {"memory_free", facts.memory_free},
                            {"memory_total", facts.memory_total},
                            {"open_files", facts.open_files},
                            {"locked_bytes", facts.locked_bytes},
                            {"ranks", facts.ranks},
                            {"cores", facts.cores},
                            {"cpu_limit", facts.cpu_limit},
                            {"gpus", facts.gpus},
                            {"gpu_problems", facts.gpu_problems},
                            {"infiniband_ports", facts.infiniband_ports},
                            {"infiniband_active", facts.infiniband_active},
                            {"nccl", facts.nccl},
                            {"probe_host", facts.probe.host},
                            {"probe_port", facts.probe.port}});
}

NodeFacts read_node_facts(const JsonValue& value) {
  const Members members{value};
  NodeFacts facts = {
      .host = members.text("host"),
      .version = members.text("version"),
      .binary = members.text("binary"),
      .terms = {},
      .data = members.text("data"),
      .job_problem = members.text("job_problem"),
      .folders = {},
      .taken = {},
      .shm_free = members.whole("shm_free"),
      .memory_free = members.whole("memory_free"),
      .memory_total = members.whole("memory_total"),
      .open_files = members.whole("open_files"),
      .locked_bytes = members.whole("locked_bytes"),
      .ranks = members.small("ranks"),
      .cores = members.small("cores"),
      .cpu_limit = members.real("cpu_limit"),
      .gpus = members.texts("gpus"),
      .gpu_problems = members.texts("gpu_problems"),
      .infiniband_ports = members.small("infiniband_ports"),
      .infiniband_active = members.small("infiniband_active"),
      .nccl = members.texts("nccl"),
      .probe = {members.text("probe_host"), static_cast<std::uint16_t>(members.whole("probe_port"))}};
  read_lists(members, facts);
  return facts;
}

JsonValue to_value(const LinkFacts& link) {
  return JsonValue::object({{"from", link.from},
                            {"to", link.to},
                            {"latency", link.latency},
                            {"bytes_per_s", link.bytes_per_s},
                            {"segments", link.segments},
                            {"retransmitted", link.retransmitted},
                            {"mtu", link.mtu},
                            {"problem", link.problem}});
}

LinkFacts read_link_facts(const JsonValue& value) {
  const Members members{value};
  return {.from = members.small("from"),
          .to = members.small("to"),
          .latency = members.real("latency"),
          .bytes_per_s = members.real("bytes_per_s"),
          .segments = members.whole("segments"),
          .retransmitted = members.whole("retransmitted"),
          .mtu = members.small("mtu"),
          .problem = members.text("problem")};
}

}  // namespace fleetrun::launch
