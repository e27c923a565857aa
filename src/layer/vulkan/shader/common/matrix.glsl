// Tiles of products on matrix units: f16 factors in shared memory, sums in f32, or with INT8 s8
// factors and s32 sums. The shader defines load_step(); includes split.glsl before.
// kEach: factors in 16 bytes.
#ifdef INT8
const uint kEach = 16;
#define FACTOR int8_t
#define SUM int
#define SUM4_OF(words) ivec4(words)
#else
const uint kEach = 8;
#define FACTOR float16_t
#define SUM float
#define SUM4_OF(words) uintBitsToFloat(words)
#endif
// Groups of 8 scalars, as which inputs are loaded, that make them.
const uint kGroups = kEach / 8;
layout(constant_id = 5) const uint kThreads = 128;
layout(constant_id = 6) const uint kTileM = 64;
layout(constant_id = 7) const uint kTileN = 64;
layout(constant_id = 8) const uint kTileK = 64;
// Subgroups that divide the rows, the columns and the depth of a tile.
layout(constant_id = 9) const uint kSubgroupsM = 2;
layout(constant_id = 10) const uint kSubgroupsN = 2;
layout(constant_id = 11) const uint kSubgroupsK = 1;
layout(constant_id = 12) const uint kBuffers = 2;  // tiles in shared memory
layout(constant_id = 13) const uint kM = 16;       // of one product
layout(constant_id = 14) const uint kN = 16;
layout(constant_id = 15) const uint kK = 16;
layout(local_size_x_id = 5) in;

const uint kTilesM = kTileM / kSubgroupsM / kM, kTilesN = kTileN / kSubgroupsN / kN;
const uint kPartK = kTileK / kSubgroupsK;
// Rows in shared memory are 16 bytes longer than a tile's, so that they begin in different banks.
const uint kPitch = kTileK / kEach + 1, kPitchC = kTileN / 4 + 1;
const uint kSizeA = kTileM * kPitch, kSizeB = kTileN * kPitch, kSizeC = kTileM * kPitchC;
const uint kSizeTiles = kBuffers * (kSizeA + kSizeB);
// The sums of a large tile go through shared memory in up to six parts, each with the same number
// of rows of every subgroup: halves, or those of one product. The depth of tiles with more than two
// parts is not divided.
const uint kSizeAll = kSubgroupsK * kSizeC;
const uint kParts = kSizeAll <= 3072 ? 1 : kTilesM % 2 == 0 && kSizeAll <= 6144 ? 2 : kTilesM;
const uint kSizeSums = kSizeAll / kParts;
shared uvec4 memory[kSizeTiles > kSizeSums ? kSizeTiles : kSizeSums];

// 16 bytes that an invocation loads of each tile, all of one position along the depth: rows and
// columns first_down(), + kDown, ...
const uint kLoadsA = (kTileM * kTileK / kEach + kThreads - 1) / kThreads;
const uint kLoadsB = (kTileN * kTileK / kEach + kThreads - 1) / kThreads;
const uint kAcross = kTileK / kEach, kDown = kThreads / kAcross;
uvec4 next_a[kLoadsA * kGroups], next_b[kLoadsB];
uint first_down() { return gl_LocalInvocationID.x / kAcross; }

coopmat<SUM, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator> sums[kTilesM * kTilesN];

// Of an invocation: vec4s i * kThreads + its number of a part of the tile, row by row. A few of
// them at a time, since the code that follows them would otherwise be long.
const uint kSize = kTileM * kTileN / 4 / kParts, kMade = (kSize + kThreads - 1) / kThreads;
const uint kFew = kMade > 4 ? 4 : kMade;
SUM4 made[kFew];
// The tile's row that has vec4 i of a part.
uint made_row(uint part, uint i) {
    const uint row = i / (kTileN / 4), each = kTileM / kSubgroupsM / kParts;
    return kParts == 1 ? row : row / each * (kTileM / kSubgroupsM) + part * each + row % each;
}

// Fills next_a and next_b for a step, from 16 bytes k16 of the depth on; steps come in order.
void load_step(int k16);
// What goes to shared memory instead of next_a from i * kGroups on, where loads must not be waited
// for.
uvec4 arrived_a(uint i);

void multiply_tiles(uint begin_a, uint begin_b, uint sub_m, uint sub_n, uint sub_k) {
    [[unroll]] for (uint part = 0; part < kPartK; part += kK) {
        const uint k = sub_k * kPartK + part;
        coopmat<FACTOR, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA> a[kTilesM];
        coopmat<FACTOR, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB> b;
        [[unroll]] for (uint i = 0; i < kTilesM; i++)
            coopMatLoad(a[i], memory, begin_a + (sub_m + i * kM) * kPitch + k / kEach, kPitch,
                        gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint j = 0; j < kTilesN; j++) {
            coopMatLoad(b, memory, begin_b + (sub_n + j * kN) * kPitch + k / kEach, kPitch,
                        gl_CooperativeMatrixLayoutColumnMajor);
            [[unroll]] for (uint i = 0; i < kTilesM; i++)
                sums[i * kTilesN + j] = coopMatMulAdd(a[i], b, sums[i * kTilesN + j]);
        }
    }
}

// To shared memory: a part of the sums. `part` is a constant, so that they stay in registers.
void put_sums(uint part) {
    const uint sub_m = gl_SubgroupID % kSubgroupsM * (kTileM / kSubgroupsM / kParts);
    const uint sub_n = gl_SubgroupID / kSubgroupsM % kSubgroupsN * (kTileN / kSubgroupsN);
    const uint begin = gl_SubgroupID / (kSubgroupsM * kSubgroupsN) * (kSizeC / kParts);
    barrier();  // what was there is read no more
    [[unroll]] for (uint i = 0; i < kTilesM / kParts; i++)
        [[unroll]] for (uint j = 0; j < kTilesN; j++)
            coopMatStore(sums[(part * (kTilesM / kParts) + i) * kTilesN + j], memory,
                         begin + (sub_m + i * kM) * kPitchC + (sub_n + j * kN) / 4, kPitchC,
                         gl_CooperativeMatrixLayoutRowMajor);
    barrier();
}

// made = vec4s of this group's sums, from `first` of an invocation on.
void read_sums(uint first) {
    [[unroll]] for (uint e = 0; e < kFew; e++) {
        const uint i = min((first + e) * kThreads + gl_LocalInvocationID.x, kSize - 1);
        const uint from = i / (kTileN / 4) * kPitchC + i % (kTileN / 4);
        made[e] = SUM4_OF(memory[from]);
        [[unroll]] for (uint k = 1; k < kSubgroupsK; k++)
            made[e] += SUM4_OF(memory[k * (kSizeC / kParts) + from]);
    }
}

// The same of the whole product's, when make_tile() has said true.
void take_made(uint part, uint first) {
    if (!kDivides || splits == 1) {
        read_sums(first);
        return;
    }
    [[unroll]] for (uint e = 0; e < kFew; e++) {
        const uint i = min((first + e) * kThreads + gl_LocalInvocationID.x, kSize - 1);
        made[e] = split_sum(split_tile(), int(kParts * kSize), int(part * kSize + i));
    }
}

// What the shader does with the vec4s of a part that take_made() returns.
void store_part(uint part);

void keep_part(uint part, uint to) {
    put_sums(part);
    [[dont_unroll]] for (uint first = 0; first < kMade; first += kFew) {
        read_sums(first);
        [[unroll]] for (uint e = 0; e < kFew; e++) {
            const uint i = (first + e) * kThreads + gl_LocalInvocationID.x;
            if (i < kSize) parts[to + part * kSize + i] = made[e];
        }
    }
}

void store_one(uint part) {
    if (!kDivides || splits == 1) put_sums(part);
    store_part(part);
}

// Stores all that make_tile() has made. No loop, which drivers might not unroll.
void store_tile() {
    store_one(0);
    if (kParts > 1) store_one(1);
    if (kParts > 2) store_one(2);
    if (kParts > 3) store_one(3);
    if (kParts > 4) store_one(4);
    if (kParts > 5) store_one(5);
}

// Computes the product's tile, whose depth is `groups` times 16 bytes. False in groups that have
// handed their part to others.
bool make_tile(int groups) {
    const uint thread = gl_LocalInvocationID.x, down = first_down(), across = thread % kAcross;
    const uint sub_m = gl_SubgroupID % kSubgroupsM * (kTileM / kSubgroupsM);
    const uint sub_n = gl_SubgroupID / kSubgroupsM % kSubgroupsN * (kTileN / kSubgroupsN);
    const uint sub_k = gl_SubgroupID / (kSubgroupsM * kSubgroupsN);
    [[unroll]] for (uint i = 0; i < kTilesM * kTilesN; i++)
        sums[i] = coopmat<SUM, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>(SUM(0));

    const ivec2 range = split_range((groups + int(kAcross) - 1) / int(kAcross));
    int k16 = range.x * int(kAcross) + int(across);
    uint at = 0;
    if (range.x < range.y) load_step(k16);
    for (int step = range.x; step < range.y; step++) {
        const uint begin_a = at * (kSizeA + kSizeB), begin_b = begin_a + kSizeA;
        if (kBuffers == 1) barrier();  // the last step's are read no more
        [[unroll]] for (uint i = 0; i < kLoadsA; i++)
            if (down + i * kDown < kTileM)
                memory[begin_a + (down + i * kDown) * kPitch + across] = arrived_a(i);
        [[unroll]] for (uint i = 0; i < kLoadsB; i++)
            if (down + i * kDown < kTileN)
                memory[begin_b + (down + i * kDown) * kPitch + across] = next_b[i];
        barrier();
        k16 += int(kAcross);
        if (step + 1 < range.y) load_step(k16);
        multiply_tiles(begin_a, begin_b, sub_m, sub_n, sub_k);
        if (kBuffers == 2) at ^= 1;
    }
    if (!kDivides || splits == 1) return true;
    const int tile = split_tile();
    const uint to = uint(tile * splits + split_index()) * kParts * kSize;
    keep_part(0, to);
    if (kParts > 1) keep_part(1, to);
    return split_arrive(tile);
}
