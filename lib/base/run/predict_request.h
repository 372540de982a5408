// What the user asks of `fleetrun predict`. fleetrun writes it as one word of the worker's command line, and the worker reads it back.
#pragma once
#include <string>

namespace fleetrun {

enum class PredictFormat { text, json, csv };

struct PredictRequest {
  int top = 0;  // classes of each image; 0: 5 for a single image file, otherwise 1
  int batch_size =
      0;  // images that go through the network together; 0: 1 for a single image file, otherwise the usual
  int ranks = 0;  // processes on this host; 0: one per core
  PredictFormat format = PredictFormat::text;

  bool operator==(const PredictRequest&) const = default;
};

// "top=5,batch_size=8,ranks=2,format=json"
std::string write_predict_request(const PredictRequest& request);

// Throws Error(usage) for any other text.
PredictRequest parse_predict_request(const std::string& text);

}  // namespace fleetrun
