// The report of an evaluation as people read it: tables of plain text.
#pragma once
#include <string>

#include "runtime/eval/eval_report.h"

namespace fleetrun::runtime {

// Accuracy and loss, a row for each class, the confusion matrix where it fits a terminal (20 classes), and the worst images.
std::string describe(const EvalReport& report);

}  // namespace fleetrun::runtime
