#include "launch/render/batch_text.h"

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::launch::batch_text_test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a template gets its values, and a line whose only value is empty disappears") {
  CHECK(fill("a <<x>> and <<y>>\n<<lines>>\n<<none>>\nend\n",
             {{"x", "1"}, {"y", "2"}, {"lines", "b\nc\n"}, {"none", ""}}) == "a 1 and 2\nb\nc\nend\n");
}

TEST_CASE("a value that looks like a name is not replaced") {
  CHECK(fill("<<x>>\n", {{"x", "<<y>>"}}) == "<<y>>\n");
}

TEST_CASE("a name without a value is a bug, which is reported") {
  CHECK_THROWS_WITH_AS(fill("<<other>>\n", {{"x", "1"}}), "no value for <<other>> of a batch file", Error);
}

TEST_CASE("every line of a comment is a comment") {
  CHECK(as_comment("a\nb") == "# a\n# b\n");
  CHECK(as_comment("a\n\nrm -r /\r\n") == "# a\n#\n# rm -r /?\n");
}

TEST_CASE("YAML reads the same text from quotes") {
  CHECK(quote_yaml("a b") == R"("a b")");
  CHECK(quote_yaml("say \"no\" \\ 'yes' # not: a comment") == R"("say \"no\" \\ 'yes' # not: a comment")");
  CHECK(quote_yaml("two\nlines\t\x7f") == R"("two\nlines\x09\x7f")");
  CHECK(quote_yaml("\xc2\x85 \xe2\x80\xa8 \xef\xbb\xbf \xc3\xa9") == "\"\\x85 \\u2028 \\ufeff \xc3\xa9\"");
  CHECK_THROWS_WITH_AS(quote_yaml("\xff"),
                       "\"\xEF\xBF\xBD\" is not UTF-8, and the file can hold nothing else", Error);
}

TEST_CASE("Kubernetes replaces no variable in the words of a user") {
  CHECK(quote_container_word("$(HOME) $$ $x") == R"("$$(HOME) $$$$ $$x")");
}

TEST_CASE("systemd reads the same word, without variables and specifiers") {
  CHECK(quote_exec_word("--gpus=0,1") == "--gpus=0,1");
  CHECK(quote_exec_word("100% of $HOME") == R"("100%% of $$HOME")");
  CHECK(quote_exec_word("") == R"("")");
  CHECK(quote_exec_word(";") == R"(";")");
  CHECK(quote_exec_word("a\\b \"c\"\n") == R"("a\\b \"c\"\x0a")");
}

TEST_CASE("times are written as schedulers read them") {
  CHECK(hours_minutes_seconds(26h + 5s) == "26:00:05");
  CHECK(days_hours_minutes_seconds(26h + 5s) == "1-02:00:05");
  CHECK(days_hours_minutes_seconds(90s) == "0-00:01:30");
}

}  // namespace
}  // namespace fleetrun::launch::batch_text_test
