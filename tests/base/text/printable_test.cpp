#include "base/text/printable.h"

#include <doctest/doctest.h>

#include "base/json/json_value.h"
#include "base/text/utf8.h"

namespace fleetrun::printable_test {
namespace {

// Every byte alone and every pair of bytes: 65,792 texts.
template <typename Check>
void for_all_short_texts(Check check) {
  for (int first = 0; first < 256; ++first) {
    check(std::string(1, static_cast<char>(first)));
    for (int second = 0; second < 256; ++second)
      check(std::string{static_cast<char>(first), static_cast<char>(second)});
  }
}

bool is_valid(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_character_length(text, 0);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

TEST_CASE("what people can read stays as it is") {
  for (const char* text : {"", "loss 0.5\tlr 1e-3", "Größe 数据 \xF0\x9F\x9A\x80", "a\\b\"c'"}) {
    CHECK(printable(text) == text);
    CHECK(valid_utf8(text) == text);
    CHECK(printable_start(text, 100) == text);
  }
}

TEST_CASE("a terminal gets no control character") {
  CHECK(printable("\x1b[2J\x1b]0;title\x07") == "?[2J?]0;title?");
  CHECK(printable("a\rb\nc\x7f") == "a?b?c?");
  CHECK(printable("\xC2\x9B"
                  "31m") == "?31m");                      // CSI as one character
  CHECK(printable("\xE2\x80\xAEgnp.exe") == "?gnp.exe");  // right to left from here
  CHECK(printable("one\xE2\x80\xA8two") == "one?two");    // a line separator
  CHECK(printable_lines("one\n\x1btwo\r\n") == "one\n?two?\n");
  CHECK(printable_lines("\n\n") == "\n\n");
}

TEST_CASE("bytes that are not UTF-8 are replaced one by one") {
  CHECK(valid_utf8("a\xff") == "a\xEF\xBF\xBD");
  CHECK(valid_utf8("\xE2\x82") == "\xEF\xBF\xBD\xEF\xBF\xBD");  // cut off
  CHECK(valid_utf8("\xC0\xAF") == "\xEF\xBF\xBD\xEF\xBF\xBD");  // '/' in a form that is too long
  CHECK(valid_utf8("\x1b[m") == "\x1b[m");
  for_all_short_texts([](const std::string& text) {
    REQUIRE(is_valid(valid_utf8(text)));
    REQUIRE(is_valid(printable(text)));
    REQUIRE(printable(text).find('\x1b') == std::string::npos);
  });
}

TEST_CASE("a long text is cut between characters") {
  CHECK(printable_start("abcdef", 6) == "abcdef");
  CHECK(printable_start("abcdefg", 6) == "abcdef...");
  CHECK(printable_start("ab\xE2\x82\xAC", 4) == "ab...");
  CHECK(printable_start(std::string(1000, '\xff'), 7) == "\xEF\xBF\xBD\xEF\xBF\xBD...");
}

TEST_CASE("JSON is valid UTF-8 whatever the text is") {
  CHECK(json_quoted("a\xff\x1b\"") == "\"a\xEF\xBF\xBD\\u001b\\\"\"");
  for_all_short_texts([](const std::string& text) { REQUIRE(is_valid(json_quoted(text))); });
}

}  // namespace
}  // namespace fleetrun::printable_test
