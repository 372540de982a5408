// What a data set's keys tell about its samples before anything is read.
#pragma once
#include <array>
#include <cstdint>
#include <optional>

#include "job/spec/job_spec.h"

namespace fleetrun::job {

// Of a colour image and of a grey one: what a data set may have.
constexpr bool is_colour_or_grey(int channels) { return channels == 3 || channels == 1; }
constexpr const char* kColourOrGrey = "3 for colour or 1 for grey";

// An image needs at most 256 MiB (four channels), whatever its header or the job promises.
constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;

int channels_of(const DataSetSpec& set);                   // of a sample
bool has_image_files(const DataSetSpec& set);              // JPEG, PNG and the like
std::optional<int> known_classes(const DataSetSpec& set);  // nothing when only the data tells
std::optional<std::array<int, 3>> known_shape(
    const DataSetSpec& set);  // [C,H,W]; nothing when only the data tells

// What an evaluation makes of it, which changes nothing at random: none or resize_crop.
Augment without_chance(Augment augment);

// How to read the samples that the model is evaluated on. They are data.test. With data.split they are a part of data.train, which is then
// read without random crops. Nothing: the job has no evaluation.
std::optional<DataSetSpec> evaluated_set(const DataSpec& data);

}  // namespace fleetrun::job
