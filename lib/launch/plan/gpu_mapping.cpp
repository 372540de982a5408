#include "launch/plan/gpu_mapping.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/text/split_list.h"

namespace fleetrun::launch {
namespace {

Error bad_gpus(const std::string& message) { return Error(ErrorKind::usage, message); }

// The ids 0,1,2,3 for "0-3"; "": it is not such a range. "MIG-..." and "GPU-..." are ids.
std::string ids_of_range(const std::string& item) {
  constexpr int kMost = 1024;  // ids to list
  int first = -1, last = -1;
  const char* const end = item.data() + item.size();
  const auto dash = std::from_chars(item.data(), end, first);
  if (dash.ec != std::errc{} || dash.ptr == end || *dash.ptr != '-') return "";
  const auto stop = std::from_chars(dash.ptr + 1, end, last);
  if (stop.ec != std::errc{} || stop.ptr != end || first < 0 || last < first || last > kMost) return "";
  std::vector<int> ids(static_cast<std::size_t>(last - first + 1));
  std::iota(ids.begin(), ids.end(), first);
  return fmt::format("{}", fmt::join(ids, ","));
}

void check_no_range(const std::vector<std::string>& ids, const std::string& flag) {
  for (const std::string& id : ids)
    if (const std::string list = ids_of_range(id); !list.empty())
      throw bad_gpus(fmt::format("{} lists {}, wanted {}", flag, id, list));
}

void check_distinct(const std::vector<std::string>& ids, const std::string& flag) {
  std::set<std::string> seen;
  for (const std::string& id : ids) {
    if (id.empty()) throw bad_gpus(flag + " has an empty item, must be ids like 0,1,2,3");
    if (!seen.insert(id).second) throw bad_gpus(fmt::format("{} lists {} twice", flag, id));
  }
}

void check_present(const std::vector<std::string>& ids, int present, const std::string& flag) {
  for (const std::string& id : ids) {
    int number = -1;
    const auto [stop, problem] = std::from_chars(id.data(), id.data() + id.size(), number);
    if (problem != std::errc{} || stop != id.data() + id.size()) continue;  // a UUID: the driver's business
    if (number < 0 || number >= present)
      throw bad_gpus(fmt::format("{} lists {}, this machine has the GPUs 0 to {}", flag, id, present - 1));
  }
}

void check_visible(const std::vector<std::string>& ids, const std::vector<std::string>& visible,
                   const std::string& flag) {
  for (const std::string& id : ids)
    if (std::find(visible.begin(), visible.end(), id) == visible.end())
      throw bad_gpus(
          fmt::format("{} lists {}, but CUDA_VISIBLE_DEVICES is {}", flag, id, fmt::join(visible, ",")));
}

std::vector<std::string> numbers_below(int count) {
  std::vector<std::string> ids;
  ids.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) ids.push_back(std::to_string(i));
  return ids;
}

}  // namespace

int count_cpu_slots(const std::string& gpus, const DeviceFlags& written) {
  const std::vector<std::string> ids = split_list(gpus);
  check_distinct(ids, written.gpus);
  for (const std::string& id : ids)
    if (!std::all_of(id.begin(), id.end(), [](char letter) { return letter >= '0' && letter <= '9'; }))
      throw bad_gpus(
          fmt::format("{} lists {}, with --device=cpu it must be ids like 0,1,2,3", written.gpus, id));
  return static_cast<int>(ids.size());
}

std::vector<std::vector<int>> deal_out(int items, int workers, const DeviceFlags& written) {
  if (items % workers != 0)
    throw bad_gpus(
        fmt::format("{} is {}, which does not divide the {} devices", written.workers, workers, items));
  std::vector<std::vector<int>> shares(static_cast<std::size_t>(workers));
  for (int item = 0; item < items; ++item)
    shares[static_cast<std::size_t>(item / (items / workers))].push_back(item);
  return shares;
}

GpuMapping map_gpus(const GpuRequest& request) {
  GpuMapping mapping;
  std::vector<std::string> inherited;
  if (request.visible && !request.visible->empty()) inherited = split_list(*request.visible);
  if (request.gpus) {
    mapping.visible = split_list(*request.gpus);
    check_distinct(mapping.visible, request.written.gpus);
    check_no_range(mapping.visible, request.written.gpus);
    if (inherited.empty())
      check_present(mapping.visible, request.present, request.written.gpus);
    else
      check_visible(mapping.visible, inherited, request.written.gpus);
  } else {
    mapping.visible = inherited.empty() ? numbers_below(request.present) : inherited;
  }
  const int count = static_cast<int>(mapping.visible.size());
  mapping.of_worker = deal_out(count, request.workers.value_or(count), request.written);
  if (request.gpus && !inherited.empty())
    mapping.note = fmt::format(
        "Change selected_gpus into reletive values. --ips:{} will change into relative_ips:[{}] according to "
        "your CUDA_VISIBLE_DEVICES:['{}']",
        fmt::join(mapping.visible, ","), fmt::join(numbers_below(count), ", "), fmt::join(inherited, "', '"));
  return mapping;
}

}  // namespace fleetrun::launch
