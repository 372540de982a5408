// The confusion matrix as a picture.
#pragma once
#include <string>

#include "runtime/eval/eval_report.h"

namespace fleetrun::runtime {

// An SVG without scripts, light or dark as the reader prefers. A row for each label, a column for each predicted class; the darker a
// cell, the larger its share of the images of its row. Up to 20 classes the cells have their counts.
std::string confusion_svg(const EvalReport& report);

}  // namespace fleetrun::runtime
