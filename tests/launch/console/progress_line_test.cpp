#include "launch/console/progress_line.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::progress_line_test {
namespace {

TEST_CASE("training shows the first rank's place and everybody's speed") {
  const Progress first = {.phase = Phase::training,
                          .epoch = 2,
                          .epochs = 12,
                          .step = 340,
                          .steps = 3910,
                          .loss = 1.234567,
                          .images_per_second = 500};
  Progress second = first;
  second.step = 339;
  second.images_per_second = 524.04;
  CHECK(progress_text({first, second}) ==
        "training  epoch 2/12  step 340/3910  loss 1.23457  1024.0 images/s");
}

TEST_CASE("a narrow terminal shows what matters most") {
  const Progress first = {.phase = Phase::training,
                          .epoch = 2,
                          .epochs = 12,
                          .step = 340,
                          .steps = 3910,
                          .loss = 1.234567,
                          .images_per_second = 500};
  CHECK(progress_text({first}, 65) == "training  epoch 2/12  step 340/3910  loss 1.23457  500.0 images/s");
  CHECK(progress_text({first}, 64) == "training  epoch 2/12  step 340/3910  loss 1.23457");
  CHECK(progress_text({first}, 40) == "epoch 2/12  step 340/3910  loss 1.23457");
  CHECK(progress_text({first}, 30) == "epoch 2/12  step 340/3910");
  CHECK(progress_text({first}, 19) == "step 340/3910");
  CHECK(progress_text({first}, 5) == "step ");
  CHECK(progress_text({{.phase = Phase::joining}, {.phase = Phase::starting}}, 19) == "joining  waiting fo");
  for (std::size_t width = 0; width < 200; ++width) CHECK(progress_text({first}, width).size() <= width);
}

TEST_CASE("totals that are not known are left out") {
  CHECK(progress_text(
            {{.phase = Phase::training, .epoch = 1, .step = 5, .loss = 2, .images_per_second = 10}}) ==
        "training  epoch 1  step 5  loss 2.00000  10.0 images/s");
}

TEST_CASE("before training those who are behind are named") {
  CHECK(progress_text({{.phase = Phase::joining}, {.phase = Phase::starting}, {.phase = Phase::starting}}) ==
        "joining  waiting for ranks 1, 2");
  CHECK(progress_text({{.phase = Phase::starting}, {.phase = Phase::joining}}) ==
        "starting  waiting for rank 0");
  CHECK(progress_text({{.phase = Phase::loading}}) == "loading");
  CHECK(progress_text({}).empty());
}

TEST_CASE("what a worker writes on its page is what is read") {
  const UniqueFd fd = make_progress_fd();
  const ProgressPagePtr page = map_new_progress_page(fd.get());
  const ProgressPagePtr worker = map_inherited_progress_page(fd.get());
  worker->phase = Phase::evaluating;
  worker->step = 77;
  worker->loss = 0.5;
  const Progress progress = read_progress(*page);
  CHECK(progress.phase == Phase::evaluating);
  CHECK(progress.step == 77);
  CHECK(progress.loss == 0.5);
}

}  // namespace
}  // namespace fleetrun::launch::progress_line_test
