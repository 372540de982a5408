#include "job/checks/check_evaluation.h"

#include <doctest/doctest.h>

#include "job/job_text.h"

namespace fleetrun::job::check_evaluation_test {
namespace {

const std::string kTest =
    R"("data": {"train": {"format": "synthetic", "samples": 64, "shape": [1, 28, 28], "classes": 10},
             "test": {"format": "synthetic", "samples": 64, "shape": [1, 28, 28], "classes": 10}})";
const std::string kTested = "{\"model\": {\"name\": \"lenet\"}, " + kTest + "}";

TEST_CASE("early stopping has the defaults of its keys") {
  const EarlyStoppingSpec stopping = *parse(kTested, {"train.early_stopping={}"}).spec.train.early_stopping;
  CHECK(stopping.metric == Metric::loss);
  CHECK(stopping.patience == 3);
  CHECK(stopping.min_delta == 0);
  CHECK_FALSE(parse(kTested).spec.train.early_stopping.has_value());
  CHECK_FALSE(parse(kTested).spec.checkpoint.keep_best.has_value());
  CHECK(parse(kTested, {"checkpoint.keep_best=acc1"}).spec.checkpoint.keep_best == Metric::acc1);
}

TEST_CASE("what follows from scores needs a data set that gives them") {
  CHECK(
      complaint(good_job(), {"checkpoint.keep_best=acc1"}) ==
      "command line: checkpoint.keep_best: found \"acc1\" without data.test, wanted data.test or data.split: its samples "
      "give the score");
  CHECK(
      complaint(good_job(), {"train.early_stopping.patience=2"}) ==
      "command line: train.early_stopping: found it without data.test, wanted data.test or data.split: its samples give the "
      "score");
  CHECK(
      complaint(kTested, {"checkpoint.keep_best=loss", "train.eval_every=0"}) ==
      "command line: checkpoint.keep_best: found \"loss\" beside train.eval_every 0, wanted train.eval_every of "
      "at least 1");
}

TEST_CASE("samples that data.split sets aside give scores, too") {
  CHECK(complaint(good_job(), {"checkpoint.keep_best=acc1", "data.split=0.1"}) == "");
  CHECK(complaint(good_job(), {"train.early_stopping.patience=2", "data.split=0.1"}) == "");
}

TEST_CASE("bad metrics, patience and changes are refused") {
  const std::string stopping = "command line: train.early_stopping.";
  CHECK(complaint(kTested, {"train.early_stopping.metric=accuracy"}) ==
        stopping + "metric: found \"accuracy\", wanted one of \"loss\", \"acc1\", \"acc5\"");
  CHECK(complaint(kTested, {"train.early_stopping.patience=0"}) ==
        stopping + "patience: found 0, wanted a whole number of at least 1");
  CHECK(complaint(kTested, {"train.early_stopping.min_delta=-1"}) ==
        stopping + "min_delta: found -1, wanted a number of at least 0");
  CHECK(complaint(kTested, {"train.early_stopping.metric=acc1", "train.early_stopping.min_delta=2"}) ==
        stopping + "min_delta: found 2, wanted less than 1: acc1 is a number from 0 to 1");
}

TEST_CASE("the top 5 of five classes or fewer are no score") {
  std::string few = kTested;
  for (std::size_t at = few.find(": 10}"); at != std::string::npos; at = few.find(": 10}"))
    few.replace(at, 5, ": 5}");
  CHECK(
      complaint(few, {"checkpoint.keep_best=acc5"}) ==
      "command line: checkpoint.keep_best: found \"acc5\", wanted \"acc1\" or \"loss\": with 5 classes acc5 is "
      "always 1");
  CHECK(complaint(kTested, {"checkpoint.keep_best=acc5"}) == "");
}

TEST_CASE("a patience longer than the training is noted") {
  const std::string patience = "train.early_stopping.patience=3";
  CHECK(parse(kTested, {"train.epochs=4", patience}).notes ==
        std::vector<std::string>{
            "train.early_stopping has no effect: patience is 3, and the training has only 4 evaluations"});
  CHECK(parse(kTested, {"train.epochs=5", patience}).notes.empty());
}

}  // namespace
}  // namespace fleetrun::job::check_evaluation_test
