#include "base/text/redact.h"

#include <doctest/doctest.h>

namespace fleetrun::redact_test {
namespace {

TEST_CASE("values of variables with the name of a secret, and passwords in addresses, are not shown") {
  CHECK(redact("HF_TOKEN", "hf_1") == "***");
  CHECK(redact("PROXY", "http://user:word@host:1") == "http://user:***@host:1");
  CHECK(redact("LEVEL", "3") == "3");
}

TEST_CASE("a setting of all ranks or of one rank is shown without its secret") {
  CHECK(redact_setting("API_TOKEN=a=b") == "API_TOKEN=***");
  CHECK(redact_setting("1:API_TOKEN=a:b") == "1:API_TOKEN=***");
  CHECK(redact_setting("PROXY=http://user:word@host:1") == "PROXY=http://user:***@host:1");
  CHECK(redact_setting("1:LEVEL=3") == "1:LEVEL=3");
  CHECK(redact_setting("API_TOKEN") == "API_TOKEN");
}

}  // namespace
}  // namespace fleetrun::redact_test
