// Colours: textures, the sky and the lights, as OpenGL's fixed pipeline has them, but for each pixel.

auto color_ = [&](int row) -> V { return vec_(F(scene_(row)), F(scene_(row + 1)), F(scene_(row + 2))); };
auto mix_ = [&](V a, V b) -> V { return vec_(a.x * b.x, a.y * b.y, a.z * b.z); };
auto clear_ = [&](T x) -> T { return min_(max_(x, F(0.0f)), F(1.0f)); };

// The colours of texture pixels of the lanes that `here` holds: u and v from the left upper corner, in images.
auto texel_ = [&](int texture, int face, float u, float v, float* rgb) -> void {
  const int* t = view.textures.data + texture * TEXTURE_NUMBERS;
  const int width = t[1], height = t[2], channels = t[3];
  int column = (int)wp::floor(u * width), row = (int)wp::floor(v * height);
  column = wp::min(wp::max(column, 0), width - 1); row = wp::min(wp::max(row, 0), height - 1);
  const unsigned char* pixel = view.texels.data + t[0] + ((size_t)(face * height + row) * width + column) * channels;
  for (int k = 0; k < 3; ++k) rgb[k] = pixel[channels < 3 ? 0 : k] * (1.0f / 255.0f); };

// A flat texture at (u, v), repeated; a cube's texture in a direction, by the faces of OpenGL.
auto flat_texture_ = [&](int texture, T u, T v, M here) -> V {
  V color = vec_(F(1.0f), F(1.0f), F(1.0f));
  unsigned rest = lanes_(here);
  for (int l = 0; l < LANES; ++l) if ((rest >> l) & 1u) {
    float rgb[3]; const float x = lane_(u, l), y = lane_(v, l);
    texel_(texture, 0, x - wp::floor(x), y - wp::floor(y), rgb);
    lane_(color.x, l) = rgb[0]; lane_(color.y, l) = rgb[1]; lane_(color.z, l) = rgb[2];
  }
  return color; };

auto cube_texture_ = [&](int texture, V d, M here) -> V {
  V color = vec_(F(1.0f), F(1.0f), F(1.0f));
  unsigned rest = lanes_(here);
  for (int l = 0; l < LANES; ++l) if ((rest >> l) & 1u) {
    const float x = lane_(d.x, l), y = lane_(d.y, l), z = lane_(d.z, l);
    const float a = wp::abs(x), b = wp::abs(y), c = wp::abs(z), most = wp::max(a, wp::max(b, c)) + 1e-20f;
    int face; float u, v;
    if (a >= b && a >= c) { face = x > 0.0f ? 0 : 1; u = x > 0.0f ? -z : z; v = -y; }
    else if (b >= c) { face = y > 0.0f ? 2 : 3; u = x; v = y > 0.0f ? z : -z; }
    else { face = z > 0.0f ? 4 : 5; u = z > 0.0f ? x : -x; v = -y; }
    float rgb[3]; texel_(texture, face, 0.5f + 0.5f * u / most, 0.5f + 0.5f * v / most, rgb);
    lane_(color.x, l) = rgb[0]; lane_(color.y, l) = rgb[1]; lane_(color.z, l) = rgb[2];
  }
  return color; };

auto sky_ = [&](V d, M here) -> V {
  if (view.sky < 0) return vec_(F(0.0f), F(0.0f), F(0.0f));
  const float* r = view.scene.data + (size_t)world * view.rows + AXES;
  const T x = F(r[0]) * d.x + F(r[1]) * d.y + F(r[2]) * d.z, y = F(r[3]) * d.x + F(r[4]) * d.y + F(r[5]) * d.z;
  return cube_texture_(view.sky, vec_(x, F(r[6]) * d.x + F(r[7]) * d.y + F(r[8]) * d.z, -y), here); };

// The pattern at points of a geom, in its axes.
auto pattern_ = [&](int index, const Geom& g, V p, M here) -> V {
  const int texture = number_(index, TEXTURE);
  if (texture < 0) return vec_(F(1.0f), F(1.0f), F(1.0f));
  const bool sized = g.kind != MESH && g.kind != HFIELD && !(g.kind == PLANE && g.s[0] <= 0.0f);
  const float x = sized ? g.s[0] : 1.0f, y = sized && g.kind != SPHERE && g.kind != CAPSULE && g.kind != CYLINDER ? g.s[1] : x;
  const float z = g.kind == BOX || g.kind == ELLIPSOID ? g.s[2] : g.kind == CYLINDER || g.kind == CAPSULE ? g.s[1] : x;
  const bool uniform = trait_(index, UNIFORM) > 0.0f;
  if (view.textures.data[texture * TEXTURE_NUMBERS + 4] == FLAT) {
    const float a = trait_(index, REPEAT_X) * (uniform ? 1.0f : 0.5f / x), b = trait_(index, REPEAT_Y) * (uniform ? 1.0f : 0.5f / y);
    return flat_texture_(texture, p.x * F(a) + F(uniform ? 0.0f : 0.5f), F(uniform ? 0.0f : 0.5f) - p.y * F(b), here);
  }
  return cube_texture_(texture, uniform ? p : vec_(p.x * F(1.0f / x), p.y * F(1.0f / y), p.z * F(1.0f / z)), here); };

// Whether a geom is in the way from a point along a direction, up to a distance, for the lanes that ask.
auto shadowed_ = [&](V p, V d, T most, M asked) -> M {
  const T least = F(0.0f);
  M dark = F(0.0f) > F(1.0f);
  for (int index = 0; index < view.geoms; ++index) {
    const Geom g = geom_(index);
    if (g.kind == PLANE) continue;  // MuJoCo's planes cast no shadows
    if (!any_(and_(and_(asked, not_(dark)), meets_ball_(ball_(index, g), p, d, least, most)))) continue;
    const Hit h = ray_geom_(index, g, p, d, least, most);
    dark = or_(dark, and_(h.t >= least, h.t < most));
  }
  return dark; };

// The colour of points of a geom, given their outward normals and the directions of their rays, of unit length.
auto lit_ = [&](int index, V p, V n, V d, M here) -> V {
  const Geom g = geom_(index);
  const V own = color_(view.colors_row + 3 * number_(index, NUMBER));
  V sum = times_(own, F(trait_(index, EMISSION)));
  const T gloss = F(trait_(index, SPECULAR)), shine = F(trait_(index, SHININESS));
  for (int light = 0; light < view.lights; ++light) {
    const float* lamp = view.lamps.data + light * LAMP_NUMBERS;
    const int row = view.lights_row + 6 * light;
    const V at = color_(row), way = unit_(color_(row + 3));
    const bool parallel = lamp[LAMP_KIND] == DIRECTIONAL;
    const V to = parallel ? times_(way, F(-1.0f)) : minus_(at, p);
    const T distance = sqrt_(max_(dot_(to, to), F(1e-12f)));
    const V toward = times_(to, F(1.0f) / distance);
    T strength = F(1.0f);
    if (!parallel) {
      strength = F(1.0f) / (F(lamp[ATTENUATION]) + distance * (F(lamp[ATTENUATION + 1]) + distance * F(lamp[ATTENUATION + 2])));
      const T cosine = -dot_(toward, way);
      if (lamp[LAMP_KIND] == SPOT)
        strength = where_(cosine >= F(lamp[CUTOFF]), strength * pow_(max_(cosine, F(1e-6f)), F(lamp[EXPONENT])), F(0.0f));
    }
    const V ambient = vec_(F(lamp[AMBIENT]), F(lamp[AMBIENT + 1]), F(lamp[AMBIENT + 2]));
    sum = plus_(sum, times_(mix_(own, ambient), strength));
    const T facing = max_(dot_(n, toward), F(0.0f));
    M bright = and_(here, and_(facing > F(0.0f), strength > F(0.0f)));
    if (lamp[CASTS] > 0.0f && view.shadows && any_(bright)) {
      const V from = plus_(p, times_(n, F(view.near * 0.02f)));
      bright = and_(bright, not_(shadowed_(from, toward, parallel ? F(FAR) : distance, bright)));
    }
    const V half = unit_(minus_(toward, d));
    const T mirror = gloss * pow_(max_(dot_(n, half), F(1e-6f)), shine);
    const V direct = plus_(times_(mix_(own, color_(view.diffuse_row + 3 * light)), facing),
                           times_(vec_(F(lamp[SPECULAR_LIGHT]), F(lamp[SPECULAR_LIGHT + 1]), F(lamp[SPECULAR_LIGHT + 2])), mirror));
    sum = plus_(sum, times_(direct, where_(bright, strength, F(0.0f))));
  }
  const V clear = vec_(clear_(sum.x), clear_(sum.y), clear_(sum.z));
  return mix_(clear, pattern_(index, g, inward_(g, minus_(p, vec_(F(g.p[0]), F(g.p[1]), F(g.p[2])))), here)); };
