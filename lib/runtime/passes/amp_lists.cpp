#include "runtime/passes/amp_lists.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/text/suggest.h"

namespace fleetrun::runtime {
namespace {

constexpr std::array kWhite = {"conv2d", "fc"};

constexpr std::array kGray = {"elementwise_add",
                              "elementwise_sub",
                              "elementwise_mul",
                              "elementwise_div",
                              "elementwise_max",
                              "elementwise_min",
                              "elementwise_pow",
                              "elementwise_mod",
                              "elementwise_floordiv",
                              "batch_norm",
                              "layer_norm",
                              "tanh",
                              "sigmoid",
                              "lookup_table",
                              "lookup_table_v2",
                              "top_k",
                              "pool2d",
                              "pool3d",
                              "dropout",
                              "relu",
                              "relu6",
                              "leaky_relu",
                              "soft_relu",
                              "flatten2",
                              "stack",
                              "unstack",
                              "uniform_random_batch_size_like",
                              "gaussian_random",
                              "gaussian_random_batch_size_like",
                              "slice",
                              "rank",
                              "scale",
                              "transpose2",
                              "reshape2",
                              "gather",
                              "fill_constant",
                              "get_tensor_from_selected_rows",
                              "sign",
                              "cast",
                              "concat"};

// Besides ops that nobody lists.
constexpr std::array kBlack = {"exp",
                               "square",
                               "log",
                               "mean",
                               "sum",
                               "cos_sim",
                               "softmax",
                               "softmax_with_cross_entropy",
                               "sigmoid_cross_entropy_with_logits",
                               "cross_entropy",
                               "cross_entropy2",
                               "depthwise_conv2d",
                               "accuracy"};

// Those that have narrow kernels.
constexpr std::array kCanBeNarrow = {"batch_norm", "concat",          "conv2d", "depthwise_conv2d",
                                     "dropout",    "elementwise_add", "fc",     "pool2d",
                                     "relu",       "relu6",           "scale"};

// PaddlePaddle's names for what is one op here.
constexpr std::array kNamesOfFc = {"mul", "matmul", "matmul_v2"};

template <typename Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string our_name(const std::string& name) { return contains(kNamesOfFc, name) ? "fc" : name; }

// A convolution of each channel by itself is another op there.
std::string name_of(const OpView& op) {
  const std::string& type = op.op().type;
  if (type != "conv2d") return type;
  const std::int64_t groups = op.integer("groups");
  return groups > 1 && groups == op.input("x").shape.at(1) ? "depthwise_conv2d" : type;
}

class Lists {
 public:
  Lists() {
    const auto add = [&](const auto& names, AmpColor color) {
      for (const char* name : names) colors_[name] = color;
    };
    add(kWhite, AmpColor::white);
    add(kGray, AmpColor::gray);
    add(kBlack, AmpColor::black);
  }

  void change(const std::string& key, const std::vector<std::string>& names, AmpColor color) {
    for (const std::string& name : names) {
      if (colors_.count(our_name(name)) == 0) throw unknown(key, name);
      if (color == AmpColor::white && !contains(kCanBeNarrow, our_name(name)))
        throw Error(ErrorKind::config,
                    fmt::format("{} has {}, which computes in f32 only; those that do not are {}", key, name,
                                fmt::join(kCanBeNarrow, ", ")));
      colors_[our_name(name)] = color;
    }
  }

  std::map<std::string, AmpColor, std::less<>> take() { return std::move(colors_); }

 private:
  Error unknown(const std::string& key, const std::string& name) const {
    std::vector<std::string> known(kNamesOfFc.begin(), kNamesOfFc.end());
    for (const auto& [op, color] : colors_) known.push_back(op);
    const auto meant = closest(name, known);
    return Error(ErrorKind::config, fmt::format("{} has {}, which is not an op{}", key, name,
                                                meant ? fmt::format("; did you mean {}?", *meant) : ""));
  }

  std::map<std::string, AmpColor, std::less<>> colors_;
};

constexpr const char* kWhiteKey = "strategy.amp_configs.custom_white_list";
constexpr const char* kBlackKey = "strategy.amp_configs.custom_black_list";

}  // namespace

AmpLists::AmpLists(const job::AmpSpec& amp) {
  for (const std::string& white : amp.custom_white_list)
    for (const std::string& black : amp.custom_black_list)
      if (our_name(white) == our_name(black))
        throw Error(ErrorKind::config, fmt::format("{} has {} and {} has {}, wanted it in one of them",
                                                   kWhiteKey, white, kBlackKey, black));
  Lists lists;
  lists.change(kWhiteKey, amp.custom_white_list, AmpColor::white);
  lists.change(kBlackKey, amp.custom_black_list, AmpColor::black);
  colors_ = lists.take();
}

AmpColor AmpLists::color_of(const OpView& op) const {
  const auto found = colors_.find(name_of(op));
  return found == colors_.end() ? AmpColor::black : found->second;
}

}  // namespace fleetrun::runtime
