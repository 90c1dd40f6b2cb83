/* The paper's rules with the hinge loss, mean field, and NGVI with a full covariance, as one would write them by hand in C.
 *
 * The same game as src/onlinevi/engine/loop.py, its sums and its refusal of bad labels and of what is not finite included; no
 * ridge, no row weights, no recording. reference.py compiles it with -O3 -march=native -ffast-math, which is more freedom than
 * our own kernels take: ours keep NaN and infinity meaningful. oga_unchecked has less to do.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define RESTRICT restrict

/* By its bits: -ffast-math takes every number to be finite, and isfinite to be true. */
static inline int is_number(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (bits >> 52 & 0x7ff) != 0x7ff;
}

static inline double larger(double x, double y) { return x > y ? x : y; }
static inline double clip(double x, double low, double high) { return x < low ? low : (x > high ? high : x); }

typedef struct {
  double expected, slope, curvature;
} Hinge;

/* The expected loss under N(a, v²) and its derivatives in a; of a point where there is no spread to divide by. */
static inline Hinge hinge(double y, double a, double v) {
  const double margin = 1 - y * a;
  if (v < 1e-150) return (Hinge){larger(margin, 0), margin > 0 ? -y : 0, 0};
  const double r = margin / v;
  const double active = 0.5 * erfc(-r * M_SQRT1_2), density = exp(-0.5 * r * r) * 0.3989422804014327;
  return (Hinge){margin * active + v * density, -y * active, density / v};
}

typedef struct {
  double loss, expected, product, gradient_square, largest_square, count;
} Sums;

/* Sum what an event cost, unless it is to be refused. */
static inline int accept(Sums *sums, double y, double a, double variance, double cost, double expected, double product,
                         double gradient_square) {
  const double costs = sums->loss + cost + sums->expected + expected + sums->product + product;
  if (!is_number(a + variance + costs + sums->gradient_square + gradient_square) || y * y != 1) return 0;
  sums->loss += cost;
  sums->expected += expected;
  sums->product += product;
  sums->gradient_square += gradient_square;
  sums->largest_square = larger(sums->largest_square, gradient_square);
  sums->count += 1;
  return 1;
}

/* box: mean low and high, std low and high. */
#define PASS(NAME, KEEPS_STD_TOTAL, RATE, STEP)                                                                     \
  void NAME(const double *RESTRICT X, const double *RESTRICT labels, long rows, long dim, double scale,             \
            const double *RESTRICT box, double *RESTRICT mean, double *RESTRICT std, double *RESTRICT mean_total,   \
            double *RESTRICT std_total, Sums *RESTRICT all_sums) {                                                  \
    const double mean_low = box[0], mean_high = box[1], std_low = box[2], std_high = box[3];                        \
    Sums sums = *all_sums;                                                                                          \
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
      const Hinge at = hinge(y, a, sqrt(variance));                                                                 \
      const double slope = at.slope, curvature = at.curvature, product = slope * a + curvature * variance;          \
      const double square = slope * slope * row_square + curvature * curvature * spread_square;                     \
      if (!accept(&sums, y, a, variance, larger(1 - y * a, 0), at.expected, product, square)) break;                \
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
    *all_sums = sums;                                                                                               \
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

/* A point has no spread: its own short loop. An event beyond the margin costs nothing and moves nothing. */
#define POINT_PASS(NAME, IDLE, ACCEPT)                                                                              \
  void NAME(const double *RESTRICT X, const double *RESTRICT labels, long rows, long dim, double rate,              \
            const double *RESTRICT box, double *RESTRICT mean, double *RESTRICT std, double *RESTRICT mean_total,   \
            double *RESTRICT std_total, Sums *RESTRICT all_sums) {                                                  \
    const double mean_low = box[0], mean_high = box[1];                                                             \
    Sums sums = *all_sums;                                                                                          \
    (void)std;                                                                                                      \
    (void)std_total;                                                                                                \
    for (long i = 0; i < rows; i++) {                                                                               \
      const double *RESTRICT x = X + i * dim;                                                                       \
      const double y = labels[i];                                                                                   \
      double a = 0, row_square = 0;                                                                                 \
      for (long j = 0; j < dim; j++) {                                                                              \
        a += mean[j] * x[j];                                                                                        \
        row_square += x[j] * x[j];                                                                                  \
      }                                                                                                             \
      const double margin = 1 - y * a;                                                                              \
      if (IDLE) continue;                                                                                           \
      if (!(ACCEPT)) break;                                                                                         \
      for (long j = 0; j < dim; j++) {                                                                              \
        const double g = -y * x[j];                                                                                 \
        mean_total[j] += g;                                                                                         \
        mean[j] = clip(mean[j] - rate * g, mean_low, mean_high);                                                    \
      }                                                                                                             \
    }                                                                                                               \
    *all_sums = sums;                                                                                               \
  }

POINT_PASS(oga, margin <= 0 && is_number(a + row_square) && y * y == 1 && (sums.count += 1),
           accept(&sums, y, a, 0, larger(margin, 0), larger(margin, 0), -y * a, row_square))

/* As it was first measured: no look at labels, at what is not finite, or for the largest gradient. */
POINT_PASS(oga_unchecked, margin <= 0,
           (sums.loss += margin, sums.expected += margin, sums.product += -y * a, sums.gradient_square += row_square, 1))

/* Σ = CᵀC, the upper triangle of C packed row by row: C_kj lies at C + k·dim − k·(k + 1)/2 + j. A step conditions on the
 * prediction, rows from the last one up, as in src/onlinevi/beliefs/full_steps.py. work: room for w = C·x and for S. */
void ngvi_full(const double *RESTRICT X, const double *RESTRICT labels, long rows, long dim, double rate,
               const double *RESTRICT box, double *RESTRICT mean, double *RESTRICT factor, double *RESTRICT mean_total,
               double *RESTRICT work, Sums *RESTRICT all_sums) {
  const double mean_low = box[0], mean_high = box[1];
  Sums sums = *all_sums;
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
    const Hinge at = hinge(y, a, sqrt(variance));
    const double slope = at.slope, curvature = at.curvature, product = slope * a + curvature * variance;
    const double square = slope * slope * row_square + curvature * curvature * spread_square;
    if (!accept(&sums, y, a, variance, larger(1 - y * a, 0), at.expected, product, square)) break;
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
  *all_sums = sums;
}
