#include "worker_predict.h"

#include <iostream>
#include <optional>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/run/predict_request.h"
#include "base/system/standard_output.h"
#include "base/text/printable.h"
#include "job/parse_job.h"
#include "runtime/predict/image_paths.h"
#include "runtime/predict/model_file.h"
#include "runtime/predict/predict_images.h"

namespace fleetrun {

void run_predict(const std::vector<std::string>& arguments) {
  constexpr std::size_t kBeforeImages = 3;
  if (arguments.size() <= kBeforeImages)
    throw Error(ErrorKind::usage, "wanted fleetrun-worker --predict REQUEST JOB MODEL IMAGE|FOLDER|-...");
  const PredictRequest request = parse_predict_request(arguments[0]);
  std::optional<job::JobSpec> job;
  if (!arguments[1].empty()) job = job::parse_job_file(arguments[1], {}).spec;
  const std::vector<std::string> words(arguments.begin() + kBeforeImages, arguments.end());
  const runtime::ModelFile model = runtime::open_model(arguments[2], job);
  const runtime::ImagePaths paths = runtime::image_paths(words, std::cin);
  const runtime::PredictOutput output = {.answers = print_answer, .problem = [](const std::string& problem) {
                                           std::cerr << fmt::format("fleetrun: {}\n", printable(problem));
                                         }};
  for (const std::string& note : model.notes) output.problem(note);
  if (const std::string ignored = describe(paths.ignored); !ignored.empty()) output.problem(ignored);
  runtime::predict_images(model, paths.images, runtime::is_single_image(words), request, output);
}

}  // namespace fleetrun
