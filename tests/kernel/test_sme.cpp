// What a call of the kernels of lists must leave as it was (AAPCS64): registers, and of SME a state
// of ZA that waits to be saved.
#include <gtest/gtest.h>
#include <string.h>

#include <vector>

#include "layer/cpu/gemm/split_gemm.h"
#include "layer/cpu/int8/int8_units.h"
#include "layer/cpu/registry/kernel_rows.h"

using namespace quoll;

#if defined(__aarch64__)
namespace {

// A kernel and a list of one tile.
typedef void (*ListKernel)(const void* list, size_t count, size_t last, size_t width);

// And memory for it.
struct List {
    explicit List(const SplitGemmKernels& kernels)
        : values(kernels.terms * kUnitRows * kUnitColumns * 2), sums(2 * kUnitRows * kUnitColumns) {
        tile.a = tile.b = (const char*)values.data();
        tile.a_row = kernels.word_bytes(), tile.a_tile = tile.a_row * kUnitRows;
        tile.a_word = 2 * tile.a_tile, tile.tile_rows = kUnitRows;
        tile.steps = &step, tile.num_steps = tile.full_steps = 1, tile.sums = sums.data();
    }
    std::vector<float> values, sums;
    ptrdiff_t step = 0;
    SplitTile tile = {};
};

struct Int8List {
    Int8List() : values(16 * kUnitRows * kUnitColumns), sums(2 * kUnitRows * kUnitColumns) {
        tile.a = tile.b = values.data();
        tile.a_row = 4, tile.a_tile = 4 * kUnitRows, tile.a_word = 2 * tile.a_tile;
        tile.tile_rows = kUnitRows;
        tile.steps = &step, tile.num_steps = 1, tile.step_k_groups = 2;
        tile.init = init, tile.sums = sums.data();
        tile.b_pair = 8 * kUnitColumns;
        for (int i = 0; i < kUnitColumns / 8; i++) tile.b_columns[i] = 64 * i;
    }
    std::vector<char> values;
    std::vector<int32_t> sums;
    int32_t init[kUnitColumns] = {};
    ptrdiff_t step = 0;
    Int8UnitTile tile = {};
};

// f(tile, kernel, has ZA)
template <class F>
void for_lists(F f) {
    for_kernel_rows<Int8UnitKernels>(KernelSlot::int8_units, host_cpu_features(),
                                     [&](const KernelRow& row, const Int8UnitKernels& kernels) {
                                         SCOPED_TRACE(row.name);
                                         const Int8List list;
                                         if (kernels.list && kernels.lanes())
                                             f(&list.tile, (ListKernel)kernels.list, true);
                                     });
    for (KernelSlot slot : {KernelSlot::split6, KernelSlot::split1})
        for_kernel_rows<SplitGemmKernels>(
            slot, host_cpu_features(), [&](const KernelRow& row, const SplitGemmKernels& kernels) {
                SCOPED_TRACE(row.name);
                if (!kernels.list) return;
                const List list(kernels);
                f(&list.tile, (ListKernel)kernels.list, kernels.vector_macs == 0);
            });
}

TEST(Sme, lists_keep_registers) {
    for_lists([](const void* list, ListKernel call, bool) {
        uint64_t after[18];
        register const void* tiles __asm__("x0") = list;
        register size_t count __asm__("x1") = 1;
        register size_t last __asm__("x2") = 2;
        register size_t width __asm__("x3") = 32;
        register ListKernel kernel __asm__("x4") = call;
        register uint64_t* out __asm__("x28") = after;
        __asm__ volatile(
            "mov x19, #19\n mov x20, #20\n mov x21, #21\n mov x22, #22\n mov x23, #23\n"
            "mov x24, #24\n mov x25, #25\n mov x26, #26\n mov x27, #27\n"
            "fmov d8, x19\n fmov d9, x20\n fmov d10, x21\n fmov d11, x22\n"
            "fmov d12, x23\n fmov d13, x24\n fmov d14, x25\n fmov d15, x26\n"
            "blr x4\n"
            "stp x19, x20, [x28]\n stp x21, x22, [x28, #16]\n stp x23, x24, [x28, #32]\n"
            "stp x25, x26, [x28, #48]\n str x27, [x28, #64]\n"
            "stp d8, d9, [x28, #72]\n stp d10, d11, [x28, #88]\n"
            "stp d12, d13, [x28, #104]\n stp d14, d15, [x28, #120]\n"
            : "+r"(tiles), "+r"(count), "+r"(last), "+r"(width), "+r"(kernel), "+r"(out)
            :
            : "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17",
              "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x30", "v0", "v1",
              "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14",
              "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26",
              "v27", "v28", "v29", "v30", "v31", "cc", "memory");
        for (uint64_t i = 0; i < 9; i++) EXPECT_EQ(after[i], 19 + i) << "x" << 19 + i;
        for (uint64_t i = 0; i < 8; i++) EXPECT_EQ(after[9 + i], 19 + i) << "d" << 8 + i;
    });
}

// The block that TPIDR2_EL0 points to.
struct LazySave {
    void* buffer;
    uint16_t rows, zero[3];
};

TEST(Sme, lists_save_a_lazy_za) {
    for_lists([](const void* list, ListKernel call, bool has_za) {
        if (!has_za) return;
        uint64_t bytes;
        __asm__(".arch_extension sme\n rdsvl %0, #1" : "=r"(bytes));
        std::vector<uint8_t> state(bytes * bytes), saved(bytes * bytes);
        for (size_t i = 0; i < state.size(); i++) state[i] = (uint8_t)(i * 37 + i / 251);
        const LazySave block = {saved.data(), (uint16_t)bytes, {}};
        const uint8_t* from = state.data();
        __asm__ volatile(
            ".arch_extension sme\n smstart za\n mov w12, #0\n"
            "1: ldr za[w12, 0], [%0]\n add %0, %0, %1\n add w12, w12, #1\n"
            "cmp w12, %w1\n b.lo 1b\n msr S3_3_C13_C0_5, %2\n"
            : "+r"(from)
            : "r"(bytes), "r"(&block)
            : "x12", "cc", "memory");
        call(list, 1, 2, 32);
        uint64_t waits, on;
        __asm__ volatile("mrs %0, S3_3_C13_C0_5\n mrs %1, S3_3_C4_C2_2" : "=r"(waits), "=r"(on));
        EXPECT_EQ(waits, 0u);
        EXPECT_EQ(on, 0u) << "SVCR";
        EXPECT_TRUE(state == saved);
    });
}

}  // namespace
#endif
