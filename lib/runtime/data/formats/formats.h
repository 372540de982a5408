// The formats of data sets, one file each; open_data_set picks one.
#pragma once
#include <memory>

#include "runtime/data/formats/data_set.h"

namespace fleetrun::runtime {

// path/<class>/*.jpg|jpeg|png, classes numbered in byte order of their names.
// `known`: the class names of the data set that the model is trained on, by label: a folder of such a class may be empty or
// missing. Empty: the folders that are there, none of them empty.
std::unique_ptr<DataSet> open_image_folder(const job::DataSetSpec& spec,
                                           const std::vector<std::string>& known = {});

// Lines `path label` of a file: paths from a folder, blanks in them and CRLF allowed, lines that start with # left out.
// Throws one error for all unusable lines, with their numbers.
std::unique_ptr<DataSet> open_image_list(const job::DataSetSpec& spec);

enum class DataUse { training, evaluation };

// CIFAR-10's binary batches: a file, or some *.bin of a folder: data_batch_*.bin to train on, test_batch.bin to evaluate on. Without them,
// the data_batch_*.bin or else all its *.bin.
std::unique_ptr<DataSet> open_cifar_bin(const job::DataSetSpec& spec, DataUse use);

// MNIST's format: a file of images and a file of labels, each plain or gzipped.
std::unique_ptr<DataSet> open_idx(const job::DataSetSpec& spec);

// Images made on the fly, the same on every machine.
std::unique_ptr<DataSet> open_synthetic(const job::DataSetSpec& spec);

}  // namespace fleetrun::runtime
