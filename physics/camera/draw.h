// Drawing: the pixels of a tile, from the nearest geom that each ray meets.

const int tile = item / PARTS % view.tiles, part = item % PARTS;
const int left = tile % view.tiles_across * SIDE, upper = tile / view.tiles_across * SIDE;
const unsigned* seen = (const unsigned*)view.seen.data + (size_t)(item / PARTS) * view.words;
const float tangent = scene_(TANGENT);
for (int group = 0; group < SIDE * SIDE / LANES / PARTS; ++group) {
  T across, down;
  int columns[LANES], rows[LANES];
  for (int l = 0; l < LANES; ++l) {  // 16 lanes are two rows: near the horizon, a row has like depths
    const int k = (part + group) * LANES + l;
    columns[l] = left + (k & 7);
    rows[l] = upper + (k >> 3);
    lane_(across, l) = (columns[l] + 0.5f) * view.across + view.left;
    lane_(down, l) = (rows[l] + 0.5f) * view.down + view.top;
  }
  const V o = vec_(F(0.0f), F(0.0f), F(0.0f)), d = vec_(across * F(tangent), down * F(tangent), F(-1.0f));
  const T least = F(view.near);
  T depth = F(view.far);
  W found = W(-1);
  V normal = o;
  for (int word = 0; word < view.words; ++word)
    for (unsigned bits = seen[word]; bits; bits &= bits - 1) {
#if defined(__CUDA_ARCH__)
      const int index = word * 32 + __ffs(bits) - 1;
#else
      const int index = word * 32 + __builtin_ctz(bits);
#endif
      const Geom g = geom_(index);
      if (!any_(meets_ball_(ball_(index, g), o, d, least, depth))) continue;
      const Hit h = ray_geom_(index, g, o, d, least, depth);
      const M nearer = and_(h.t >= least, h.t < depth);
      if (!any_(nearer)) continue;
      depth = where_(nearer, h.t, depth);
      found = choose_(nearer, W(index), found);
      normal = pick_(nearer, outward_(g, h.n), normal);
    }
  normal = unit_(normal);
  V color = o;
  if (view.rgb.data) {
    const V way = unit_(d), point = times_(d, depth);
    // what is seen at a slant is stretched along one side of the pixel
    const T size = depth * F(-view.down * tangent) / max_(-dot_(way, normal), F(0.02f));
    color = sky_(way, found < W(0));
    unsigned rest = lanes_(found >= W(0));
    for (int l = 0; l < LANES; ++l) if ((rest >> l) & 1u) {  // the lanes that show the same geom
      const M here = found == W(word_(found, l));
      color = pick_(here, lit_(word_(found, l), point, normal, way, size, here), color);
      rest &= ~lanes_(here);
    }
  }
  for (int l = 0; l < LANES; ++l) {
    if (columns[l] >= view.width || rows[l] >= view.height) continue;
    const size_t pixel = ((size_t)world * view.height + rows[l]) * view.width + columns[l];
    const int geom = word_(found, l);
    if (view.depth.data) view.depth.data[pixel] = lane_(depth, l);
    if (view.rgb.data) {
      unsigned char* rgb = view.rgb.data + 3 * pixel;
      rgb[0] = (unsigned char)(lane_(color.x, l) * 255.0f + 0.5f);
      rgb[1] = (unsigned char)(lane_(color.y, l) * 255.0f + 0.5f);
      rgb[2] = (unsigned char)(lane_(color.z, l) * 255.0f + 0.5f);
    }
    if (view.segmentation.data) view.segmentation.data[pixel] = geom < 0 ? -1 : number_(geom, NUMBER);
    if (view.normal.data) {
      view.normal.data[3 * pixel] = lane_(normal.x, l); view.normal.data[3 * pixel + 1] = lane_(normal.y, l);
      view.normal.data[3 * pixel + 2] = lane_(normal.z, l);
    }
  }
}
