// Culling: which geoms may be seen in a tile of an image, as bits of view.seen [image and tile, words].
//
// A geom may be seen if the sphere about it meets the cone about the tile.

const int tile = item % view.tiles, column = tile % view.tiles_across, row = tile / view.tiles_across;
const float tangent = scene_(TANGENT);
auto corner_ = [&](float x, float y, float* d) -> void {
  d[0] = (wp::min(x, (float)view.width) * view.across + view.left) * tangent;
  d[1] = (wp::min(y, (float)view.height) * view.down + view.top) * tangent;
  const float scale = 1.0f / wp::sqrt(d[0] * d[0] + d[1] * d[1] + 1.0f);
  d[0] *= scale; d[1] *= scale; d[2] = -scale; };
float axis[3], corner[3], cosine = 1.0f;
corner_(SIDE * (column + 0.5f), SIDE * (row + 0.5f), axis);
for (int k = 0; k < 4; ++k) {
  corner_(SIDE * (column + k % 2), SIDE * (row + k / 2), corner);
  cosine = wp::min(cosine, axis[0] * corner[0] + axis[1] * corner[1] + axis[2] * corner[2]);
}
const float sine = wp::sqrt(wp::max(1.0f - cosine * cosine, 0.0f)) + 1e-5f;
unsigned* seen = (unsigned*)view.seen.data + (size_t)item * view.words;
for (int word = 0; word < view.words; ++word) {
  unsigned bits = 0;
  for (int k = 0; k < 32 && word * 32 + k < view.geoms; ++k) {
    const Geom g = geom_(word * 32 + k);
    const Ball b = ball_(word * 32 + k, g);
    const float along = b.x * axis[0] + b.y * axis[1] + b.z * axis[2];
    const float aside = wp::sqrt(wp::max(b.x * b.x + b.y * b.y + b.z * b.z - along * along, 0.0f));
    if (aside * cosine - along * sine <= b.r) bits |= 1u << k;
  }
  seen[word] = bits;
}
