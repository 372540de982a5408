// The report of an evaluation as files for other programs.
#pragma once
#include <string>
#include <vector>

#include "base/json/json_value.h"
#include "base/run/eval_folder.h"
#include "runtime/eval/eval_report.h"

namespace fleetrun::runtime {

// With more classes than this, the confusion matrix has no file and no picture: it would be too large for any program.
constexpr std::size_t kMostClassesOfMatrix = 2000;

// Everything but the predictions. The confusion matrix is a list of rows.
JsonValue as_json(const EvalReport& report);

// A row for each label, a column for each predicted class, and the names of both.
std::string confusion_csv(const EvalReport& report);

// A row for each image: sample,image,label,predicted,probability,loss
std::string predictions_csv(const EvalReport& report);

// report.json, report.txt, predictions.csv, and for up to kMostClassesOfMatrix classes confusion.csv and confusion.svg.
std::vector<NamedContent> files_of(const EvalReport& report);

}  // namespace fleetrun::runtime
