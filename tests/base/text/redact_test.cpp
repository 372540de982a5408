#include "base/text/redact.h"

#include <doctest/doctest.h>

namespace fleetrun::redact_test {
namespace {

TEST_CASE("values of variables with the name of a secret, and passwords in addresses, are not shown") {
  CHECK(redact("HF_TOKEN", "hf_1") == "***");
  CHECK(redact("PROXY", "http://user:word@host:1") == "http://user:***@host:1");
  CHECK(redact("LEVEL", "3") == "3");
}

TEST_CASE("in a command line only the variables of a job are redacted") {
  using Words = std::vector<std::string>;
  CHECK(redact_variables({"job.json", "env.DB_PASSWORD=a=b", "env.LEVEL=3", "train.epochs=2", "env.TOKEN"}) ==
        Words{"job.json", "env.DB_PASSWORD=***", "env.LEVEL=3", "train.epochs=2", "env.TOKEN"});
}

}  // namespace
}  // namespace fleetrun::redact_test
