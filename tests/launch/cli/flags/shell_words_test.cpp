#include "launch/cli/flags/shell_words.h"

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::launch::shell_words_test {
namespace {

using Words = std::vector<std::string>;

TEST_CASE("words are cut at spaces outside of quotes") {
  const auto words = [](const std::string& text) { return split_words("--debug_rank", text); };
  CHECK(words("  gdb   --args ") == Words{"gdb", "--args"});
  CHECK(words(R"(sh -c 'a "b" $c' "d 'e' \"f\"" g\ h '')") ==
        Words{"sh", "-c", "a \"b\" $c", "d 'e' \"f\"", "g h", ""});
  CHECK(words("").empty());
  CHECK_THROWS_WITH_AS(words("gdb 'x"), "--debug_rank is \"gdb 'x\": a quote is not closed", Error);
}

TEST_CASE("a shell reads quoted words back as they were") {
  const Words words = {"plain-word_1.2/3:4,5=6", "", "two words", "it's", "$HOME", "a\nb", "*", "a;b", "\\"};
  CHECK(quote_word(words[0]) == words[0]);
  CHECK(split_words("", quote_words(words)) == words);
}

TEST_CASE("a terminal that is shown quoted words gets no control characters") {
  CHECK(quote_word("\x1b[2Jit's\\") == R"($'\033[2Jit\'s\\')");
  CHECK(quote_word("a\xff") == R"($'a\377')");
  CHECK(quote_word("Größe") == "'Größe'");
}

}  // namespace
}  // namespace fleetrun::launch::shell_words_test
