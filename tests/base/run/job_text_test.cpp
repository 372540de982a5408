#include "base/run/job_text.h"

#include <doctest/doctest.h>

#include <string>

#include "base/error/error.h"

namespace fleetrun::job_text_test {
namespace {

TEST_CASE("a job's text is read again and again, whatever its length") {
  const std::string text(100'000, 'x');
  const UniqueFd fd = put_job_text(text);
  CHECK(read_job_text(fd.get()) == text);
  CHECK(read_job_text(fd.get()) == text);
}

TEST_CASE("a descriptor without a text is an error") {
  CHECK_THROWS_AS(read_job_text(-1), Error);
  const UniqueFd empty = put_job_text("");
  CHECK_THROWS_AS(read_job_text(empty.get()), Error);
}

}  // namespace
}  // namespace fleetrun::job_text_test
