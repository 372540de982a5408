#pragma once

#include <cstddef>

namespace fleetrun::cuda::on_host {

struct ProductSizes {
  std::size_t m, k, n;
  std::size_t step;  // from one row to the next, of b and of the sums
};

// sums += a * b by rows, with a: m x k, b: k x n, and sums: m x n.
void add_product(const ProductSizes& sizes, const double* a, const double* b, double* sums);

}  // namespace fleetrun::cuda::on_host
