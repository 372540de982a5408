#include "launch/report/python_stacks.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text/name_ranks.h"

namespace fleetrun::launch {
namespace {

// Folders of libraries in whose functions a rank waits for the others.
constexpr std::array kWaitingLibraries = {
    "torch/distributed/", "paddle/distributed/", "paddle/base/dygraph/parallel", "horovod/", "mpi4py/",
    "cupyx/distributed/"};
constexpr std::size_t kMostPlaces = 4;  // that a line lists

using Lines = std::vector<std::string_view>;

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::optional<int> as_line_number(std::string_view text) {
  int number = 0;
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || stop == text.data()) return std::nullopt;
  return number;
}

// py-spy: "    load (train.py:7)"
std::optional<PythonFrame> frame_of_py_spy(std::string_view line) {
  const std::size_t open = line.find(" (", 4), colon = line.rfind(':');
  if (!line.starts_with("    ") || !line.ends_with(")") || open == std::string_view::npos ||
      colon == std::string_view::npos || colon < open)
    return std::nullopt;
  const auto number = as_line_number(line.substr(colon + 1));
  if (!number) return std::nullopt;
  return PythonFrame{std::string(line.substr(4, open - 4)),
                     std::string(line.substr(open + 2, colon - open - 2)), *number};
}

// faulthandler: "  File "/home/me/train.py", line 7 in load"
std::optional<PythonFrame> frame_of_faulthandler(std::string_view line) {
  constexpr std::string_view kStart = "  File \"", kLine = "\", line ", kIn = " in ";
  const std::size_t end = line.find(kLine), in = line.find(kIn, end);
  if (!line.starts_with(kStart) || end == std::string_view::npos || in == std::string_view::npos)
    return std::nullopt;
  const auto number = as_line_number(line.substr(end + kLine.size()));
  if (!number) return std::nullopt;
  return PythonFrame{std::string(line.substr(in + kIn.size())),
                     std::string(line.substr(kStart.size(), end - kStart.size())), *number};
}

std::vector<PythonFrame> frames_after(const Lines& lines, std::size_t header) {
  std::vector<PythonFrame> frames;
  for (std::size_t i = header + 1; i < lines.size(); ++i) {
    auto frame = frame_of_py_spy(lines[i]);
    if (!frame) frame = frame_of_faulthandler(lines[i]);
    if (!frame) break;
    frames.push_back(std::move(*frame));
  }
  return frames;
}

// py-spy names the main thread; faulthandler marks the one that got the signal, which is the main one.
bool is_of_main_thread(std::string_view line) {
  return (line.starts_with("Thread ") && line.ends_with("\"MainThread\"")) ||
         line.starts_with("Current thread ") || line.starts_with("Stack (most recent call first)");
}

bool is_in_waiting_library(const PythonFrame& frame) {
  return std::any_of(kWaitingLibraries.begin(), kWaitingLibraries.end(), [&](std::string_view folder) {
    const std::size_t at = frame.file.find(folder);
    return at == 0 || (at != std::string::npos && frame.file[at - 1] == '/');
  });
}

// What a rank does, so that ranks can be compared.
struct Place {
  bool waits = false;  // in a library, for the other ranks
  std::string words;   // "barrier (torch/distributed/distributed_c10d.py:2784), called in main (train.py:12)"

  auto operator<=>(const Place&) const = default;
};

Place place_of(const std::vector<PythonFrame>& frames) {
  const auto waiting = std::find_if(frames.begin(), frames.end(), is_in_waiting_library);
  if (waiting == frames.end()) return {false, frames.front().describe()};
  const auto caller = std::find_if_not(waiting, frames.end(), is_in_waiting_library);
  std::string words = waiting->describe();
  if (caller != frames.end()) words += ", called in " + caller->describe();
  return {true, words};
}

std::string list_places(const std::map<Place, std::vector<int>>& places, bool waiting_too) {
  std::vector<std::string> texts;
  for (const auto& [place, ranks] : places)
    if (!place.waits || waiting_too) texts.push_back(fmt::format("{} in {}", ranks_are(ranks), place.words));
  if (texts.size() > kMostPlaces) {
    texts.resize(kMostPlaces);
    texts.emplace_back("others elsewhere");
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace

std::string PythonFrame::describe() const {
  const std::size_t slash = file.rfind('/');
  const std::string name = slash == std::string::npos ? file : file.substr(slash + 1);
  return fmt::format("{} ({}:{})", function, name, line);
}

std::vector<PythonFrame> parse_python_stack(std::string_view text) {
  const Lines lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (is_of_main_thread(lines[i])) return frames_after(lines, i);
  return {};
}

std::string compare_python_stacks(const std::vector<PythonStack>& stacks) {
  std::map<Place, std::vector<int>> places;
  for (const PythonStack& stack : stacks)
    if (!stack.frames.empty()) places[place_of(stack.frames)].push_back(stack.rank);
  if (places.size() < 2) return "";
  const auto waiting =
      std::count_if(places.begin(), places.end(), [](const auto& place) { return place.first.waits; });
  const auto most = std::max_element(places.begin(), places.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  const bool all_of_one_kind = waiting == 0 || waiting == std::ssize(places);
  if (!all_of_one_kind) {
    const auto waits = std::prev(places.end());  // one of those that wait stands last
    return fmt::format("{}; the others wait in {}", list_places(places, false), waits->first.words);
  }
  std::map<Place, std::vector<int>> few = places;
  few.erase(most->first);
  const bool majority = std::none_of(
      few.begin(), few.end(), [&](const auto& place) { return place.second.size() == most->second.size(); });
  if (!majority) return list_places(places, true);
  return fmt::format("{}; the others in {}", list_places(few, true), most->first.words);
}

}  // namespace fleetrun::launch
