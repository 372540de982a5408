// What the names of classes say about their labels: name number 0 has label 0, and so on.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/formats/data_set.h"

namespace fleetrun::runtime {

// One side of a comparison: a model or a data set.
struct NamedClasses {
  std::string who;                 // as the user calls it
  std::vector<std::string> names;  // by label; empty: its classes have numbers only
};

struct LabelNote {
  std::string text;          // for the user; "": there is nothing to say
  bool contradicts = false;  // the labels of the two sides mean other classes
};

// What to say if only one of the two has names: "fleetrun sorts class names as text, so class_10 has label 2; ..." if the names have
// numbers (with the same text in front of each) in another order, else which names the labels get. Nothing if the numbers are the labels.
LabelNote compare_names_and_numbers(const NamedClasses& model, const NamedClasses& set);

// A warning if only one of the model and `test` has names of classes, and the order of the names may not be that of the labels; else "".
// `known`: the names of the model's classes. `classes`: how many it has. `name`: what the user calls the test set.
// Throws Error(data) if `test` has the names and may lack a class, which would shift the labels.
std::string compare_labels(const DataSet& test, std::string_view name, const std::vector<std::string>& known,
                           int classes);

}  // namespace fleetrun::runtime
