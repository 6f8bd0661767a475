// Colours: textures, the sky and the lights, as OpenGL's fixed pipeline has them, but for each pixel.

auto color_ = [&](int row) -> V { return vec_(F(scene_(row)), F(scene_(row + 1)), F(scene_(row + 2))); };
auto mix_ = [&](V a, V b) -> V { return vec_(a.x * b.x, a.y * b.y, a.z * b.z); };
auto clear_ = [&](T x) -> T { return min_(max_(x, F(0.0f)), F(1.0f)); };

// The colour of a texture at u and v, in images from the left upper corner, where a pixel of the camera covers
// `size` of an image: of the copy whose pixels are about as large (Williams 1983).
auto texel_ = [&](int texture, int face, float u, float v, float size, float* rgb) -> void {
  const int* t = view.textures.data + texture * TEXTURE_NUMBERS;
  int width = t[1], height = t[2], faces = t[4] == FLAT ? 1 : 6;
  const unsigned char* image = view.texels.data + t[0];
  for (int level = 1; level < t[3] && size * wp::max(width, height) > 1.41f; ++level) {
    image += (size_t)3 * faces * width * height;
    width = wp::max(width / 2, 1); height = wp::max(height / 2, 1);
  }
  int column = (int)wp::floor(u * width), row = (int)wp::floor(v * height);
  column = wp::min(wp::max(column, 0), width - 1); row = wp::min(wp::max(row, 0), height - 1);
  const unsigned char* pixel = image + 3 * ((size_t)(face * height + row) * width + column);
  for (int k = 0; k < 3; ++k) rgb[k] = pixel[k] * (1.0f / 255.0f); };

// A flat texture at (u, v), repeated; a cube's texture in a direction, by the faces of OpenGL.
auto flat_texture_ = [&](int texture, T u, T v, T size, M here) -> V {
  V color = vec_(F(1.0f), F(1.0f), F(1.0f));
  unsigned rest = lanes_(here);
  for (int l = 0; l < LANES; ++l) if ((rest >> l) & 1u) {
    float rgb[3]; const float x = lane_(u, l), y = lane_(v, l);
    texel_(texture, 0, x - wp::floor(x), y - wp::floor(y), lane_(size, l), rgb);
    lane_(color.x, l) = rgb[0]; lane_(color.y, l) = rgb[1]; lane_(color.z, l) = rgb[2];
  }
  return color; };

auto cube_texture_ = [&](int texture, V d, T size, M here) -> V {
  V color = vec_(F(1.0f), F(1.0f), F(1.0f));
  unsigned rest = lanes_(here);
  for (int l = 0; l < LANES; ++l) if ((rest >> l) & 1u) {
    const float x = lane_(d.x, l), y = lane_(d.y, l), z = lane_(d.z, l);
    const float a = wp::abs(x), b = wp::abs(y), c = wp::abs(z), most = wp::max(a, wp::max(b, c)) + 1e-20f;
    int face; float u, v;
    if (a >= b && a >= c) { face = x > 0.0f ? 0 : 1; u = x > 0.0f ? -z : z; v = -y; }
    else if (b >= c) { face = y > 0.0f ? 2 : 3; u = x; v = y > 0.0f ? z : -z; }
    else { face = z > 0.0f ? 4 : 5; u = z > 0.0f ? x : -x; v = -y; }
    float rgb[3]; texel_(texture, face, 0.5f + 0.5f * u / most, 0.5f + 0.5f * v / most, 0.5f * lane_(size, l) / most, rgb);
    lane_(color.x, l) = rgb[0]; lane_(color.y, l) = rgb[1]; lane_(color.z, l) = rgb[2];
  }
  return color; };

auto sky_ = [&](V d, M here) -> V {
  if (view.sky < 0) return vec_(F(0.0f), F(0.0f), F(0.0f));
  const float* r = view.scene.data + (size_t)world * view.rows + AXES;
  const T x = F(r[0]) * d.x + F(r[1]) * d.y + F(r[2]) * d.z, y = F(r[3]) * d.x + F(r[4]) * d.y + F(r[5]) * d.z;
  return cube_texture_(view.sky, vec_(x, F(r[6]) * d.x + F(r[7]) * d.y + F(r[8]) * d.z, -y), F(-2.0f * view.down * scene_(TANGENT)), here); };

// A geom's half sides along its axes, 0: an endless plane or a mesh, whose patterns are not stretched.
auto halves_ = [&](const Geom& g, float* half) -> void {
  for (int k = 0; k < 3; ++k) half[k] = g.kind == MESH ? 0.0f : g.s[k];
  if (g.kind == SPHERE) half[1] = half[2] = half[0];
  if (g.kind == CAPSULE || g.kind == CYLINDER) { half[2] = half[1]; half[1] = half[0]; } };

// The pattern at points of a geom, in its axes, where a pixel covers `size` [m] of it. A flat texture begins in the corner of a plane, or of each face
// of a box; it is laid flat on what is round.
auto pattern_ = [&](int index, const Geom& g, V p, V n, T size, M here) -> V {
  const int texture = number_(index, TEXTURE);
  if (texture < 0) return vec_(F(1.0f), F(1.0f), F(1.0f));
  const bool uniform = trait_(index, UNIFORM) > 0.0f;
  float half[3], scale[3], start[3];
  halves_(g, half);
  if (view.textures.data[texture * TEXTURE_NUMBERS + 4] != FLAT) {
    for (int k = 0; k < 3; ++k) scale[k] = uniform || half[k] <= 0.0f ? 1.0f : 1.0f / half[k];
    const float most = wp::max(scale[0], wp::max(scale[1], scale[2]));
    return cube_texture_(texture, vec_(p.x * F(scale[0]), p.y * F(scale[1]), p.z * F(scale[2])), size * F(most), here);
  }
  for (int k = 0; k < 3; ++k) {
    const bool endless = half[k] <= 0.0f;
    scale[k] = 0.5f * (uniform || endless ? 1.0f : 1.0f / half[k]);
    start[k] = half[k] * scale[k];
  }
  const float across = trait_(index, REPEAT_X), down = trait_(index, REPEAT_Y);
  const float middle = half[0] <= 0.0f ? 0.5f : 0.0f;  // endless planes have a pattern in the middle
  size = size * F(wp::max(across * scale[0], down * scale[1]));
  const T x = p.x * F(scale[0]), y = p.y * F(scale[1]), z = p.z * F(scale[2]);
  const M on_x = and_(abs_(n.x) > abs_(n.y), abs_(n.x) > abs_(n.z)), on_y = abs_(n.y) > abs_(n.z);
  if (g.kind != BOX) return flat_texture_(texture, (x + F(start[0])) * F(across) + F(middle), (F(start[1]) - y) * F(down) + F(middle), size, here);
  const T u = where_(on_x, y + F(start[1]), x + F(start[0]));
  const T v = where_(on_x, F(start[2]) - z, where_(on_y, F(start[2]) - z, F(start[1]) - y));
  return flat_texture_(texture, u * F(across), v * F(down), size, here); };

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

// The colour of points of a geom, given their outward normals and the directions of their rays, of unit length,
// and the side of a pixel there [m].
auto lit_ = [&](int index, V p, V n, V d, T size, M here) -> V {
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
    if (lamp[CASTS] > 0.0f && any_(bright)) {
      const V from = plus_(p, times_(n, F(view.near * 0.02f)));
      bright = and_(bright, not_(shadowed_(from, toward, parallel ? F(FAR) : distance, bright)));
    }
    const V half = unit_(minus_(toward, d));
    const T mirror = gloss * pow_(max_(dot_(n, half), F(1e-6f)), shine);
    const V direct = plus_(times_(mix_(own, color_(view.diffuse_row + 3 * light)), facing),
                           times_(vec_(F(lamp[SPECULAR_LIGHT]), F(lamp[SPECULAR_LIGHT + 1]), F(lamp[SPECULAR_LIGHT + 2])), mirror));
    sum = plus_(sum, times_(direct, where_(bright, strength, F(0.0f))));
  }
  const V local = inward_(g, minus_(p, vec_(F(g.p[0]), F(g.p[1]), F(g.p[2]))));
  const V seen = mix_(sum, pattern_(index, g, local, inward_(g, n), size, here));
  return vec_(clear_(seen.x), clear_(seen.y), clear_(seen.z)); };
