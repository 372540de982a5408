#include "launch/plan/world_lists.h"

#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launch/host/limits.h"

namespace fleetrun::launch {
namespace {

constexpr const char* kEndpoints = "PADDLE_TRAINER_ENDPOINTS";
constexpr const char* kDevices = "PADDLE_WORLD_DEVICE_IDS";
constexpr const char* kEndpointsFile = "FLEETRUN_TRAINER_ENDPOINTS_FILE";

std::string list_endpoints(const Endpoints& endpoints) {
  std::string text;
  for (const Endpoint& endpoint : endpoints.ranks) {
    if (!text.empty()) text += ',';
    text += endpoint.describe();
  }
  return text;
}

std::string list_devices(const ClusterSpec& cluster) {
  std::string text;
  const auto add = [&](const std::vector<std::vector<int>>& ranks) {
    for (const std::vector<int>& ids : ranks) {
      if (!text.empty()) text += ',';
      for (std::size_t i = 0; i < ids.size(); ++i) text += (i == 0 ? "" : ":") + std::to_string(ids[i]);
    }
  };
  if (cluster.nodes.empty()) add(cluster.device_ids);
  for (const NodeSpec& node : cluster.nodes) add(node.device_ids);
  return text;
}

}  // namespace

WorldLists list_world(const ClusterSpec& cluster, const Endpoints& endpoints) {
  return {list_endpoints(endpoints), list_devices(cluster)};
}

Variables write_world_lists(const WorldLists& lists, const std::string& endpoints_file,
                            Environment& environment) {
  Variables left_out;
  for (const auto& [name, value] :
       {std::pair(kEndpoints, &lists.endpoints), std::pair(kDevices, &lists.devices)}) {
    if (bytes_of_variable(name, *value) <= kLongestString) {
      environment.set(name, *value);
    } else {
      environment.erase(name);
      left_out[name] = *value;
    }
  }
  environment.erase(kEndpointsFile);
  if (left_out.contains(kEndpoints)) environment.set(kEndpointsFile, endpoints_file);
  return left_out;
}

std::string describe_left_out(const Variables& left_out, const std::string& endpoints_file) {
  if (left_out.empty()) return "";
  std::vector<std::string> texts;
  for (const auto& [name, value] : left_out)
    texts.push_back(fmt::format("{} ({} bytes)", name, bytes_of_variable(name, value)));
  return fmt::format("the workers do not get {}: Linux passes on {} bytes at most; the endpoints are in {}{}",
                     fmt::join(texts, " and "), kLongestString, endpoints_file,
                     left_out.contains(kEndpoints) ? fmt::format(", which {} names", kEndpointsFile) : "");
}

}  // namespace fleetrun::launch
