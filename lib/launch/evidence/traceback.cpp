#include "launch/evidence/traceback.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <re2/re2.h>

#include "launch/evidence/children.h"

namespace fleetrun::launch {
namespace {

constexpr std::string_view kHeader = "Traceback (most recent call last)";
constexpr std::string_view kGroup = "+ Exception Group ";  // in front of the header
constexpr std::string_view kFrame = "  File \"";
constexpr std::string_view kDirectCause =
    "The above exception was the direct cause of the following exception";
constexpr std::string_view kContext = "During handling of the above exception, another exception occurred";
constexpr std::size_t kForeignLines = 3;  // of other threads, between the lines of a traceback
constexpr std::size_t kShownParts = 3;    // of a group
constexpr std::size_t kBlankLines = 2;    // at the start of a message

bool is_upper(char letter) { return letter >= 'A' && letter <= 'Z'; }
bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_indented(std::string_view text) {
  return text.empty() || text.front() == ' ' || text.front() == '\t';
}

// "torch.cuda.OutOfMemoryError"; of a class in a function "train.load.<locals>.Überlauf".
bool is_class_name(std::string_view text) {
  static const re2::RE2 pattern(R"(((<locals>|<lambda>|[\pL_][\pL\pM\pN_]*)\.)*[\pL_][\pL\pM\pN_]*)");
  return re2::RE2::FullMatch(re2::StringPiece(text.data(), text.size()), pattern);
}

// "ValueError: bad batch", "torch.cuda.OutOfMemoryError: ...", "KeyboardInterrupt": a name with dots, alone or with a text. After a header
// it is any name, such as socket.timeout. Without one it has to look like an exception: "Node: 'conv1'" is a line of TensorFlow's messages,
// which contain frames.
bool is_exception(std::string_view text, bool after_header) {
  constexpr std::array<std::string_view, 6> kLevels = {"DEBUG", "INFO",     "WARNING",
                                                       "ERROR", "CRITICAL", "FATAL"};
  const std::string_view name = text.substr(0, text.find(": "));
  const std::string_view bare = name.ends_with(':') ? name.substr(0, name.size() - 1) : name;
  if (!is_class_name(bare) || std::find(kLevels.begin(), kLevels.end(), bare) != kLevels.end()) return false;
  const auto dot = bare.rfind('.');
  if (after_header || is_bare_exception(bare)) return true;
  return bare == "StopIteration" || bare == "SystemExit" ||
         (dot != std::string_view::npos && is_upper(bare[dot + 1]));
}

// What a process says when another one ended first; whose own words say more.
bool is_about_a_peer(std::string_view what) {
  constexpr std::array<std::string_view, 3> kSigns = {"Connection closed by peer", "Connection reset by peer",
                                                      "Broken pipe"};
  return std::any_of(kSigns.begin(), kSigns.end(),
                     [&](std::string_view sign) { return what.find(sign) != std::string_view::npos; });
}

// "train.py:40, in <module>". A traceback begins with the frame that caught the exception, or at the top level when nobody caught it.
bool is_top(std::string_view place) {
  return place.ends_with(", in <module>") || place.ends_with(", in _run_module_as_main");
}

void add_frame(Finding& found, std::string place) {
  if (found.cause.place.empty()) {
    found.from_top = is_top(place);
    found.in_thread = place.ends_with(", in _bootstrap_inner");  // of threading.py
    found.file = place.substr(0, place.find(','));
    found.file.resize(std::min(found.file.size(), found.file.rfind(':')));
  }
  if (found.writer == Writer::program) found.writer = writer_in_frame(place);
  found.cause.place = std::move(place);
}

// In front of the first frame; of a traceback without frames in front of its header.
std::string prefix_of(const std::vector<std::string>& lines, std::size_t first) {
  for (std::size_t i = first; i < std::min(lines.size(), first + 2 + kForeignLines); ++i)
    if (const auto place = lines[i].find(kFrame); place != std::string::npos)
      return lines[i].substr(0, place);
  const auto place = lines[first].find(kHeader);
  return place == std::string::npos ? "" : lines[first].substr(0, place);
}

// Of the paragraphs of indented text from there on. Frames, bars and rows of numbers belong to something else.
std::size_t end_of_indented(const std::vector<std::string>& lines, std::size_t line,
                            const std::string& prefix) {
  std::size_t end = line;
  for (; line < lines.size() && line <= end + 1; ++line) {
    const std::string_view text = without_prefix(lines[line], prefix), words = trimmed(text);
    if (words.empty()) continue;
    const bool is_text = words.find("%|") == std::string_view::npos && words.find_first_of("0123456789") != 0;
    if (!is_indented(text) || !is_text || !place_in_frame(text).empty()) return end;
    end = line + 1;
  }
  return end;
}

// "ImportError: " of a message that begins with a line end: what it says stands in the first line below that has a text.
void complete_message(Finding& found, const std::vector<std::string>& lines) {
  const std::string_view what = found.cause.what;
  if (!what.ends_with(':') || !is_class_name(what.substr(0, what.size() - 1))) return;
  for (std::size_t i = found.end; i < std::min(lines.size(), found.end + kBlankLines + 1); ++i) {
    const std::string_view line = trimmed(without_prefix(lines[i], found.prefix));
    if (line.empty()) continue;
    const bool is_text =
        line.find_first_not_of("=-*#~_+. ") != std::string_view::npos;  // and not a line of "====="
    if (!is_text || line.find(kHeader) != std::string_view::npos ||
        line.find(kContext) != std::string_view::npos || line.find(kDirectCause) != std::string_view::npos)
      return;
    found.cause.what.append(" ").append(line);
    found.end = end_of_indented(lines, i + 1, found.prefix);
    return;
  }
}

Finding read_plain(const std::vector<std::string>& lines, std::size_t first, bool has_header) {
  Finding found = {.first = first, .end = first + 1};
  found.has_header = has_header;
  const std::string prefix = found.prefix = prefix_of(lines, first);
  std::size_t foreign = 0;
  for (std::size_t i = has_header ? first + 1 : first; i < lines.size(); ++i) {
    const std::string_view line = without_prefix(lines[i], prefix);
    const bool quotes = !is_indented(line) && is_exception(line, has_header);   // what a child has printed
    if (line.find(kHeader) != std::string_view::npos && !quotes) return found;  // another one begins
    if (is_indented(line)) {
      if (std::string place = place_in_frame(line); !place.empty()) add_frame(found, std::move(place));
    } else if (is_exception(line, has_header)) {
      found.cause.what = trimmed(line);
      found.from_top &= has_header;  // else the top is out of sight, or these are the frames of a warning
    } else if (++foreign > kForeignLines) {
      return found;
    }
    found.end = i + 1;
    if (found.cause.what.empty()) continue;
    complete_message(found, lines);
    return found;
  }
  return found;
}

// "  | ValueError: a" and "    +---------------- 2 ----------------": the text after the margin, and how deep the margin is.
struct GroupLine {
  std::size_t depth = 0;
  std::string_view text;
};
std::optional<GroupLine> read_group_line(std::string_view line) {
  const auto margin = line.find_first_not_of(' ');
  if (margin == std::string_view::npos || (line[margin] != '|' && line[margin] != '+')) return std::nullopt;
  line.remove_prefix(margin + 1);
  if (line.starts_with(' ')) line.remove_prefix(1);
  return GroupLine{margin, line};
}

bool is_group(std::string_view what) { return what.find(" sub-exception") != std::string_view::npos; }

Finding read_group(const std::vector<std::string>& lines, std::size_t first, const std::string& prefix) {
  Finding found = {.first = first, .end = first + 1};
  found.prefix = prefix;
  std::vector<std::string> parts;
  std::optional<std::size_t> outer;
  for (std::size_t i = first + 1; i < lines.size(); ++i) {
    const auto line = read_group_line(without_prefix(lines[i], prefix));
    if (!line) break;
    found.end = i + 1;
    if (!outer) outer = line->depth;
    std::string place = place_in_frame(line->text);
    if (line->depth == *outer && !place.empty()) add_frame(found, std::move(place));
    if (is_indented(line->text) || !is_exception(line->text, true)) continue;
    if (line->depth == *outer && found.cause.what.empty())
      found.cause.what = trimmed(line->text);
    else if (!is_group(line->text))
      parts.emplace_back(trimmed(line->text));
  }
  for (std::size_t i = 0; i < std::min(parts.size(), kShownParts); ++i)
    found.cause.what += (i == 0 ? ": " : "; ") + parts[i];
  if (parts.size() > kShownParts) found.cause.what += "; ...";
  return found;
}

// "│ /home/me/train.py:12 in main    │" between "╭─── Traceback (most recent call last) ───╮" and "╰────╯".
Finding read_rich(const std::vector<std::string>& lines, std::size_t first) {
  constexpr std::string_view kBar = "│", kCorner = "╰";
  Finding found = {.first = first, .end = first + 1};
  for (std::size_t i = first + 1; i < lines.size(); ++i) {
    std::string_view line = trimmed(lines[i]);
    found.end = i + 1;
    if (line.starts_with(kBar)) {
      line = trimmed(line.substr(kBar.size()));
      if (line.ends_with(kBar)) line = trimmed(line.substr(0, line.size() - kBar.size()));
      const auto in = line.find(" in ");
      const auto colon = line.rfind(':', in);
      if (in == std::string_view::npos || colon == std::string_view::npos) continue;
      if (is_number(line.substr(colon + 1, in - colon - 1)))
        add_frame(found, fmt::format("{}, {}", line.substr(0, in), line.substr(in + 1)));
    } else if (!line.starts_with(kCorner)) {
      if (is_exception(line, true)) found.cause.what = line;
      return found;
    }
  }
  return found;
}

std::optional<Finding> read_block(const std::vector<std::string>& lines, std::size_t at) {
  const std::string& line = lines[at];
  const auto header = line.find(kHeader);
  if (header == std::string::npos) {
    const auto frame = line.find(kFrame);
    const bool begins =
        frame != std::string::npos && !place_in_frame(std::string_view(line).substr(frame)).empty() &&
        (frame == 0 ||
         !trimmed(std::string_view(line).substr(0, frame)).empty());  // else a message quotes it
    return begins ? std::optional(read_plain(lines, at, false)) : std::nullopt;
  }
  if (line.find("╭") != std::string::npos) return read_rich(lines, at);
  const auto group = line.find(kGroup);
  if (group != std::string::npos && group < header)
    return read_group(lines, at, line.substr(0, line.substr(0, group).find_last_not_of(' ') + 1));
  return read_plain(lines, at, true);
}

// The lines in front of a traceback that are not empty, the nearest one first.
std::vector<std::string_view> lines_before(const std::vector<std::string>& lines, std::size_t first,
                                           std::size_t end_of_last) {
  std::vector<std::string_view> before;
  for (std::size_t i = first; i > end_of_last && before.size() < 2; --i)
    if (const auto line = trimmed(lines[i - 1]); !line.empty()) before.push_back(line);
  return before;
}

bool any_has(const std::vector<std::string_view>& lines, std::initializer_list<std::string_view> signs) {
  return std::any_of(lines.begin(), lines.end(), [&](std::string_view line) {
    return std::any_of(signs.begin(), signs.end(),
                       [&](std::string_view sign) { return line.find(sign) != std::string_view::npos; });
  });
}

void weigh(Finding& found, const std::vector<std::string_view>& before) {
  found.endings = kExit;
  if (found.cause.what.starts_with("KeyboardInterrupt")) found.endings |= kInterrupt;
  // Printed by Python or NumPy, the process lives on, or ends as it would have ended.
  if (found.cause.what.empty() || found.cause.what == "AttributeError: _ARRAY_API not found" ||
      any_has(before, {"Exception ignored ", "--- Logging error ---", "Error in atexit._run_exitfuncs"}))
    found.endings = 0;
  // The lines of the script may stand below the headline of a thread that writes at the same time.
  found.in_thread |=
      !found.from_top && any_has(before, {"Exception in thread ", "Task exception was never retrieved"});
  if (found.in_thread || is_about_a_peer(found.cause.what)) found.weight = Weight::clue;
  if (is_about_a_child(found.cause.what)) found.weight = Weight::echo;
  if (!before.empty()) found.child = child_in_headline(without_prefix(before.front(), found.prefix));
  if (any_has(before, {"Error executing job with overrides"}))
    found.from_top = true;  // of Hydra, which leaves out its own frames
}

// A chain of exceptions is one finding: the last one ended the process, the one before it says more.
void join(Finding& found, std::vector<Finding>& all, const std::vector<std::string_view>& before) {
  if (all.empty() || before.empty()) return;
  const bool direct = before.front().find(kDirectCause) != std::string_view::npos;
  if (!direct && before.front().find(kContext) == std::string_view::npos) return;
  const Finding& earlier = all.back();
  found.from_top |= earlier.from_top;
  if (!earlier.cause.what.empty())
    found.cause.from = (direct ? "raised from " : "raised while handling ") + describe(earlier.cause);
  if (!earlier.cause.what.empty()) found.cause.root = describe(earlier.cause);
  if (!earlier.cause.root.empty()) found.cause.root = earlier.cause.root;
  found.cause.chained = earlier.cause.chained + 1;
  found.child = earlier.child;
  found.cause.handled =
      direct || !earlier.cause.handled.empty() ? earlier.cause.handled : describe(earlier.cause);
  found.first = earlier.first;
  all.pop_back();
}

}  // namespace

bool is_bare_exception(std::string_view line) {
  const std::string_view name = line.substr(0, line.find(':'));
  constexpr std::array<std::string_view, 3> kEnds = {"Error", "Exception", "Interrupt"};
  return is_class_name(name) &&
         std::ranges::any_of(kEnds, [&](std::string_view end) { return name.ends_with(end); });
}

std::string_view child_in_headline(std::string_view line) {
  constexpr std::string_view kStart = "Process ";
  if (!line.starts_with(kStart) || !line.ends_with(':')) return "";
  return line.substr(kStart.size(), line.size() - kStart.size() - 1);
}

std::string place_in_frame(std::string_view line) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ";
  line = trimmed(line);
  const auto end = line.find(kLine);
  if (!line.starts_with(kFile) || end == std::string_view::npos) return "";
  const std::string_view path = line.substr(kFile.size(), end - kFile.size());
  const std::string_view rest = line.substr(end + kLine.size());
  const std::string_view number = rest.substr(0, rest.find(','));
  return is_number(number) ? fmt::format("{}:{}{}", path, number, rest.substr(number.size())) : "";
}

std::vector<Finding> find_tracebacks(const LogLines& log) {
  std::vector<Finding> all;
  for (std::size_t at = 0; at < log.lines.size();) {
    std::optional<Finding> found = read_block(log.lines, at);
    if (!found) {
      ++at;
      continue;
    }
    // A header alone begins a traceback that another one interrupts: the lines below it belong to that one.
    const bool is_interrupted = !all.empty() && all.back().cause.what.empty();
    const auto before = lines_before(log.lines, at,
                                     all.empty()      ? 0
                                     : is_interrupted ? all.back().first
                                                      : all.back().end);
    at = found->end;
    weigh(*found, before);
    join(*found, all, before);
    all.push_back(std::move(*found));
  }
  return all;
}

}  // namespace fleetrun::launch
