#include "launch/cli/flags/shell_words.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/printable.h"

namespace fleetrun::launch {
namespace {

bool is_harmless(unsigned char letter) {
  return std::isalnum(letter) != 0 ||
         std::string_view("_-./:,=+@%^").find(static_cast<char>(letter)) != std::string_view::npos;
}

// $'a\033b' of bash, zsh and POSIX.1-2024: what a terminal would obey is written as numbers.
std::string quote_bytes(const std::string& word) {
  std::string quoted = "$'";
  for (const char letter : word) {
    const auto code = static_cast<unsigned char>(letter);
    if (code < 0x20 || code >= 0x7f)
      quoted += fmt::format("\\{:03o}", code);
    else
      quoted += letter == '\'' || letter == '\\' ? std::string{'\\', letter} : std::string(1, letter);
  }
  return quoted + "'";
}

}  // namespace

std::vector<std::string> split_words(const std::string& source, const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool begun = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      begun = true;
    } else if (quote != 0) {
      if (letter == quote)
        quote = 0;
      else
        word += letter;
    } else if (letter == '\'' || letter == '"') {
      quote = letter;
      begun = true;
    } else if (letter == ' ' || letter == '\t') {
      if (begun) words.push_back(std::exchange(word, ""));
      begun = false;
    } else {
      word += letter;
      begun = true;
    }
  }
  if (quote != 0)
    throw Error(ErrorKind::usage, fmt::format("{} is \"{}\": a quote is not closed", source, text));
  if (begun) words.push_back(word);
  return words;
}

std::string quote_word(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_harmless)) return word;
  if (printable_lines(word) != word) return quote_bytes(word);
  return quote_always(word);
}

std::string quote_always(const std::string& word) {
  std::string quoted = "'";
  for (const char letter : word) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  return quoted + "'";
}

std::string quote_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + quote_word(word);
  return text;
}

}  // namespace fleetrun::launch
