// Windows of a planar input of few channels, as images come, for shaders with PLANAR, which include
// conv.glsl before: the depth goes through the rows of each channel's window, in groups of 4 along
// w. Of the push constants x_c counts channels, x_first scalars, x_pitch is the last scalar of the
// blob, and kernel_d is 0 where scalars are f32 though blobs are f16, as the host did not narrow
// them.
#ifdef PLANAR
layout(constant_id = 21) const int kRowGroups = 1;   // of a row of the window
layout(constant_id = 22) const int kWindowRows = 3;  // kernel_h
layout(set = 0, binding = 0) readonly buffer Planar { uint planar[]; };

// Four values of a window: from its first one, and how many there are at most.
struct Group {
    int dx, dy, offset, count;
};
Group group_at(int i) {
    const int row = i / kRowGroups, dx = (i - row * kRowGroups) * 4;
    const int c = row / kWindowRows, dy = (row - c * kWindowRows) * dilation_h;
    return Group(dx, dy, (c * x_h + dy) * x_w + dx, c < x_c ? kernel_w - dx : 0);
}

Row planar_row_of(int pixel) {
    const ivec4 w = window_of(pixel);
    return Row(w.xyz, x_first + w.w * x_c + w.y * x_w + w.x);
}

// A bit for each of `most` values that lies within window and blob.
uint inside(Row row, Group g, int most) {
    const int x0 = row.window.x + g.dx;
    const int low = clamp(-x0, 0, most), high = clamp(min(x_w - x0, g.count), 0, most);
    const uint bits = ((1u << high) - 1u) & ~((1u << low) - 1u);
    return uint(row.window.y + g.dy) < uint(x_h) ? bits : 0u;
}

// Of f32. Positions outside are loaded from somewhere inside.
vec4 floats4(Row row, Group g) {
    const uint bits = inside(row, g, 4), first = uint(row.first + g.offset);
    vec4 v;
    for (uint i = 0; i < 4; i++) {
        const float loaded = uintBitsToFloat(planar[min(first + i, uint(x_pitch))]);
        v[i] = (bits >> i & 1u) != 0u ? loaded : 0.0;
    }
    return v;
}

#ifdef STORAGE_F16
uvec2 packed4(Row row, Group g) {
    const vec4 v = floats4(row, g);
    return uvec2(packed2(v.xy), packed2(v.zw));
}
// Two words, with zeros for what has no bit.
uvec2 masked(uvec2 v, uint bits) {
    const uvec2 even = uvec2(bits, bits >> 2) & 1u, odd = uvec2(bits >> 1, bits >> 3) & 1u;
    return v & (even * 0xffffu | odd * 0xffff0000u);
}
uvec2 halves4(Row row, Group g) {
    if (kernel_d == 0) return packed4(row, g);
    const uint last = uint(x_pitch) >> 1;
    const int first = row.first + g.offset;
    const uint at = uint(first >> 1);
    const uint a = planar[min(at, last)], b = planar[min(at + 1u, last)];
    const uint c = planar[min(at + 2u, last)];
    const bool odd = (first & 1) != 0;
    return masked(odd ? uvec2(a >> 16 | b << 16, b >> 16 | c << 16) : uvec2(a, b),
                  inside(row, g, 4));
}
// Of two groups of one row, of which g is the first.
uvec4 halves8(Row row, Group g) {
    if (kernel_d == 0)
        return uvec4(packed4(row, g),
                     packed4(row, Group(g.dx + 4, g.dy, g.offset + 4, g.count - 4)));
    const uint last = uint(x_pitch) >> 1;
    const int first = row.first + g.offset;
    const uint at = uint(first >> 1);
    const uvec4 v = uvec4(planar[min(at, last)], planar[min(at + 1u, last)],
                          planar[min(at + 2u, last)], planar[min(at + 3u, last)]);
    const uvec4 next = uvec4(v.yzw, planar[min(at + 4u, last)]);
    const uvec4 made = (first & 1) != 0 ? v >> 16 | next << 16 : v;
    const uint bits = inside(row, g, 8);
    return uvec4(masked(made.xy, bits), masked(made.zw, bits >> 4));
}
vec4 planar4(Row row, Group g) {
    const uvec2 v = halves4(row, g);
    return vec4(unpacked2(v.x), unpacked2(v.y));
}
#else
vec4 planar4(Row row, Group g) { return floats4(row, g); }
#endif
#endif
