"""The C++ preamble: types and operations of emitted code, for one environment or several side by side."""

_SCALAR = """
typedef float T; typedef bool M; typedef int W;
const int LANES = 1;
auto F = [](float x) -> T { return x; };
auto read_ = [&](wp::array_t<wp::float32>& a, int row) -> T { return ((const float*)((const char*)a.data + (size_t)row * a.strides[0]))[env]; };
auto write_ = [&](wp::array_t<wp::float32>& a, int row, T x, M m) { if (m) ((float*)((char*)a.data + (size_t)row * a.strides[0]))[env] = x; };
auto write_int_ = [&](wp::array_t<wp::float32>& a, int row, T x, M m) { if (m) ((int*)((char*)a.data + (size_t)row * a.strides[0]))[env] = (int)x; };
auto ALL = true;
auto any_ = [](M m) -> bool { return m; };
auto and_ = [](M a, M b) -> M { return a && b; };
auto or_ = [](M a, M b) -> M { return a || b; };
auto not_ = [](M a) -> M { return !a; };
auto bit_ = [](W w, int k) -> M { return (w >> k) & 1; };
auto sqrt_ = [](T x) -> T { return wp::sqrt(x); };
auto abs_ = [](T x) -> T { return wp::abs(x); };
auto exp_ = [](T x) -> T { return wp::exp(x); };
auto floor_ = [](T x) -> T { return wp::floor(x); };
auto quadrant_ = [](T x) -> T { return wp::floor(x * 0.636619772f + 0.5f); };
auto atan2_ = [](T y, T x) -> T { return wp::atan2(y, x); };
auto pow_ = [](T x, T y) -> T { return wp::pow(x, y); };
auto gather_ = [](const float* table, int size, T x) -> T { int i = (int)x; return table[i < 0 ? 0 : i < size ? i : size - 1]; };
auto gather_words_ = [](const int* table, int size, T x) -> W { int i = (int)x; return table[i < 0 ? 0 : i < size ? i : size - 1]; };
auto take_ = [](const T* array, int size, T x) -> T { int i = (int)x; return array[i < 0 ? 0 : i < size ? i : size - 1]; };
auto put_ = [](T* array, int size, T x, T value, M m) { int i = (int)x; if (m) array[i < 0 ? 0 : i < size ? i : size - 1] = value; };
auto lane_ = [](T& x, int) -> float& { return x; };
auto lanes_ = [](M m) -> unsigned { return m ? 1u : 0u; };
auto lowest_ = [](unsigned) -> int { return 0; };
auto index_ = [](T x, int) -> int { return (int)x; };
auto word_ = [](W& w, int) -> int& { return w; };
"""

_FLUSH = """
#if defined(__SSE2__)
struct FlushSubnormals {{  // what comes to rest would otherwise crawl through numbers below 1e-38, at a tenth of the speed
  unsigned before;
  FlushSubnormals() : before(__builtin_ia32_stmxcsr()) {{ __builtin_ia32_ldmxcsr(before | 0x8040u); }}
  ~FlushSubnormals() {{ __builtin_ia32_ldmxcsr(before); }}
}} flush_subnormals;
#endif
"""

_VECTOR = """\
const int LANES = {lanes};
typedef float T __attribute__((ext_vector_type({lanes})));
typedef float TU __attribute__((ext_vector_type({lanes}), aligned(4)));
typedef int M __attribute__((ext_vector_type({lanes})));
typedef int MU __attribute__((ext_vector_type({lanes}), aligned(4)));
typedef M W;
auto F = [](float x) -> T {{ return T(x); }};
auto row_ = [&](wp::array_t<wp::float32>& a, int row) -> char* {{ return (char*)a.data + (size_t)row * a.strides[0] + (size_t)env * (4 * {lanes}); }};
auto read_ = [&](wp::array_t<wp::float32>& a, int row) -> T {{ return *(TU*)row_(a, row); }};
auto write_ = [&](wp::array_t<wp::float32>& a, int row, T x, M m) {{ TU* p = (TU*)row_(a, row); *p = m ? x : (T)*p; }};
auto write_int_ = [&](wp::array_t<wp::float32>& a, int row, T x, M m) {{ MU* p = (MU*)row_(a, row); *p = m ? __builtin_convertvector(x, M) : (M)*p; }};
const M ALL = M(-1);
auto any_ = [](M m) -> bool {{ return __builtin_reduce_or(m) != 0; }};
auto and_ = [](M a, M b) -> M {{ return a & b; }};
auto or_ = [](M a, M b) -> M {{ return a | b; }};
auto not_ = [](M a) -> M {{ return ~a; }};
auto bit_ = [](W w, int k) -> M {{ return (w & W(1 << k)) != W(0); }};
auto sqrt_ = [](T x) -> T {{ return __builtin_elementwise_sqrt(x); }};
auto abs_ = [](T x) -> T {{ return __builtin_elementwise_abs(x); }};
auto floor_ = [](T x) -> T {{ return __builtin_elementwise_floor(x); }};
auto quadrant_ = [](T x) -> T {{ return __builtin_elementwise_roundeven(x * T(0.636619772f)); }};
auto atan2_ = [](T y, T x) -> T {{ T r; for (int l = 0; l < {lanes}; ++l) r[l] = wp::atan2((float)y[l], (float)x[l]); return r; }};
auto exp_ = [](T x) -> T {{ T r; for (int l = 0; l < {lanes}; ++l) r[l] = wp::exp((float)x[l]); return r; }};
auto pow_ = [](T x, T y) -> T {{ T r; for (int l = 0; l < {lanes}; ++l) r[l] = wp::pow((float)x[l], (float)y[l]); return r; }};
auto gather_ = [](const float* table, int size, T x) -> T {{
  M i = __builtin_elementwise_min(__builtin_elementwise_max(__builtin_convertvector(x, M), M(0)), M(size - 1));
#if defined(__AVX512F__) && {lanes} == 16  // one instruction, which clang does not find by itself
  return __builtin_ia32_gathersiv16sf(T(0.0f), table, i, -1, 4); }};
#else
  T r; for (int l = 0; l < {lanes}; ++l) r[l] = table[i[l]]; return r; }};
#endif
auto gather_words_ = [](const int* table, int size, T x) -> W {{
  M i = __builtin_elementwise_min(__builtin_elementwise_max(__builtin_convertvector(x, M), M(0)), M(size - 1));
  W r; for (int l = 0; l < {lanes}; ++l) r[l] = table[i[l]]; return r; }};
auto place_ = [](T x, int size) -> M {{
  M lane; for (int l = 0; l < {lanes}; ++l) lane[l] = l;
  return __builtin_elementwise_min(__builtin_elementwise_max(__builtin_convertvector(x, M), M(0)), M(size - 1)) * M({lanes}) + lane; }};
auto take_ = [&](const T* array, int size, T x) -> T {{
  M i = place_(x, size);
#if defined(__AVX512F__) && {lanes} == 16
  return __builtin_ia32_gathersiv16sf(T(0.0f), (const float*)array, i, -1, 4); }};
#else
  T r; for (int l = 0; l < {lanes}; ++l) r[l] = ((const float*)array)[i[l]]; return r; }};
#endif
auto lane_ = [](T& x, int l) -> float& {{ return ((float*)&x)[l]; }};
typedef bool B __attribute__((ext_vector_type({lanes})));
auto lanes_ = [](M m) -> unsigned {{ B b = __builtin_convertvector(m, B); unsigned bits = 0; __builtin_memcpy(&bits, &b, sizeof(b)); return bits; }};
auto lowest_ = [](unsigned bits) -> int {{ return __builtin_ctz(bits); }};
auto index_ = [](T x, int l) -> int {{ return (int)x[l]; }};
auto word_ = [](W& w, int l) -> int& {{ return ((int*)&w)[l]; }};
auto put_ = [&](T* array, int size, T x, T value, M m) {{
  M i = place_(x, size);
#if defined(__AVX512F__) && {lanes} == 16
  __builtin_ia32_scattersiv16sf(array, (unsigned short)lanes_(m), i, value, 4); }};
#else
  for (int l = 0; l < {lanes}; ++l) if (m[l]) ((float*)array)[i[l]] = value[l]; }};
#endif
"""

# Sine and cosine: reduction by multiples of pi/2 in three parts (Cody and Waite), then the minimax polynomials of
# Cephes' sinf and cosf on [-pi/4, pi/4]; accurate to 1e-7 for |x| < 8192. CUDA's own are less accurate in fast
# mathematics, and need a stack without.
_COMMON = """
auto min_ = [](T a, T b) -> T { return a < b ? a : b; };
auto max_ = [](T a, T b) -> T { return a > b ? a : b; };
auto is_ = [](T x, int i) -> M { return x == T((float)i); };
auto where_ = [](M m, T a, T b) -> T { return m ? a : b; };
auto reduced_ = [](T x, T k) -> T { return ((x - T(1.5703125f) * k) - T(4.837512969970703e-4f) * k) - T(7.549789948768648e-8f) * k; };
auto sinp_ = [](T r) -> T { T z = r * r; return ((T(-1.9515295891e-4f) * z + T(8.3321608736e-3f)) * z + T(-1.6666654611e-1f)) * z * r + r; };
auto cosp_ = [](T r) -> T { T z = r * r; return ((T(2.443315711809948e-5f) * z + T(-1.388731625493765e-3f)) * z + T(4.166664568298827e-2f)) * z * z - T(0.5f) * z + T(1.0f); };
auto turn_ = [&](T x, float quarter) -> T {
  T k = quadrant_(x), r = reduced_(x, k), q = k + T(quarter);
  q = q - T(4.0f) * floor_(T(0.25f) * q);
  T s = where_(or_(q == T(1.0f), q == T(3.0f)), cosp_(r), sinp_(r));
  return where_(q < T(2.0f), s, -s); };
auto sin_ = [&](T x) -> T { return turn_(x, 0.0f); };
auto cos_ = [&](T x) -> T { return turn_(x, 1.0f); };
"""


# Access across lanes, in programs that need it.
_ACROSS_SCALAR = """
auto lane_numbers_ = []() -> T { return 0.0f; };
auto take_of_ = [&](const T* array, int size, T x, T) -> T { return take_(array, size, x); };
auto put_of_ = [&](T* array, int size, T x, T value, M m, T) { put_(array, size, x, value, m); };
"""
_ACROSS_VECTOR = """
auto lane_numbers_ = []() -> T {{ T x; for (int l = 0; l < {lanes}; ++l) x[l] = l; return x; }};
auto place_of_ = [](T x, int size, T lane) -> M {{
  return __builtin_elementwise_min(__builtin_elementwise_max(__builtin_convertvector(x, M), M(0)), M(size - 1))
    * M({lanes}) + __builtin_convertvector(lane, M); }};
auto take_of_ = [&](const T* array, int size, T x, T lane) -> T {{
  M i = place_of_(x, size, lane);
#if defined(__AVX512F__) && {lanes} == 16
  return __builtin_ia32_gathersiv16sf(T(0.0f), (const float*)array, i, -1, 4); }};
#else
  T r; for (int l = 0; l < {lanes}; ++l) r[l] = ((const float*)array)[i[l]]; return r; }};
#endif
auto put_of_ = [&](T* array, int size, T x, T value, M m, T lane) {{
  M i = place_of_(x, size, lane);
#if defined(__AVX512F__) && {lanes} == 16
  __builtin_ia32_scattersiv16sf(array, (unsigned short)lanes_(m), i, value, 4); }};
#else
  for (int l = 0; l < {lanes}; ++l) if (m[l]) ((float*)array)[i[l]] = value[l]; }};
#endif
"""


def across(lanes: int) -> str:
  """Return the text of the functions by which `lanes` environments read and write each other's memory."""
  return _ACROSS_SCALAR if lanes == 1 else _ACROSS_VECTOR.format(lanes=lanes)


def preamble(lanes: int) -> str:
  """Return the text before the statements of `lanes` environments side by side."""
  return (_SCALAR if lanes == 1 else (_FLUSH + _VECTOR).format(lanes=lanes)) + _COMMON


# What numbers of all kinds need, at any addresses.
_EXACT = """
#define VECTOR_(scalar, V) typedef scalar V __attribute__((ext_vector_type({lanes})))
VECTOR_(double, D); VECTOR_(long long, L); VECTOR_(unsigned char, C);
#define CONVERSION_(V) auto to_##V##_ = [](auto x) -> V {{ return __builtin_convertvector(x, V); }}
CONVERSION_(T); CONVERSION_(D); CONVERSION_(L); CONVERSION_(M); CONVERSION_(C);
#define OF_TWO_(name, result) auto name##_ = [=](auto a, auto b) {{ return result; }}
OF_TWO_(is_gt, to_M_(a > b)); OF_TWO_(is_ge, to_M_(a >= b)); OF_TWO_(is_eq, to_M_(a == b));
OF_TWO_(is_lt, to_M_(a < b)); OF_TWO_(is_le, to_M_(a <= b)); OF_TWO_(is_ne, to_M_(a != b));
OF_TWO_(bitwise_and, a & b); OF_TWO_(bitwise_or, a | b); OF_TWO_(bitwise_xor, a ^ b); OF_TWO_(rshift, a >> b); OF_TWO_(rsub, b - a);
auto bitwise_not_ = [](auto x) {{ return ~x; }};
auto true_ = [=](auto x) -> M {{ return to_M_(x != 0); }};
auto high_ = [=](L x) -> M {{ return to_M_(x >> 32); }};
auto pick_ = [](M m, auto a, auto b) {{ return __builtin_convertvector(m, decltype(a == b)) ? a : b; }};
OF_TWO_(above, pick_(to_M_((a > b) | (a != a)), a, b)); OF_TWO_(below, pick_(to_M_((a < b) | (a != a)), a, b));
auto finite_ = [=](auto x, auto nan, auto high, auto low) {{
  const auto inf = decltype(x)(__builtin_inf());
  return pick_(to_M_(x != x), nan, pick_(to_M_(x == -inf), low, pick_(to_M_(x == inf), high, x))); }};
#define NUMBER_(l) *(__typeof__(x[0])*)(((char**)memory.data)[number] + offset + ((long long)env * LANES + l) * stride)
auto fetch_ = [&](int number, long long offset, long long stride, auto x) {{
  if (stride == sizeof(x) / LANES) __builtin_memcpy(&x, &NUMBER_(0), sizeof(x));
  else for (int l = 0; l < LANES; ++l) x[l] = NUMBER_(l);
  return x; }};
auto keep_ = [&](int number, long long offset, long long stride, auto x) {{
  if (stride == sizeof(x) / LANES) __builtin_memcpy(&NUMBER_(0), &x, sizeof(x));
  else for (int l = 0; l < LANES; ++l) NUMBER_(l) = x[l]; }};
"""


def exact(lanes: int) -> str:
  """Return the text before the statements of environments with numbers at addresses."""
  return (_VECTOR + _EXACT).format(lanes=lanes)
