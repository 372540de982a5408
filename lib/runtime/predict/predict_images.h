// `fleetrun predict`: the answers of a model about image files, by one or several processes on this host.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/run/predict_request.h"
#include "runtime/predict/model_file.h"

namespace fleetrun::runtime {

struct PredictOutput {
  std::function<void(std::string_view)> answers;    // the lines for stdout, in the order of the images
  std::function<void(const std::string&)> problem;  // of an image that cannot be read
};

// `single`: the user named one image file. The numbers do not depend on the number of ranks. Call it before this process has threads: with
// several ranks it forks. Throws Error(data) for weights that do not fit, and at the end if images could not be read; Error(os) when a rank
// ended.
void predict_images(const ModelFile& model, const std::vector<std::string>& paths, bool single,
                    const PredictRequest& request, const PredictOutput& output);

}  // namespace fleetrun::runtime
