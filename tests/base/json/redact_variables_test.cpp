#include "base/json/redact_variables.h"

#include <doctest/doctest.h>

namespace fleetrun::redact_variables_test {
namespace {

using Words = std::vector<std::string>;

TEST_CASE("in a command line only the variables of a job are redacted") {
  CHECK(redact_variables({"job.json", "env.DB_PASSWORD=a=b", "env.LEVEL=3", "train.epochs=2", "env.TOKEN"}) ==
        Words{"job.json", "env.DB_PASSWORD=***", "env.LEVEL=3", "train.epochs=2", "env.TOKEN"});
}

TEST_CASE("variables of a job that stand in an object are redacted, the others are as they were typed") {
  CHECK(
      redact_variables({R"(env={"HF_TOKEN":"a","LEVEL":"3"})", R"(env= {"PROXY": "http://me:word@host"})"}) ==
      Words{R"(env={"HF_TOKEN": "***", "LEVEL": "3"})", R"(env={"PROXY": "http://me:***@host"})"});
  const Words plain = {R"(env={"LEVEL":"3"})", "env=prod", "env=", "env=null", R"(model={"API_TOKEN":"a"})"};
  CHECK(redact_variables(plain) == plain);
}

TEST_CASE("an object of variables that is not right shows no secret either") {
  CHECK(redact_variables(
            {R"(env={"HF_TOKEN":"a")", R"(env={"HF_TOKEN":5})", R"(env={"A_KEY":"a","A_KEY":["b"]})"}) ==
        Words{"env=***", R"(env={"HF_TOKEN": "***"})", R"(env={"A_KEY": "***", "A_KEY": "***"})"});
}

}  // namespace
}  // namespace fleetrun::redact_variables_test
