#include "base/text/xml.h"

#include <doctest/doctest.h>

namespace fleetrun::xml_test {
namespace {

TEST_CASE("text stays text inside of XML") {
  CHECK(xml_text("cat") == "cat");
  CHECK(xml_text("<script>\"a\" & 'b'</script>") ==
        "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/script&gt;");
  CHECK(xml_text("\x1b[31mred\xff") == "?[31mred\xEF\xBF\xBD");
}

}  // namespace
}  // namespace fleetrun::xml_test
