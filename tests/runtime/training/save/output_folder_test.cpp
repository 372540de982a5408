#include "runtime/training/save/output_folder.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>
#include <tuple>

#include "comm/collective/solo.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/data/expect_error.h"
#include "runtime/training/trainer/trainer.h"
#include "support/temporary_folder.h"

namespace fleetrun::runtime::output_folder_test {
namespace {

// A training whose results go to the folder "out" of a temporary one.
struct Training {
  TemporaryFolder folder;
  job::OutputSpec output;
  std::unique_ptr<Device> device = make_cpu_device();
  std::unique_ptr<comm::Communicator> solo = comm::make_solo();
  Trainer trainer;
  UniqueFd claim;

  Training()
      : output({.dir = folder / "out"}),
        trainer(make_job(), kFacts, *device, *solo),
        claim(prepare_output(output)) {}

  static constexpr ModelFacts kFacts = {.input_shape = {1, 4, 4}, .classes = 3};
  static job::JobSpec make_job() {
    job::JobSpec job;
    job.model = {.name = job::ModelName::mlp, .hidden = {8}};
    return job;
  }

  // What is printed.
  std::string save(decltype(save_result)& function = save_result,
                   const Metadata& about = {{"model.name", "mlp"}}) const {
    std::ostringstream out;
    const Program& program = trainer.executor().program();
    function(output, read_tensors(weights_of(program), program, trainer.storage()), about, out);
    return out.str();
  }
};

TEST_CASE("the weights go to model.safetensors, and those of an earlier training stay beside them") {
  Training training;
  const std::string folder = training.folder.path() + "/out/";
  const std::string told = "weights: " + folder + "model.safetensors\n";
  CHECK(training.save() == told);
  const std::string first = training.folder.read("out/model.safetensors");
  training.trainer.storage().initialise(99);
  CHECK(training.save() == "weights of an earlier run: " + folder + "model.previous.safetensors\n" + told);
  CHECK(training.folder.read("out/model.previous.safetensors") == first);
  const std::string second = training.folder.read("out/model.safetensors");
  CHECK(second != first);
  training.save();
  CHECK(training.folder.read("out/model.previous.safetensors") == second);
  CHECK_FALSE(training.folder.has("out/model.1.safetensors"));
}

TEST_CASE("weights that are already there are not their own earlier weights") {
  Training training;
  training.save();
  const std::string first = training.folder.read("out/model.safetensors");
  training.trainer.storage().initialise(99);
  training.save();
  const std::string folder = training.folder.path() + "/out/";
  CHECK(training.save(save_result_again) == "weights: " + folder + "model.safetensors\n");
  CHECK(training.folder.read("out/model.previous.safetensors") == first);
  const std::string second = training.folder.read("out/model.safetensors");
  training.save(save_result_again, {{"model.name", "mlp"}, {"data.augment", "resize_crop"}});
  CHECK(training.folder.read("out/model.previous.safetensors") == first);
  CHECK(training.folder.read("out/model.safetensors") == second);
  training.trainer.storage().initialise(98);
  training.save(save_result_again);
  CHECK(training.folder.read("out/model.previous.safetensors") != first);
  std::filesystem::remove(training.folder / "out/model.safetensors");
  training.save(save_result_again);
  CHECK(training.folder.has("out/model.safetensors"));
}

TEST_CASE("a file of the user that has the name for earlier weights stays") {
  const Training training;
  training.save();
  training.folder.write("out/model.previous.safetensors", "of the user");
  const std::string folder = training.folder.path() + "/out/";
  CHECK(training.save() == "weights of an earlier run: " + folder +
                               "model.1.safetensors\nweights: " + folder + "model.safetensors\n");
  CHECK(training.folder.read("out/model.previous.safetensors") == "of the user");
}

TEST_CASE("a file that the user put there during the training stays, and the weights go beside it") {
  const Training training;
  training.folder.write("out/model.safetensors", "of the user");
  const std::string folder = training.folder.path() + "/out/";
  CHECK(training.save() ==
        "warning: " + folder +
            "model.safetensors is in the way: a file that fleetrun did not write; the weights go to " +
            folder + "model.1.safetensors\nweights: " + folder + "model.1.safetensors\n");
  CHECK(training.folder.read("out/model.safetensors") == "of the user");
  CHECK(read_safetensors(folder + "model.1.safetensors").tensors.size() == 4);
}

TEST_CASE("numbers that are taken are left alone, links to nowhere too") {
  const Training training;
  training.folder.write("out/model.safetensors", "of the user");
  training.folder.write("out/model.1.safetensors", "also");
  std::filesystem::create_symlink("nowhere", training.folder / "out/model.2.safetensors");
  training.save();
  CHECK(training.folder.read("out/model.1.safetensors") == "also");
  CHECK_FALSE(training.folder.has("out/nowhere"));
  CHECK(training.folder.has("out/model.3.safetensors"));
}

TEST_CASE("a folder that was removed during the training is made again for the weights") {
  const Training training;
  std::filesystem::remove_all(training.folder / "out");
  training.save();
  CHECK(training.folder.has("out/model.safetensors"));
}

TEST_CASE("a folder serves one training at a time") {
  const TemporaryFolder folder;
  const job::OutputSpec output = {.dir = folder.path()};
  {
    const UniqueFd first = prepare_output(output);
    check_error(ErrorKind::create, "another training that is under way saves its results in " + folder.path(),
                [&] { std::ignore = prepare_output(output); });
  }
  CHECK_NOTHROW(std::ignore = prepare_output(output));
}

}  // namespace
}  // namespace fleetrun::runtime::output_folder_test
