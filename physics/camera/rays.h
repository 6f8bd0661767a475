// Rays at geoms: the body of a kernel, after the preamble of traced programs (physics/trace/preamble.py).
//
// T, M and W are a number, a truth and an integer of each lane; on a CPU lanes are 16 neighbouring pixels, on a
// GPU a thread has one. A ray starts at `o` and runs along `d`; distances are in lengths of `d`. Geoms are met
// from outside alone, as MuJoCo's renderer culls back faces.

struct V { T x, y, z; };
auto vec_ = [](T x, T y, T z) -> V { V v; v.x = x; v.y = y; v.z = z; return v; };
auto plus_ = [&](V a, V b) -> V { return vec_(a.x + b.x, a.y + b.y, a.z + b.z); };
auto minus_ = [&](V a, V b) -> V { return vec_(a.x - b.x, a.y - b.y, a.z - b.z); };
auto times_ = [&](V a, T s) -> V { return vec_(a.x * s, a.y * s, a.z * s); };
auto dot_ = [](V a, V b) -> T { return a.x * b.x + a.y * b.y + a.z * b.z; };
auto cross_ = [&](V a, V b) -> V {
  return vec_(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x); };
auto pick_ = [&](M m, V a, V b) -> V { return vec_(where_(m, a.x, b.x), where_(m, a.y, b.y), where_(m, a.z, b.z)); };
auto unit_ = [&](V a) -> V { return times_(a, F(1.0f) / sqrt_(max_(dot_(a, a), F(1e-30f)))); };
auto choose_ = [](M m, W a, W b) -> W { return m ? a : b; };

const float FAR = 1e10f;  // beyond everything

// The scene, whose rows are those of physics/camera/view.py, and the constants of a geom.
auto scene_ = [&](int row) -> float { return view.scene.data[(size_t)world * view.rows + row]; };
auto trait_ = [&](int geom, int k) -> float { return view.traits.data[geom * TRAITS + k]; };
auto number_ = [&](int geom, int k) -> int { return view.numbers.data[geom * NUMBERS + k]; };

struct Geom { float p[3], r[9], s[3]; int kind; };
auto geom_ = [&](int index) -> Geom {
  Geom g; const int row = GEOMS + 15 * index;
  for (int k = 0; k < 3; ++k) { g.p[k] = scene_(row + k); g.s[k] = scene_(row + 12 + k); }
  for (int k = 0; k < 9; ++k) g.r[k] = scene_(row + 3 + k);
  g.kind = number_(index, KIND);
  return g; };
auto inward_ = [&](const Geom& g, V v) -> V {  // from the camera's axes to the geom's
  return vec_(F(g.r[0]) * v.x + F(g.r[3]) * v.y + F(g.r[6]) * v.z, F(g.r[1]) * v.x + F(g.r[4]) * v.y + F(g.r[7]) * v.z,
              F(g.r[2]) * v.x + F(g.r[5]) * v.y + F(g.r[8]) * v.z); };
auto outward_ = [&](const Geom& g, V v) -> V {
  return vec_(F(g.r[0]) * v.x + F(g.r[1]) * v.y + F(g.r[2]) * v.z, F(g.r[3]) * v.x + F(g.r[4]) * v.y + F(g.r[5]) * v.z,
              F(g.r[6]) * v.x + F(g.r[7]) * v.y + F(g.r[8]) * v.z); };

// A sphere about a geom: centre and radius; the radius of planes is endless.
struct Ball { float x, y, z, r; };
auto ball_ = [&](int index, const Geom& g) -> Ball {
  const float x = g.s[0], y = g.s[1], z = g.s[2];
  Ball b = {g.p[0], g.p[1], g.p[2], FAR};
  if (g.kind == SPHERE) b.r = x;
  if (g.kind == CAPSULE) b.r = x + y;
  if (g.kind == CYLINDER) b.r = wp::sqrt(x * x + y * y);
  if (g.kind == ELLIPSOID) b.r = wp::max(x, wp::max(y, z));
  if (g.kind == BOX) b.r = wp::sqrt(x * x + y * y + z * z);
  if (g.kind == MESH || g.kind == HFIELD) {
    const float c[3] = {trait_(index, CENTER_X), trait_(index, CENTER_Y), trait_(index, CENTER_Z)};
    b.x += g.r[0] * c[0] + g.r[1] * c[1] + g.r[2] * c[2];
    b.y += g.r[3] * c[0] + g.r[4] * c[1] + g.r[5] * c[2];
    b.z += g.r[6] * c[0] + g.r[7] * c[1] + g.r[8] * c[2];
    b.r = trait_(index, RADIUS);
  }
  b.r = b.r * 1.0001f + 1e-6f;
  return b; };

// A hit: the distance and the outward normal, of any length, in the geom's axes. FAR: no hit.
struct Hit { T t; V n; };

auto ray_plane_ = [&](const Geom& g, V o, V d) -> Hit {
  Hit h; h.n = vec_(F(0.0f), F(0.0f), F(1.0f));
  const M falls = and_(d.z < F(0.0f), o.z > F(0.0f));
  const T t = -o.z / where_(falls, d.z, F(-1.0f));
  M hit = falls;
  if (g.s[0] > 0.0f) hit = and_(hit, abs_(o.x + t * d.x) <= F(g.s[0]));
  if (g.s[1] > 0.0f) hit = and_(hit, abs_(o.y + t * d.y) <= F(g.s[1]));
  h.t = where_(hit, t, F(FAR));
  return h; };

// The distance to a sphere about the origin; the point nearest to it keeps float32 precise from afar.
auto ray_ball_ = [&](V o, V d, float radius) -> T {
  const T a = F(1.0f) / dot_(d, d), middle = -dot_(o, d) * a;
  const V near = plus_(o, times_(d, middle));
  const T room = (F(radius * radius) - dot_(near, near)) * a;
  return where_(room >= F(0.0f), middle - sqrt_(max_(room, F(0.0f))), F(FAR)); };

auto ray_sphere_ = [&](const Geom& g, V o, V d) -> Hit {
  Hit h; h.t = ray_ball_(o, d, g.s[0]); h.n = plus_(o, times_(d, h.t));
  return h; };

auto ray_ellipsoid_ = [&](const Geom& g, V o, V d) -> Hit {
  const T x = F(1.0f / g.s[0]), y = F(1.0f / g.s[1]), z = F(1.0f / g.s[2]);
  const V e = vec_(o.x * x, o.y * y, o.z * z), f = vec_(d.x * x, d.y * y, d.z * z);
  Hit h; h.t = ray_ball_(e, f, 1.0f);
  const V p = plus_(e, times_(f, h.t));
  h.n = vec_(p.x * x, p.y * y, p.z * z);
  return h; };

// The distance to the round side of an endless cylinder along z.
auto ray_tube_ = [&](V o, V d, float radius) -> T {
  const T square = d.x * d.x + d.y * d.y;
  const M moves = square > F(1e-12f);
  const T a = F(1.0f) / where_(moves, square, F(1.0f)), middle = -(o.x * d.x + o.y * d.y) * a;
  const T x = o.x + middle * d.x, y = o.y + middle * d.y, room = (F(radius * radius) - x * x - y * y) * a;
  return where_(and_(moves, room >= F(0.0f)), middle - sqrt_(max_(room, F(0.0f))), F(FAR)); };

auto ray_capsule_ = [&](const Geom& g, V o, V d) -> Hit {
  const T half = F(g.s[1]), side = ray_tube_(o, d, g.s[0]);
  Hit h; h.t = where_(abs_(o.z + side * d.z) <= half, side, F(FAR));
  for (float end = -1.0f; end <= 1.0f; end += 2.0f) {
    const V from = vec_(o.x, o.y, o.z - half * F(end));
    const T t = ray_ball_(from, d, g.s[0]);
    h.t = min_(h.t, where_((from.z + t * d.z) * F(end) >= F(0.0f), t, F(FAR)));
  }
  const V p = plus_(o, times_(d, h.t));
  h.n = vec_(p.x, p.y, p.z - min_(max_(p.z, -half), half));
  return h; };

auto ray_cylinder_ = [&](const Geom& g, V o, V d) -> Hit {
  const T half = F(g.s[1]), side = ray_tube_(o, d, g.s[0]);
  const T end = where_(d.z < F(0.0f), half, -half), t = (end - o.z) / where_(abs_(d.z) > F(1e-12f), d.z, F(1e-12f));
  const T x = o.x + t * d.x, y = o.y + t * d.y;
  const M lid = x * x + y * y <= F(g.s[0] * g.s[0]), round = abs_(o.z + side * d.z) <= half;
  Hit h; h.t = where_(lid, t, where_(round, side, F(FAR)));
  const V p = plus_(o, times_(d, h.t));
  h.n = pick_(lid, vec_(F(0.0f), F(0.0f), end), vec_(p.x, p.y, F(0.0f)));
  return h; };

auto inverse_ = [&](T x) -> T { return F(1.0f) / where_(abs_(x) > F(1e-12f), x, F(1e-12f)); };

auto ray_box_ = [&](const Geom& g, V o, V d) -> Hit {
  const V i = vec_(inverse_(d.x), inverse_(d.y), inverse_(d.z)), c = vec_(o.x * i.x, o.y * i.y, o.z * i.z);
  const V e = vec_(abs_(i.x) * F(g.s[0]), abs_(i.y) * F(g.s[1]), abs_(i.z) * F(g.s[2]));
  const T x = -c.x - e.x, y = -c.y - e.y, z = -c.z - e.z, enter = max_(x, max_(y, z));
  const T leave = min_(e.x - c.x, min_(e.y - c.y, e.z - c.z)), none = F(0.0f), one = F(1.0f);
  Hit h; h.t = where_(enter <= leave, enter, F(FAR));
  const M along_x = x >= enter, along_y = y >= enter;
  h.n = pick_(along_x, vec_(where_(d.x < none, one, -one), none, none),
              pick_(along_y, vec_(none, where_(d.y < none, one, -one), none), vec_(none, none, where_(d.z < none, one, -one))));
  return h; };

// The nearest front of a tree's triangles between two distances (physics/camera/triangles.py): all lanes visit
// a box if one meets it. Triangles: Moeller and Trumbore 1997, with room for rounding at their edges.
auto ray_tree_ = [&](int index, V o, V d, T least, T most) -> Hit {
  const int leaves = number_(index, LEAVES);
  const float* boxes = view.boxes.data + (size_t)6 * number_(index, FIRST_BOX);
  const float* triangles = view.triangles.data + (size_t)9 * number_(index, FIRST_TRIANGLE);
  const T inverse[3] = {inverse_(d.x), inverse_(d.y), inverse_(d.z)};
  const T start[3] = {o.x * inverse[0], o.y * inverse[1], o.z * inverse[2]};
  int near[3], far[3]; bool mixed[3]; float way[3];
  for (int a = 0; a < 3; ++a) {  // which side of a box the rays meet first, unless they differ
    T speed = inverse[a]; way[a] = 1.0f / lane_(speed, 0);
    mixed[a] = any_(speed < F(0.0f)) && any_(speed > F(0.0f));
    near[a] = way[a] < 0.0f ? a + 3 : a; far[a] = way[a] < 0.0f ? a : a + 3;
  }
  Hit h; h.t = F(FAR); h.n = vec_(F(0.0f), F(0.0f), F(0.0f));
  int stack[32], top = 0; stack[top++] = 1;
  while (top > 0) {
    const int k = stack[--top]; const float* b = boxes + 6 * k;
    T enter = least, leave = min_(h.t, most);
    for (int a = 0; a < 3; ++a) {
      const T one = F(b[near[a]]) * inverse[a] - start[a], two = F(b[far[a]]) * inverse[a] - start[a];
      enter = max_(enter, mixed[a] ? min_(one, two) : one);
      leave = min_(leave, mixed[a] ? max_(one, two) : two);
    }
    if (!any_(enter <= leave * F(1.000001f) + F(1e-7f))) continue;
    if (k < leaves) {  // the nearer half is visited first
      const float *l = b + 6 * k, *r = l + 6;
      const float gap = (r[0] + r[3] - l[0] - l[3]) * way[0] + (r[1] + r[4] - l[1] - l[4]) * way[1] + (r[2] + r[5] - l[2] - l[5]) * way[2];
      stack[top++] = gap < 0.0f ? 2 * k : 2 * k + 1; stack[top++] = gap < 0.0f ? 2 * k + 1 : 2 * k;
      continue;
    }
    for (int f = 0; f < LEAF; ++f) {
      const float* a = triangles + 9 * ((k - leaves) * LEAF + f);
      const V one = vec_(F(a[3]), F(a[4]), F(a[5])), two = vec_(F(a[6]), F(a[7]), F(a[8]));
      const V from = vec_(o.x - F(a[0]), o.y - F(a[1]), o.z - F(a[2])), across = cross_(d, two);
      const T volume = dot_(one, across);
      const M front = volume > F(1e-20f);
      if (!any_(front)) continue;
      const V aside = cross_(from, one);
      const T scale = F(1.0f) / where_(front, volume, F(1.0f)), u = dot_(from, across) * scale, v = dot_(d, aside) * scale;
      const T t = dot_(two, aside) * scale, edge = F(-1e-5f);
      const M inside = and_(and_(u >= edge, v >= edge), u + v <= F(1.0f) - edge);
      const M hit = and_(and_(front, inside), and_(and_(t >= least, t < h.t), t < most));
      if (!any_(hit)) continue;
      h.t = where_(hit, t, h.t);
      h.n = pick_(hit, cross_(one, two), h.n);
    }
  }
  return h; };

auto ray_geom_ = [&](int index, const Geom& g, V o, V d, T least, T most) -> Hit {
  const V origin = inward_(g, minus_(o, vec_(F(g.p[0]), F(g.p[1]), F(g.p[2])))), way = inward_(g, d);
  switch (g.kind) {
    case PLANE: return ray_plane_(g, origin, way);
    case SPHERE: return ray_sphere_(g, origin, way);
    case CAPSULE: return ray_capsule_(g, origin, way);
    case ELLIPSOID: return ray_ellipsoid_(g, origin, way);
    case CYLINDER: return ray_cylinder_(g, origin, way);
    case BOX: return ray_box_(g, origin, way);
    default: return ray_tree_(index, origin, way, least, most);
  } };

auto meets_ball_ = [&](const Ball& b, V o, V d, T least, T most) -> M {
  const V c = minus_(vec_(F(b.x), F(b.y), F(b.z)), o);
  const T a = F(1.0f) / dot_(d, d), middle = dot_(c, d) * a;
  const V off = minus_(c, times_(d, middle));
  const T room = F(b.r) * sqrt_(a);
  return and_(dot_(off, off) <= F(b.r * b.r), and_(middle + room >= least, middle - room <= most)); };
