// A job file for a model that comes without one.
#pragma once
#include <string>

#include "base/json/json_value.h"

namespace fleetrun {

// A job that has the model of the file and evaluates it on `data`: a folder with a folder of images for each class, CIFAR's binary batches, or a
// list of images. The metadata of the model file say how the images are prepared. Throws Error(missing|permission|data).
JsonValue job_of_model(const std::string& model, const std::string& data);

}  // namespace fleetrun
