#include "base/text/columns.h"

#include <doctest/doctest.h>

namespace fleetrun::columns_test {
namespace {

TEST_CASE("characters of East Asia and emoji are two columns wide, accents none, all others one") {
  for (const char* wide :
       {"\u8bad", "\u5b66", "\u306e", "\u30a8", "\ud55c", "\uff01", "\U0001f600", "\U0001f680", "\U00020000"})
    CHECK(columns_of_character(wide) == 2);
  for (const char* combining : {"\u0301", "\u200d", "\ufe0f"}) CHECK(columns_of_character(combining) == 0);
  for (const char* narrow : {"a", "\u00e9", "\u2588", "\u2026", "\u0416", "\xff"})
    CHECK(columns_of_character(narrow) == 1);
}

}  // namespace
}  // namespace fleetrun::columns_test
