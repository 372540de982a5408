#include "launch/doctor/answer_probe.h"

#include <chrono>

#include "base/json/json_reader.h"
#include "launch/doctor/cpu_speed.h"
#include "launch/doctor/probe_links.h"
#include "launch/nodes/try_to_connect.h"

namespace fleetrun::launch {
namespace {

constexpr auto kReachTime =
    std::chrono::milliseconds(2600);  // twice as long as a SYN that is lost once needs
constexpr auto kTransferTime = std::chrono::milliseconds(250);
constexpr auto kCpuTime = std::chrono::milliseconds(250);

Endpoint read_endpoint(const JsonValue& value) {
  const JsonValue* const host = value.find("host", JsonValue::Kind::text);
  const JsonValue* const port = value.find("port", JsonValue::Kind::integer);
  if (host == nullptr || port == nullptr) return {};
  return {host->text, static_cast<std::uint16_t>(port->integer)};
}

JsonValue answer_reach(const JsonValue& question) {
  std::vector<Endpoint> endpoints;
  if (const JsonValue* const to = question.find("to", JsonValue::Kind::list))
    for (const JsonValue& one : to->items) endpoints.push_back(read_endpoint(one));
  return JsonValue::object({{"problems", try_to_connect(endpoints, kReachTime)}});
}

JsonValue answer_link(const JsonValue& question) {
  const JsonValue* const to = question.find("to", JsonValue::Kind::object);
  return to_value(measure_link(to == nullptr ? Endpoint() : read_endpoint(*to), kTransferTime));
}

JsonValue answer_cpu() {
  const CpuSpeed speed = measure_cpu(kCpuTime);
  return JsonValue::object({{"gflops", speed.gflops}, {"share", speed.share}, {"others", speed.others}});
}

JsonValue answer_clock() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return JsonValue::object({{"now", std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()}});
}

DoctorsWord read_word(const JsonValue& question) {
  DoctorsWord word;
  if (const JsonValue* const code = question.find("code", JsonValue::Kind::integer))
    word.code = static_cast<int>(code->integer);
  if (const JsonValue* const lines = question.find("lines", JsonValue::Kind::list))
    for (const JsonValue& line : lines->items) word.lines.push_back(line.text);
  return word;
}

}  // namespace

JsonValue to_value(const Endpoint& endpoint) {
  return JsonValue::object({{"host", endpoint.host}, {"port", endpoint.port}});
}

std::string answer_probe(const std::string& request, const NodeFacts& own, std::optional<DoctorsWord>& word) {
  const JsonValue question = read_json(request).root;
  const JsonValue* const probe = question.find("probe", JsonValue::Kind::text);
  const std::string name = probe == nullptr ? "" : probe->text;
  if (name == "facts") return to_json(to_value(own));
  if (name == "reach") return to_json(answer_reach(question));
  if (name == "link") return to_json(answer_link(question));
  if (name == "cpu") return to_json(answer_cpu());
  if (name == "clock") return to_json(answer_clock());
  if (name == "end") word = read_word(question);
  return to_json(JsonValue::object());
}

}  // namespace fleetrun::launch
