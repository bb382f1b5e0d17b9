// The matrix product of every instruction set that this machine has, against a plain loop.
#include "cc/cpu/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "cc/cpu/pack.h"

namespace tf_cudnn_rnn::cpu {
namespace {

struct Shape {
  int64_t rows, K, width;
  int gates;  // 0: plain
};

template <class C>
class ProductTest : public testing::Test {
 protected:
  using Values = std::vector<C>;

  Values Random(int64_t n) {
    std::uniform_real_distribution<C> uniform(-1, 1);
    Values values(n);
    for (C& value : values) value = uniform(random_);
    return values;
  }

  // Everything about one product: A [rows, K] and the panels of B [K, columns], and what c starts
  // from.
  void Check(const Kernels<C>& kernels, const Shape& shape, bool by_columns, bool accumulate,
             bool with_bias, int64_t k_begin, int64_t k_end, int64_t panel_begin,
             int64_t panel_end) {
    SCOPED_TRACE(testing::Message()
                 << kernels.name << " rows " << shape.rows << " K " << shape.K << " width "
                 << shape.width << " gates " << shape.gates << (by_columns ? " by columns" : "")
                 << (accumulate ? " accumulate" : "") << (with_bias ? " bias" : "") << " k "
                 << k_begin << " to " << k_end << " panels " << panel_begin << " to " << panel_end);
    const int VL = kernels.vector_length;
    const int64_t columns = shape.width * std::max(1, shape.gates);
    // Of matrices [width, K], one per gate, as the weights lie.
    const Values b = Random(columns * shape.K), a = Random(shape.rows * shape.K);
    const Values start = Random(shape.rows * columns), bias = Random(columns);
    std::vector<char> memory(1 << 20);
    Arena arena(memory.data());
    Panels<C> panels =
        BookPanels<C>(shape.K, shape.width, std::max(1, shape.gates), shape.gates > 0, VL, &arena);
    ASSERT_LE(arena.size(), memory.size());
    const C* sources[4];
    for (int g = 0; g < 4; ++g) sources[g] = b.data() + g * shape.width * shape.K;
    PackTransposed(sources, VL, 0, panels.count, &panels);
    if (panel_end < 0) panel_end = panels.count;
    panel_begin = std::min(panel_begin, panel_end);

    // One element more than there is, which must stay.
    Values c = start;
    c.push_back(C(99));
    std::vector<const C*> a_rows(shape.rows);
    std::vector<C*> c_rows(shape.rows);
    const int64_t stride = shape.rows + 3;
    Values transposed(shape.K * stride);
    for (int64_t m = 0; m < shape.rows; ++m) {
      a_rows[m] = a.data() + m * shape.K;
      c_rows[m] = c.data() + m * columns;
      for (int64_t k = 0; k < shape.K; ++k) transposed[k * stride + m] = a[m * shape.K + k];
    }
    ProductArguments<C> arguments;
    arguments.rows = shape.rows;
    if (by_columns) {
      arguments.columns = transposed.data();
      arguments.column_stride = stride;
    } else {
      arguments.a = a_rows.data();
    }
    arguments.k_begin = k_begin, arguments.k_end = k_end;
    arguments.panels = &panels;
    arguments.panel_begin = panel_begin, arguments.panel_end = panel_end;
    arguments.backwards = shape.rows % 2 == 0;
    arguments.c = c_rows.data();
    arguments.bias = with_bias ? bias.data() : nullptr;
    arguments.accumulate = accumulate;
    kernels.product(arguments);

    EXPECT_EQ(c.back(), C(99));
    const int64_t panel_width = int64_t{VL} * (panels.gated ? 1 : panels.vectors);
    for (int64_t m = 0; m < shape.rows; ++m) {
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t panel = j % shape.width / panel_width;
        const C before = start[m * columns + j];
        if (panel < panel_begin || panel >= panel_end) {
          ASSERT_EQ(c_rows[m][j], before) << "row " << m << " column " << j << " is not ours";
          continue;
        }
        long double sum = accumulate ? before : with_bias ? bias[j] : 0, magnitude = std::abs(sum);
        for (int64_t k = k_begin; k < k_end; ++k) {
          const long double term =
              static_cast<long double>(a[m * shape.K + k]) * b[j * shape.K + k];
          sum += term, magnitude += std::abs(term);
        }
        const double bound = magnitude * std::numeric_limits<C>::epsilon() * (k_end - k_begin + 1);
        ASSERT_NEAR(c_rows[m][j], static_cast<double>(sum), bound)
            << "row " << m << " column " << j;
      }
    }
  }

  template <class F>
  static void ForEachSet(F f) {
    for (const char* name : {"avx512", "avx2", "baseline", "neon"}) {
      if (const Kernels<C>* kernels = KernelsNamed<C>(name)) f(*kernels);
    }
  }

  std::mt19937 random_{3};
};

using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(ProductTest, Types);

// All heights of tiles, all numbers of vectors, plain and gated, rows that end within a vector.
TYPED_TEST(ProductTest, RowsAndVectors) {
  this->ForEachSet([&](const Kernels<TypeParam>& kernels) {
    const int VL = kernels.vector_length;
    for (int64_t rows = 1; rows <= 30; ++rows) {
      for (int vectors = 1; vectors <= 4; ++vectors) {
        const bool by_columns = (rows + vectors) % 2 == 0;
        const int64_t K = 1 + rows % 7;
        const Shape plain = {rows, K, vectors * VL - (rows % VL), 0};
        this->Check(kernels, plain, by_columns, rows % 3 == 1, rows % 3 == 2, 0, K, 0, -1);
        const Shape gated = {rows, K, 1 + (rows * 5) % (2 * VL), vectors};
        this->Check(kernels, gated, !by_columns, rows % 3 == 0, rows % 3 == 1, 0, K, 0, -1);
      }
    }
  });
}

TYPED_TEST(ProductTest, OddWidths) {
  this->ForEachSet([&](const Kernels<TypeParam>& kernels) {
    for (int64_t width = 1; width <= 9 * kernels.vector_length + 3; width += 3) {
      for (bool accumulate : {false, true}) {
        this->Check(kernels, {5, 6, width, 0}, accumulate, accumulate, width % 2 == 0, 0, 6, 0, -1);
        this->Check(kernels, {5, 6, width, 4}, !accumulate, accumulate, width % 2 == 0, 0, 6, 0,
                    -1);
      }
    }
  });
}

TYPED_TEST(ProductTest, PartsOfThePanels) {
  this->ForEachSet([&](const Kernels<TypeParam>& kernels) {
    const int64_t width = 14 * kernels.vector_length - 1;
    for (bool by_columns : {false, true}) {
      for (int gates : {0, 1, 3}) {
        this->Check(kernels, {7, 20, width, gates}, by_columns, true, false, 5, 17, 0, -1);
        this->Check(kernels, {7, 20, width, gates}, by_columns, false, true, 0, 20, 1, 3);
        this->Check(kernels, {7, 20, width, gates}, by_columns, false, false, 8, 8, 0, -1);
      }
    }
  });
}

// Results must not depend on how rows are divided into tiles or columns into panels.
TYPED_TEST(ProductTest, DivisionDoesNotMatter) {
  using C = TypeParam;
  this->ForEachSet([&](const Kernels<C>& kernels) {
    const int64_t rows = 29, K = 300, width = 5 * kernels.vector_length + 1;
    const std::vector<C> a = this->Random(rows * K), b = this->Random(width * K);
    std::vector<char> memory(1 << 20);
    Arena arena(memory.data());
    Panels<C> panels = BookPanels<C>(K, width, 1, false, kernels.vector_length, &arena);
    ASSERT_LE(arena.size(), memory.size());
    const C* source = b.data();
    PackTransposed(&source, kernels.vector_length, 0, panels.count, &panels);
    std::vector<C> expected;
    for (int64_t step : {29, 1, 2, 3, 5, 8, 11, 13, 17}) {
      std::vector<C> c(rows * width);
      for (int64_t row = 0; row < rows; row += step) {
        const int64_t end = std::min(rows, row + step);
        std::vector<const C*> a_rows;
        std::vector<C*> c_rows;
        for (int64_t m = row; m < end; ++m) {
          a_rows.push_back(a.data() + m * K);
          c_rows.push_back(c.data() + m * width);
        }
        for (int64_t p = 0; p < panels.count; ++p) {
          ProductArguments<C> arguments;
          arguments.rows = end - row;
          arguments.a = a_rows.data();
          arguments.panels = &panels;
          arguments.panel_begin = p, arguments.panel_end = p + 1;
          arguments.c = c_rows.data();
          BlockedProduct(kernels, arguments);
        }
      }
      if (expected.empty()) expected = c;
      EXPECT_EQ(c, expected) << kernels.name << " " << step;
    }
  });
}

// The product with a matrix as it is: every number of rows, widths that end within a vector, parts
// of the columns.
TYPED_TEST(ProductTest, Dots) {
  using C = TypeParam;
  this->ForEachSet([&](const Kernels<C>& kernels) {
    const int64_t columns = 11;
    for (int rows = 1; rows <= kMostDotRows; ++rows) {
      for (int64_t K = 1; K <= 3 * kernels.vector_length + 2; ++K) {
        const std::vector<C> a = this->Random(rows * K), w = this->Random(columns * K);
        const std::vector<C> start = this->Random(rows * columns);
        std::vector<C> c = start, divided = start;
        const auto dot = [&](std::vector<C>* to, int64_t begin, int64_t end) {
          const C* a_rows[kMostDotRows];
          C* c_rows[kMostDotRows];
          for (int m = 0; m < rows; ++m) {
            a_rows[m] = a.data() + m * K;
            c_rows[m] = to->data() + m * columns;
          }
          DotArguments<C> arguments;
          arguments.rows = rows;
          arguments.a = a_rows;
          arguments.K = K;
          arguments.w = w.data();
          arguments.begin = begin, arguments.end = end;
          arguments.c = c_rows;
          kernels.dot(arguments);
        };
        dot(&c, 0, columns);
        for (int m = 0; m < rows; ++m) {
          for (int64_t j = 0; j < columns; ++j) {
            long double sum = start[m * columns + j], magnitude = std::abs(sum);
            for (int64_t k = 0; k < K; ++k) {
              const long double term = static_cast<long double>(a[m * K + k]) * w[j * K + k];
              sum += term, magnitude += std::abs(term);
            }
            ASSERT_NEAR(c[m * columns + j], static_cast<double>(sum),
                        magnitude * std::numeric_limits<C>::epsilon() * (K + 1))
                << kernels.name << " K " << K << " row " << m << " column " << j;
          }
        }
        for (int64_t begin = 0; begin < columns; begin += 1 + begin % 3) {
          dot(&divided, begin, std::min(columns, begin + 1 + begin % 3));
        }
        ASSERT_EQ(divided, c) << kernels.name << " K " << K << " rows " << rows;
        dot(&c, 5, 5);
        ASSERT_EQ(divided, c);
      }
    }
  });
}

}  // namespace
}  // namespace tf_cudnn_rnn::cpu
