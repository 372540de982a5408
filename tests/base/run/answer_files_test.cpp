#include "base/run/answer_files.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "base/json/json_value.h"
#include "support/temporary_folder.h"

namespace fleetrun::answer_files_test {
namespace {

TEST_CASE("an answer replaces an earlier answer, and no file of the user") {
  const TemporaryFolder folder;
  const JsonValue first = JsonValue::object({{"written_by", "fleetrun tune"}, {"ranks", 1}});
  const JsonValue second = JsonValue::object({{"written_by", "fleetrun tune"}, {"ranks", 2}});
  write_answer(kTuneAnswer, folder.path(), to_json(first));
  write_answer(kTuneAnswer, folder.path(), to_json(second));
  CHECK(folder.read("tune.json") == to_json(second));
  folder.write("tune.json", "my own");
  CHECK_THROWS_WITH_AS(write_answer(kTuneAnswer, folder.path(), to_json(first)),
                       (folder / "tune.json is in the way: a file that fleetrun did not write").c_str(),
                       Error);
  CHECK(folder.read("tune.json") == "my own");
}

TEST_CASE("the mark of an evaluation is the start of its JSON") {
  CHECK(to_json_lines(JsonValue::object({{"written_by", "fleetrun eval"}, {"images", 3}}))
            .starts_with(kEvalAnswer.mark));
}

}  // namespace
}  // namespace fleetrun::answer_files_test
