#include "cuda/on_host/product.h"

namespace fleetrun::cuda::on_host {

void add_product(const ProductSizes& sizes, const double* a, const double* b, double* sums) {
  for (std::size_t row = 0; row < sizes.m; ++row)
    for (std::size_t i = 0; i < sizes.k; ++i) {
      const double factor = a[row * sizes.k + i];
      const double* const from = b + i * sizes.step;
      double* const to = sums + row * sizes.step;
#pragma GCC ivdep  // nobody adds to what is multiplied
      for (std::size_t column = 0; column < sizes.n; ++column) to[column] += factor * from[column];
    }
}

}  // namespace fleetrun::cuda::on_host
