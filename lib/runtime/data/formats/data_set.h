// Labelled images that can be read by number: what the loader draws from, whatever the files look like.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "job/spec/job_spec.h"
#include "runtime/data/decode/framing.h"
#include "runtime/data/decode/image.h"
#include "runtime/data/decode/image_decoder.h"
#include "runtime/data/formats/ignored_files.h"

namespace fleetrun::runtime {

// Known once the data set is open.
struct DataSetFacts {
  ImageShape shape;  // of every image that read() gives
  int classes = 0;
  std::vector<std::string> class_names;  // empty where the format has none
  std::vector<std::int32_t> labels;      // one for each sample, 0 <= label < classes
  IgnoredFiles ignored;
  // Two files of different sizes, if they are the reason for the shape: "a.png is 8x8 and b.png 20x12".
  std::string unlike;
};

// What reading needs besides: one for each thread that reads.
struct ReadScratch {
  std::vector<std::uint8_t> file;
  Image image;
  FitScratch fit;
  ImageDecoder decoder;
};

class DataSet {
 public:
  explicit DataSet(DataSetFacts facts) : facts_(std::move(facts)) {}
  virtual ~DataSet() = default;
  DataSet(const DataSet&) = delete;
  DataSet& operator=(const DataSet&) = delete;

  int size() const { return static_cast<int>(facts_.labels.size()); }
  int classes() const { return facts_.classes; }
  const std::vector<std::string>& class_names() const { return facts_.class_names; }
  const ImageShape& shape() const { return facts_.shape; }
  const IgnoredFiles& ignored() const { return facts_.ignored; }
  const std::string& unlike() const { return facts_.unlike; }
  const std::vector<std::int32_t>& labels() const { return facts_.labels; }
  std::int32_t label(int sample) const { return facts_.labels.at(static_cast<std::size_t>(sample)); }

  // Writes shape().elements() bytes, the part of the sample that `framing` chooses: [channels, height, width]. Several threads may read at once, each with its own scratch.
  // Throws Error(data|missing|permission|io) that names the file.
  virtual void read(const Framing& framing, ReadScratch& scratch, std::uint8_t* planes) const = 0;

  // The sample as a user knows it: "train/cat/0003.jpg", "train-images.idx.gz, image 17".
  virtual std::string describe(int sample) const = 0;

  // The file that has the sample, and where in it, if the file has several: how to recognise the sample in another run.
  virtual std::string source_of(int sample) const { return describe(sample); }

  // Replaces `bytes` by the first `limit` bytes that the sample has in its file, or all when it has fewer; none where samples are made
  // on the fly. Throws Error(data|missing|permission|io).
  virtual void read_stored(int /*sample*/, std::size_t /*limit*/, std::vector<std::uint8_t>& bytes) const {
    bytes.clear();
  }

 private:
  DataSetFacts facts_;
};

// One that loads an image as a whole, or nearly so, and then shows the region that the framing chooses.
class WholeImageSet : public DataSet {
 public:
  using DataSet::DataSet;
  void read(const Framing& framing, ReadScratch& scratch, std::uint8_t* planes) const override;

 protected:
  // Puts the sample that `framing` names into scratch.image; it may be as much smaller as reduction_of() allows, with shape() as the shape.
  virtual void load(const Framing& framing, ReadScratch& scratch) const = 0;
};

// Finds the samples, checks what can be checked without decoding.
// Throws Error(missing|permission|io|data) that names the file, Error(config) for a format not built yet.
std::unique_ptr<DataSet> open_data_set(const job::DataSetSpec& spec);

// The same for samples to evaluate a model on. `known`: the names of the model's classes, by label; classes have the same labels here, and
// need not all have samples. Empty: those of this data set.
std::unique_ptr<DataSet> open_test_set(const job::DataSetSpec& spec,
                                       const std::vector<std::string>& known = {});

// A model trained on one must fit the other: throws Error(data) when shape, classes or their names differ.
void check_same_kind(const DataSet& train, const DataSet& test);

}  // namespace fleetrun::runtime
