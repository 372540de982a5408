// A convolution in one of its three directions as cuDNN's graph interface runs it: one of the engines that cuDNN has for the problem,
// ready to run.
#pragma once
#include <cudnn.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuda/plugin/check.h"
#include "cuda/plugin/number.h"

namespace fleetrun::cuda {

enum class Direction { forward, grad_input, grad_weights };

// The sizes [n, c, h, w] of an image, the filters [k, c / groups, h, w] and the convolved image.
struct ConvolutionProblem {
  Direction direction;
  Number type;
  bool tf32;           // f32 values may be rounded to 10 bits
  bool deterministic;  // the same bits every time
  bool channels_last;
  std::array<std::int64_t, 4> x, w, y;
  std::array<std::int64_t, 2> padding, strides, dilations;

  std::string describe() const;  // all of it
};

class ConvolutionPlan {
 public:
  // Those that cuDNN has for the problem and that give the same bits every time, in the order of the speed that it expects.
  // `first_within`: no more than are needed to find one with that workspace, in bytes.
  static std::vector<std::shared_ptr<const ConvolutionPlan>> all(
      cudnnHandle_t cudnn, const ConvolutionProblem& problem, std::optional<std::size_t> first_within = {});

  // The one of all() with this place(). Null if there is none: cuDNN has changed.
  static std::shared_ptr<const ConvolutionPlan> at_place(cudnnHandle_t cudnn,
                                                         const ConvolutionProblem& problem,
                                                         const std::string& place);

  std::size_t workspace_bytes() const { return workspace_; }
  const std::string& name() const { return name_; }    // "engine 12"
  const std::string& place() const { return place_; }  // "engine 12, 3 of list A": in what cuDNN offers

  // The one of x, w and y that the direction makes is written, the others are read.
  struct Arrays {
    const void *x, *w, *y;
    void* workspace;
    bool operator==(const Arrays&) const = default;
  };

  // Where the values of a convolution lie, as cuDNN wants to be told: made again only when they move.
  class Places {
   public:
    void* told(const Arrays& arrays);

   private:
    Arrays arrays_{};
    std::unique_ptr<void, Destroy<cudnnBackendDestroyDescriptor>> told_;
  };

  // Works on the handle's stream.
  void run(cudnnHandle_t cudnn, Places& places, const Arrays& arrays) const {
    check(cudnnBackendExecute(cudnn, plan_.get(), places.told(arrays)), "running a convolution");
  }

 private:
  using Node = std::unique_ptr<void, Destroy<cudnnBackendDestroyDescriptor>>;
  ConvolutionPlan(Node config, Node plan, std::size_t workspace, std::string name, std::string place)
      : config_(std::move(config)),
        plan_(std::move(plan)),
        workspace_(workspace),
        name_(std::move(name)),
        place_(std::move(place)) {}

  struct Offer;
  static std::vector<Offer> offers(const ConvolutionProblem& problem, const Node& graph, int list);
  // Null when the engine turns out not to take the problem.
  static std::shared_ptr<const ConvolutionPlan> prepare(cudnnHandle_t cudnn, Offer offer);

  Node config_, plan_;
  std::size_t workspace_;
  std::string name_, place_;
};

}  // namespace fleetrun::cuda
