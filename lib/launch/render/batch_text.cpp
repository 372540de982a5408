#include "launch/render/batch_text.h"

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/printable.h"

namespace fleetrun::launch {
namespace {

constexpr std::string_view kOpen = "<<", kClose = ">>";

// The name in a line that has nothing else; "" for other lines.
std::string_view lone_name(std::string_view line) {
  if (!line.starts_with(kOpen) || !line.ends_with(kClose)) return {};
  const std::string_view name = line.substr(kOpen.size(), line.size() - kOpen.size() - kClose.size());
  return name.find(kOpen) == std::string_view::npos ? name : std::string_view();
}

const std::string& value_of(std::string_view name, const Values& values) {
  const auto found = values.find(name);
  if (found == values.end())
    throw Error(ErrorKind::internal, fmt::format("no value for <<{}>> of a batch file", name));
  return found->second;
}

std::string fill_line(std::string_view line, const Values& values) {
  std::string filled;
  for (auto open = line.find(kOpen); open != std::string_view::npos; open = line.find(kOpen)) {
    const auto close = line.find(kClose, open);
    if (close == std::string_view::npos) break;
    filled += line.substr(0, open);
    filled += value_of(line.substr(open + kOpen.size(), close - open - kOpen.size()), values);
    line.remove_prefix(close + kClose.size());
  }
  return filled += line;
}

void require_utf8(const std::string& text) {
  if (valid_utf8(text) != text)
    throw Error(ErrorKind::usage,
                fmt::format("\"{}\" is not UTF-8, and the file can hold nothing else", printable(text)));
}

// The control characters of Latin-1 (U+0080 to U+009F), which YAML does not allow in a file.
bool begins_c1(std::string_view rest) {
  return rest.size() > 1 && rest[0] == '\xc2' && static_cast<unsigned char>(rest[1]) < 0xa0;
}

// What YAML 1.1 takes for a line end or does not allow, all of three bytes: how it is written instead.
std::string_view escape_of(std::string_view rest) {
  static const std::map<std::string_view, std::string_view> kEscapes = {{"\xe2\x80\xa8", "\\u2028"},
                                                                        {"\xe2\x80\xa9", "\\u2029"},
                                                                        {"\xef\xbb\xbf", "\\ufeff"},
                                                                        {"\xef\xbf\xbe", "\\ufffe"},
                                                                        {"\xef\xbf\xbf", "\\uffff"}};
  const auto found = kEscapes.find(rest.substr(0, 3));
  return found == kEscapes.end() ? std::string_view() : found->second;
}

bool is_control(char letter) { return static_cast<unsigned char>(letter) < 0x20 || letter == '\x7f'; }

}  // namespace

std::string fill(std::string_view text, const Values& values) {
  std::string filled;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (const std::string_view name = lone_name(line); !name.empty()) {
      const std::string& lines = value_of(name, values);
      filled += lines;
      if (!lines.empty() && !lines.ends_with('\n')) filled += '\n';
    } else {
      filled += fill_line(line, values) + "\n";
    }
  }
  return filled;
}

std::string as_comment(const std::string& text) {
  std::string lines;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const std::string line = printable(rest.substr(0, end));
    lines += line.empty() ? "#\n" : "# " + line + "\n";
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return lines;
}

std::string quote_yaml(const std::string& text) {
  require_utf8(text);
  std::string quoted = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    const std::string_view rest = std::string_view(text).substr(i);
    if (begins_c1(rest)) {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++i]));
    } else if (const std::string_view escape = escape_of(rest); !escape.empty()) {
      quoted += escape;
      i += 2;
    } else if (letter == '\n') {
      quoted += "\\n";
    } else if (is_control(letter)) {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(letter));
    } else {
      quoted += letter == '"' || letter == '\\' ? std::string{'\\', letter} : std::string(1, letter);
    }
  }
  return quoted + "\"";
}

std::string quote_container_word(const std::string& text) {
  std::string doubled;
  for (const char letter : text) doubled += letter == '$' ? "$$" : std::string(1, letter);
  return quote_yaml(doubled);
}

std::string quote_exec_word(const std::string& text) {
  require_utf8(text);
  std::string quoted;
  for (const char letter : text)
    if (letter == '$' || letter == '%')
      quoted += std::string(2, letter);
    else if (is_control(letter))
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(letter));
    else
      quoted += letter == '"' || letter == '\\' ? std::string{'\\', letter} : std::string(1, letter);
  const bool plain = !text.empty() && text.find_first_of(" \t\n\r'\";#\\") == std::string::npos;
  return plain ? quoted : "\"" + quoted + "\"";
}

std::string hours_minutes_seconds(std::chrono::seconds time) {
  const auto seconds = time.count();
  return fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::string days_hours_minutes_seconds(std::chrono::seconds time) {
  const auto days = std::chrono::floor<std::chrono::days>(time);
  return fmt::format("{}-{}", days.count(), hours_minutes_seconds(time - days));
}

}  // namespace fleetrun::launch
