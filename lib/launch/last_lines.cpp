#include "launch/last_lines.h"

#include <algorithm>

#include "base/utf8.h"
#include "launch/growing_file.h"
#include "launch/log_text.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kTailBytes = 16 * 1024;   // enough for the last lines of any readable log
constexpr std::size_t kLongestLastLine = 1000;  // bytes; about ten rows of a terminal

// `length` as utf8_character_length gives it. U+0080 to U+009F are control characters, too.
bool is_control(std::string_view text, std::size_t at, std::size_t length) {
  const auto code = static_cast<unsigned char>(text[at]);
  if (length == 2) return code == 0xC2 && static_cast<unsigned char>(text[at + 1]) < 0xA0;
  return length == 1 && ((code < 0x20 && code != '\t') || code == 0x7F);
}

// A loop without a way out, which the compiler turns into vector instructions.
bool is_plain_ascii(std::string_view text) {
  unsigned other = 0;
  for (const char letter : text)
    other |= static_cast<unsigned>(letter < ' ' && letter != '\t') | static_cast<unsigned>(letter == '\x7f') |
             static_cast<unsigned>(static_cast<unsigned char>(letter) >= 0x80);
  return other == 0;
}

}  // namespace

bool is_utf8(std::string_view text) {
  if (is_plain_ascii(text)) return true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_character_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string printable(std::string_view text) {
  if (is_plain_ascii(text)) return std::string(text);
  std::string clean;
  clean.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_character_length(text, at);
    if (length == 0)
      clean += "\uFFFD";
    else if (is_control(text, at, length))
      clean += '?';
    else
      clean += text.substr(at, length);
    at += std::max<std::size_t>(length, 1);
  }
  return clean;
}

std::string shorten(std::string text, std::size_t most) {
  constexpr std::string_view kCut = "...";
  if (text.size() <= most) return text;
  text.resize(whole_utf8_characters(text, most - kCut.size()));
  return text.append(kCut);
}

std::string read_log_end(const std::string& path, std::size_t most) {
  return GrowingFile(path).read_end(most);
}

std::vector<std::string> last_lines(std::string_view text, std::size_t count) {
  std::vector<std::string> lines;
  if (text.ends_with('\n')) text.remove_suffix(1);
  while (!text.empty() && lines.size() < count) {
    const std::size_t before = text.rfind('\n');
    const std::size_t start = before == std::string_view::npos ? 0 : before + 1;
    lines.push_back(shorten(printable(clean_line(text.substr(start))), kLongestLastLine));
    text = text.substr(0, before == std::string_view::npos ? 0 : before);
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

std::vector<std::string> read_last_lines(const std::string& path, std::size_t count) {
  return last_lines(read_log_end(path, kTailBytes), count);
}

}  // namespace fleetrun::launch
