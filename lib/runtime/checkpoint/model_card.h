// What a model file says about its model besides the weights: all that it takes to build the network, to prepare an image for it, and
// to name what it answers. It is text in the file's __metadata__, under the keys of a job:
//
//   {"format": "pt", "written_by": "fleetrun", "fleetrun.format": "1", "fleetrun.version": "0.1.0",
//    "model.name": "resnet18", "model.class_dim": "3", "model.input_shape": "[3, 224, 224]", "model.hidden": "[512, 256]" (mlp only),
//    "data.mean": "[123.675, 116.28, 103.53]", "data.std": "[58.395, 57.12, 57.375]", "data.augment": "resize_crop",
//    "class_names": "[\"cat\", \"dog\", \"owl\"]", "train.dtype": "f32", "algorithms": "{\"conv1\": \"gemm\"}",
//    "data.split": "{\"share\": 0.1, \"seed\": 1, \"train\": 90, \"evaluation\": 10, \"digest\": \"0f..\"}",
//    "weights": "without averaging" (only where the training evaluated averages of them)}
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/number/dtype.h"
#include "job/spec/job_spec.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/data/split_facts.h"
#include "runtime/graph/program.h"
#include "runtime/models/model.h"

namespace fleetrun::runtime {

struct ModelCard {
  job::ModelSpec model;  // its name and what else builds it; class_dim and input_shape are set
  std::vector<std::string> class_names;       // by label; classes beyond the last one have no name
  job::Augment augment = job::Augment::none;  // of the test pass: none or resize_crop
  std::vector<double> mean, deviation;        // of the pixels, one per channel, in 0..255
  DType dtype = DType::f32;                   // in which the convolutions of the training computed
  // By which algorithms the test pass of the training did its convolutions, by the names of their outputs: they round differently.
  std::map<std::string, std::string> algorithms;
  // Which samples the training set aside. None if the weights come from no training, or if an older fleetrun wrote the file.
  std::optional<SplitFacts> split;
  // The training evaluated moving averages of these weights (optimizer.ema_evaluate). Only in checkpoints, which go on with the weights.
  bool lacks_averages = false;
  std::string version;  // of the fleetrun that wrote the file

  ModelFacts facts() const { return {.input_shape = *model.input_shape, .classes = *model.class_dim}; }
};

// The key that says so: with it the weights are those of one step.
constexpr const char* kWeightsOfStep = "weights";

// Of the model that a job trains. `class_names`: those of data.train, if it has any.
ModelCard make_model_card(const job::JobSpec& job, const ModelFacts& facts,
                          const std::vector<std::string>& class_names);

// Adds what only the programs of the training tell: dtype and algorithms.
void add_facts_of_programs(ModelCard& card, const Program& training, const Program& evaluation);

Metadata to_metadata(const ModelCard& card);

// `path` is for errors. Throws Error(data) that says what is missing or wrong, and how to supply it; Error(protocol) for a format of a
// newer fleetrun.
ModelCard read_model_card(const Metadata& metadata, const std::string& path);

// make_model_card() takes mean and std from this data set: "data.test" if the job has a test set, else "data.train".
std::string_view set_of_card(const job::JobSpec& job);

// A warning if the model computes with other weights than the evaluations of its training; "": it does not. `path`: of its file.
std::string warning_about_averages(const ModelCard& card, const std::string& path);

// A warning for each of the size of the images, data.mean and data.std that differs: "warning: data.train.mean is [1], and was [2] when the
// checkpoint was written".
// `set` is the key of the data set from which `now` has its values, and `when` ends the sentence.
std::vector<std::string> differences_of_pixels(const ModelCard& was, const ModelCard& now,
                                               std::string_view set, std::string_view when);

// Of these, the warnings about data.mean and data.std.
std::vector<std::string> differences_of_scale(const ModelCard& was, const ModelCard& now,
                                              std::string_view set, std::string_view when);

// A warning if the model with this metadata has as many classes as this one, but others: `["cat", "dog"]` for `["owl", "robin"]`.
std::string difference_of_classes(const Metadata& was, const ModelCard& now);

// A warning if the model with this metadata may have been trained on samples that this training sets aside with data.split: other samples
// were set aside then, of classes with the same names or of as many samples.
std::string difference_of_split(const Metadata& was, const ModelCard& now);

}  // namespace fleetrun::runtime
