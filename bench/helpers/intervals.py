"""What benchmarks say of how sure they are."""


def interval_of_median(ratios):
    """The 95 % interval of the median by ranks (binomial), whatever the distribution."""
    ordered, n = sorted(ratios), len(ratios)
    reach = 0.98 * n ** 0.5  # 1.96 standard deviations of Binomial(n, 1/2)
    low, high = max(0, round(n / 2 - reach) - 1), min(n - 1, round(n / 2 + reach))
    return ordered[low], ordered[high]
