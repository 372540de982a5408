// One batch of noise for a model.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/tensor/philox.h"
#include "runtime/training/setup/model_facts.h"
#include "runtime/training/trainer/trainer.h"

namespace fleetrun::bench {

struct Noise {
  std::vector<float> images;
  std::vector<std::int32_t> labels;

  Noise(const runtime::ModelFacts& facts, int batch)
      : images(static_cast<std::size_t>(batch * facts.input_shape[0] * facts.input_shape[1] *
                                        facts.input_shape[2])),
        labels(static_cast<std::size_t>(batch)) {
    for (std::size_t i = 0; i < images.size(); ++i)
      images[i] = 2 * runtime::unit_float(runtime::philox(1, 1, i)[0]) - 1;
    for (std::size_t i = 0; i < labels.size(); ++i)
      labels[i] =
          static_cast<std::int32_t>(runtime::philox(1, 2, i)[0] % static_cast<std::uint32_t>(facts.classes));
  }
  runtime::BatchView view() const { return {images.data(), labels.data()}; }
};

}  // namespace fleetrun::bench
