/* The paper's rules with the hinge loss, mean field, and NGVI with a full covariance, as one would write them by hand in C.
 *
 * The same game as src/onlinevi/linear.py, accumulators and finiteness check included; no ridge, no row weights, no
 * recording. reference.py compiles it with -O3 -march=native -ffast-math, which is more freedom than our own kernels take:
 * ours keep NaN and infinity meaningful.
 */
#include <math.h>

#define RESTRICT restrict

static inline double clip(double x, double low, double high) { return x < low ? low : (x > high ? high : x); }

/* sums: loss, expected loss, product, squared gradient. box: mean low and high, std low and high. */
#define PASS(NAME, KEEPS_STD_TOTAL, RATE, STEP)                                                                     \
  void NAME(const double *RESTRICT X, const double *RESTRICT labels, long rows, long dim, double scale,             \
            const double *RESTRICT box, double *RESTRICT mean, double *RESTRICT std, double *RESTRICT mean_total,   \
            double *RESTRICT std_total, double *RESTRICT sums) {                                                    \
    const double mean_low = box[0], mean_high = box[1], std_low = box[2], std_high = box[3];                        \
    for (long i = 0; i < rows; i++) {                                                                               \
      const double *RESTRICT x = X + i * dim;                                                                       \
      const double y = labels[i];                                                                                   \
      double a = 0, variance = 0, row_square = 0, spread_square = 0;                                                \
      for (long j = 0; j < dim; j++) {                                                                              \
        const double spread = std[j] * x[j];                                                                        \
        a += mean[j] * x[j];                                                                                        \
        variance += spread * spread;                                                                                \
        row_square += x[j] * x[j];                                                                                  \
        spread_square += (spread * x[j]) * (spread * x[j]);                                                         \
      }                                                                                                             \
      const double v = sqrt(variance), margin = 1 - y * a, r = margin / v;                                          \
      const double active = 0.5 * erfc(-r * M_SQRT1_2), density = exp(-0.5 * r * r) * 0.3989422804014327;           \
      const double slope = -y * active, curvature = density / v;                                                    \
      sums[0] += margin > 0 ? margin : 0;                                                                           \
      sums[1] += margin * active + v * density;                                                                     \
      sums[2] += slope * a + curvature * variance;                                                                  \
      sums[3] += slope * slope * row_square + curvature * curvature * spread_square;                                \
      if (!isfinite(a + variance + sums[1] + sums[2] + sums[3])) return;                                            \
      const double t = (double)(i + 1), rate = RATE;                                                                \
      (void)t;                                                                                                      \
      for (long j = 0; j < dim; j++) {                                                                              \
        const double g = slope * x[j], c = curvature * x[j] * x[j];                                                 \
        double new_mean, new_std;                                                                                   \
        mean_total[j] += g;                                                                                         \
        if (KEEPS_STD_TOTAL) std_total[j] += c * std[j];                                                            \
        STEP;                                                                                                       \
        mean[j] = clip(new_mean, mean_low, mean_high);                                                              \
        std[j] = clip(new_std, std_low, std_high);                                                                  \
      }                                                                                                             \
    }                                                                                                               \
  }

PASS(oga_el, 0, scale, {
  new_mean = mean[j] - rate * g;
  const double s = std[j] - rate * c * std[j];
  new_std = s > 0 ? s : 0;
})

PASS(sva, 1, scale, {
  const double u = 0.5 * rate * std_total[j];
  new_mean = -rate * mean_total[j];
  new_std = 1 / (sqrt(1 + u * u) + u);
})

PASS(svb, 0, scale / sqrt(t), {
  const double u = 0.5 * rate * c;
  new_mean = mean[j] - rate * g;
  new_std = std[j] / (sqrt(1 + u * u) + u);
})

PASS(ngvi, 0, scale, {
  const double grown = 1 + rate * c * std[j] * std[j];
  new_std = std[j] / sqrt(grown);
  new_mean = mean[j] - rate * new_std * new_std * g;
})

/* A point has no spread: its own short loop. */
void oga(const double *RESTRICT X, const double *RESTRICT labels, long rows, long dim, double rate,
         const double *RESTRICT box, double *RESTRICT mean, double *RESTRICT std, double *RESTRICT mean_total,
         double *RESTRICT std_total, double *RESTRICT sums) {
  const double mean_low = box[0], mean_high = box[1];
  (void)std;
  (void)std_total;
  for (long i = 0; i < rows; i++) {
    const double *RESTRICT x = X + i * dim;
    const double y = labels[i];
    double a = 0, row_square = 0;
    for (long j = 0; j < dim; j++) {
      a += mean[j] * x[j];
      row_square += x[j] * x[j];
    }
    const double margin = 1 - y * a;
    if (margin <= 0) continue;
    sums[0] += margin;
    sums[1] += margin;
    sums[2] += -y * a;
    sums[3] += row_square;
    if (!isfinite(a + sums[3])) return;
    for (long j = 0; j < dim; j++) {
      const double g = -y * x[j];
      mean_total[j] += g;
      mean[j] = clip(mean[j] - rate * g, mean_low, mean_high);
    }
  }
}

/* Σ = CᵀC, the upper triangle of C packed row by row: C_kj lies at C + k·dim − k·(k + 1)/2 + j. A step conditions on the
 * prediction, rows from the last one up, as in src/onlinevi/families/full_steps.py. work: room for w = C·x and for S. */
void ngvi_full(const double *RESTRICT X, const double *RESTRICT labels, long rows, long dim, double rate,
               const double *RESTRICT box, double *RESTRICT mean, double *RESTRICT factor, double *RESTRICT mean_total,
               double *RESTRICT work, double *RESTRICT sums) {
  const double mean_low = box[0], mean_high = box[1];
  double *RESTRICT w = work, *RESTRICT below = work + dim;
  for (long i = 0; i < rows; i++) {
    const double *RESTRICT x = X + i * dim;
    const double y = labels[i];
    double a = 0, variance = 0, row_square = 0, spread_square = 0;
    for (long k = dim - 1; k >= 0; k--) {
      const double *RESTRICT C = factor + k * dim - k * (k + 1) / 2;
      double total = 0;
      for (long j = k; j < dim; j++) total += C[j] * x[j];
      w[k] = total;
      a += mean[k] * x[k];
      row_square += x[k] * x[k];
      variance += total * total;
      spread_square += total * total * row_square;
    }
    const double v = sqrt(variance), margin = 1 - y * a, r = margin / v;
    const double active = 0.5 * erfc(-r * M_SQRT1_2), density = exp(-0.5 * r * r) * 0.3989422804014327;
    const double slope = -y * active, curvature = density / v;
    sums[0] += margin > 0 ? margin : 0;
    sums[1] += margin * active + v * density;
    sums[2] += slope * a + curvature * variance;
    sums[3] += slope * slope * row_square + curvature * curvature * spread_square;
    if (!isfinite(a + variance + sums[1] + sums[2] + sums[3])) return;
    const double growth = rate * curvature, shift = -rate * slope / (1 + growth * variance);
    for (long j = 0; j < dim; j++) below[j] = 0;
    double under = 1;
    for (long k = dim - 1; k >= 0; k--) {
      double *RESTRICT C = factor + k * dim - k * (k + 1) / 2;
      const double over = under + growth * w[k] * w[k], kept = sqrt(under / over), weight = w[k];
      const double from_below = -growth * weight / under * kept;
      for (long j = k; j < dim; j++) {
        const double entry = C[j], sum = below[j];
        C[j] = kept * entry + from_below * sum;
        below[j] = sum + weight * entry;
      }
      under = over;
    }
    for (long j = 0; j < dim; j++) {
      mean_total[j] += slope * x[j];
      mean[j] = clip(mean[j] + shift * below[j], mean_low, mean_high);
    }
  }
}
