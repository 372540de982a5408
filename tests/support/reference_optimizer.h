// Optimizers in double precision, written from their papers: what the trainings of the tests are compared with.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fleetrun::runtime::test {

using Tensor = std::vector<double>;
using Tensors = std::map<std::string, Tensor>;

inline double norm_of(const Tensor& x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  return std::sqrt(squares);
}

inline double norm_of(const Tensors& tensors) {
  double squares = 0;
  for (const auto& [name, x] : tensors) squares += norm_of(x) * norm_of(x);
  return std::sqrt(squares);
}

// What one optimizer does to one parameter w with the gradient g, in step t = 1, 2, ...
struct Place {
  Tensor &w, &a, &b;  // a and b: the states of the optimizer, 0 at first
  const Tensor& g;
  int t;
  bool decays;
};
using Rule = std::function<void(const Place&)>;

inline Rule plain_sgd(double rate) {
  return [=](const Place& p) {
    for (std::size_t i = 0; i < p.w.size(); ++i) p.w[i] -= rate * p.g[i];
  };
}

// Sutskever et al. 2013, "On the importance of initialization and momentum in deep learning", with the rate outside of the velocity and
// the decay as a part of the gradient (L2).
inline Rule momentum(double rate, double mu, double decay, bool nesterov) {
  return [=](const Place& p) {
    for (std::size_t i = 0; i < p.w.size(); ++i) {
      const double g = p.g[i] + (p.decays ? decay : 0) * p.w[i];
      p.a[i] = mu * p.a[i] + g;
      p.w[i] -= rate * (nesterov ? g + mu * p.a[i] : p.a[i]);
    }
  };
}

// Kingma and Ba 2015, arXiv:1412.6980, algorithm 1, with the decay as a part of the gradient (L2).
inline Rule adam(double rate, double beta1, double beta2, double epsilon, double decay) {
  return [=](const Place& p) {
    const double of_a = 1 - std::pow(beta1, p.t), of_b = 1 - std::pow(beta2, p.t);
    for (std::size_t i = 0; i < p.w.size(); ++i) {
      const double g = p.g[i] + (p.decays ? decay : 0) * p.w[i];
      p.a[i] = beta1 * p.a[i] + (1 - beta1) * g;
      p.b[i] = beta2 * p.b[i] + (1 - beta2) * g * g;
      p.w[i] -= rate * (p.a[i] / of_a) / (std::sqrt(p.b[i] / of_b) + epsilon);
    }
  };
}

// Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2.
inline Rule adamw(double rate, double beta1, double beta2, double epsilon, double decay) {
  return [=](const Place& p) {
    const double of_a = 1 - std::pow(beta1, p.t), of_b = 1 - std::pow(beta2, p.t);
    for (std::size_t i = 0; i < p.w.size(); ++i) {
      p.a[i] = beta1 * p.a[i] + (1 - beta1) * p.g[i];
      p.b[i] = beta2 * p.b[i] + (1 - beta2) * p.g[i] * p.g[i];
      const double m = p.a[i] / of_a, v = p.b[i] / of_b;
      p.w[i] -= rate * (m / (std::sqrt(v) + epsilon) + (p.decays ? decay : 0) * p.w[i]);
    }
  };
}

// You, Gitman and Ginsburg 2017, arXiv:1708.03888, algorithm 1; a parameter that does not decay is not scaled, either.
inline Rule lars(double rate, double mu, double coeff, double decay) {
  return [=](const Place& p) {
    const double w = norm_of(p.w), g = norm_of(p.g);
    const double own = p.decays && w > 0 && g > 0 ? rate * coeff * w / (g + decay * w) : rate;
    for (std::size_t i = 0; i < p.w.size(); ++i) {
      p.a[i] = mu * p.a[i] + own * (p.g[i] + (p.decays ? decay : 0) * p.w[i]);
      p.w[i] -= p.a[i];
    }
  };
}

// You et al. 2020, arXiv:1904.00962, algorithm 2, with the identity for phi.
inline Rule lamb(double rate, double beta1, double beta2, double epsilon, double decay) {
  return [=](const Place& p) {
    const double of_a = 1 - std::pow(beta1, p.t), of_b = 1 - std::pow(beta2, p.t);
    Tensor direction(p.w.size());
    for (std::size_t i = 0; i < p.w.size(); ++i) {
      p.a[i] = beta1 * p.a[i] + (1 - beta1) * p.g[i];
      p.b[i] = beta2 * p.b[i] + (1 - beta2) * p.g[i] * p.g[i];
      const double m = p.a[i] / of_a, v = p.b[i] / of_b;
      direction[i] = m / (std::sqrt(v) + epsilon) + (p.decays ? decay : 0) * p.w[i];
    }
    const double w = norm_of(p.w), d = norm_of(direction);
    const double ratio = w > 0 && d > 0 ? w / d : 1;
    for (std::size_t i = 0; i < p.w.size(); ++i) p.w[i] -= rate * ratio * direction[i];
  };
}

// All parameters of a model.
class Reference {
 public:
  Reference(Tensors weights, Rule rule) : weights_(std::move(weights)), rule_(std::move(rule)) {}

  std::function<void(Tensors& gradients)> clip = nullptr;
  std::function<Rule(const std::string& name)> rule_of = nullptr;  // for names with a rule of their own
  std::function<bool(const std::string& name)> decays = nullptr;   // null: all
  double ema_decay = 0;
  int merges = 1;  // batches whose mean gradient makes one update

  const Tensors& weights() const { return weights_; }

  void step(Tensors gradients) {
    if (merges > 1) {
      add_to_merged(gradients);
      if (++batches_ % merges != 0) return;
      gradients = std::exchange(merged_, {});
    }
    ++steps_;
    if (clip) clip(gradients);
    for (auto& [name, w] : weights_) {
      Tensor &a = first_[name], &b = second_[name];
      a.resize(w.size());
      b.resize(w.size());
      (rule_of ? rule_of(name) : rule_)({w, a, b, gradients.at(name), steps_, !decays || decays(name)});
    }
    if (ema_decay > 0) history_.push_back(weights_);
  }

  // The weights of all steps so far, those of step i with the weight decay^(t-i).
  Tensors average() const {
    Tensors sum;
    double all = 0;
    for (std::size_t i = 0; i < history_.size(); ++i) {
      const double share = std::pow(ema_decay, static_cast<double>(history_.size() - 1 - i));
      all += share;
      for (const auto& [name, w] : history_[i]) {
        Tensor& x = sum[name];
        x.resize(w.size());
        for (std::size_t k = 0; k < w.size(); ++k) x[k] += share * w[k];
      }
    }
    for (auto& [name, x] : sum)
      for (double& value : x) value /= all;
    return sum;
  }

 private:
  void add_to_merged(const Tensors& gradients) {
    for (const auto& [name, g] : gradients) {
      Tensor& sum = merged_[name];
      sum.resize(g.size());
      for (std::size_t i = 0; i < g.size(); ++i) sum[i] += g[i] / merges;
    }
  }

  Tensors weights_, first_, second_, merged_;
  Rule rule_;
  int steps_ = 0, batches_ = 0;
  std::vector<Tensors> history_;
};

}  // namespace fleetrun::runtime::test
