#include "launch/host/host_facts.h"

#include <ifaddrs.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/system/socket_address.h"

namespace fleetrun::launch {
namespace {

void probe_addresses(HostFacts& host) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    const auto address = one->ifa_addr == nullptr ? std::nullopt : SocketAddress::from(*one->ifa_addr);
    if (!address || address->is_link_local()) continue;  // that means another host on each link
    const std::string text = address->endpoint().host;
    host.addresses.push_back(text);
    host.interfaces[text] = one->ifa_name;
  }
}

std::string probe_name() {
  char name[256] = "";  // longer than HOST_NAME_MAX
  ::gethostname(name, sizeof name - 1);
  return name;
}

bool is_gpu_file(const std::string& name) {
  constexpr std::string_view kPrefix = "nvidia";
  return name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
         std::all_of(name.begin() + kPrefix.size(), name.end(),
                     [](unsigned char letter) { return std::isdigit(letter) != 0; });
}

int count_gpus(const std::string& devices) {
  std::error_code problem;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(devices, problem))
    count += is_gpu_file(entry.path().filename()) ? 1 : 0;
  return count;
}

int count_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return 1;
  return std::max(1, CPU_COUNT(&mask));
}

// In the folder of our libraries, in a build tree or wherever the installation was moved to.
bool has_cuda_plugin() {
  std::error_code problem;
  const auto prefix = std::filesystem::read_symlink("/proc/self/exe", problem).parent_path().parent_path();
  const auto lies_in = [&](const char* folder) {
    return std::filesystem::exists(prefix / folder / "libfleetrun_cuda.so", problem);
  };
  return lies_in("lib") || lies_in(FLEETRUN_LIBRARY_FOLDER);
}

}  // namespace

std::string interface_of(const HostFacts& host, const std::string& address) {
  const auto found = host.interfaces.find(address.starts_with("127.") ? "127.0.0.1" : address);
  return found == host.interfaces.end() ? "" : found->second;
}

HostFacts probe_host(const std::string& root) {
  HostFacts host = {.name = probe_name(),
                    .gpus = count_gpus(root + "/dev"),
                    .cores = count_cores(),
                    .cuda_plugin = has_cuda_plugin()};
  probe_addresses(host);
  return host;
}

}  // namespace fleetrun::launch
