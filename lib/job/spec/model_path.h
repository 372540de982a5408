// Which file holds the weights of a trained model.
#pragma once
#include <string>

namespace fleetrun::job {

constexpr const char* kModelFile = "model.safetensors";  // in a checkpoint, and in output.dir
constexpr const char* kManifestName = "manifest.json";   // only in a checkpoint

// `name` is a file, or a folder with a kModelFile. Throws Error(missing) for a folder without one.
std::string model_path(const std::string& name);

}  // namespace fleetrun::job
