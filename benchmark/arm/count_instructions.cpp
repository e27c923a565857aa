// A plugin of qemu-user (its TCG plugin interface, version 1: qemu 4.2 to 8.2) that counts the
// instructions that a program for ARM executes, by function and class. count.py builds and loads
// it:
//
//   qemu-aarch64 -plugin libcount_instructions.so,out=FILE PROGRAM
//   qemu-arm -plugin libcount_instructions.so,out=FILE PROGRAM
//
// FILE gets a line for each function: its symbol ("?" without, as in shared libraries) and the
// counts of the classes below, in their order, by tabs. Those of other processors are all scalar.
// Distributions leave the interface's header out, so the few functions used here are declared from
// its documentation.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <deque>
#include <map>
#include <mutex>
#include <string>

extern "C" {

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info_t {
    const char* target_name;  // "aarch64", "arm"; other members follow
};
typedef void (*TranslationCallback)(uint64_t id, qemu_plugin_tb* block);
typedef void (*ExitCallback)(uint64_t id, void* data);
enum { kInlineAdd = 0 };

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, TranslationCallback callback);
void qemu_plugin_register_vcpu_tb_exec_inline(qemu_plugin_tb* block, int op, void* counter,
                                              uint64_t value);
void qemu_plugin_register_atexit_cb(uint64_t id, ExitCallback callback, void* data);
size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb* block);
qemu_plugin_insn* qemu_plugin_tb_get_insn(const qemu_plugin_tb* block, size_t index);
const void* qemu_plugin_insn_data(const qemu_plugin_insn* instruction);
char* qemu_plugin_insn_disas(const qemu_plugin_insn* instruction);  // to be freed
const char* qemu_plugin_insn_symbol(const qemu_plugin_insn* instruction);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;
__attribute__((visibility("default"))) int qemu_plugin_install(uint64_t id, const qemu_info_t* info,
                                                               int argc, char** argv);
}

namespace {

enum Class { kMultiplyAdd, kVector, kLoad, kStore, kPrefetch, kScalar, kClasses };

struct Encoding {
    uint32_t mask, value;
};

bool matches(uint32_t word, const Encoding* encodings, size_t count) {
    for (size_t i = 0; i < count; i++)
        if ((word & encodings[i].mask) == encodings[i].value) return true;
    return false;
}

// Multiply-adds of vectors: floating point, widening and dot products, of vectors and by element,
// and those of SVE and SME.
const Encoding kMultiplyAdds[] = {
    {0xbf20fc00, 0x0e20cc00},  // FMLA, FMLS of f32 and f64
    {0xbf60fc00, 0x0e400c00},  // of f16
    {0xbf80b400, 0x0f801000},  // FMLA, FMLS by element of f32 and f64
    {0xbfc0b400, 0x0f001000},  // of f16
    {0xbf60fc00, 0x0e20ec00},  // FMLAL, FMLSL
    {0xbf60fc00, 0x2e20cc00},  // their second halves
    {0xbfc0b400, 0x0f800000},  // by element
    {0xbfc0b400, 0x2f808000},
    {0x9f208c00, 0x0e008400},  // SDOT, UDOT, SMMLA and their like, three registers
    {0xbfe0ec00, 0x2e40ec00},  // BFDOT, BFMMLA
    {0xbfc0f400, 0x0f80e000},  // SDOT by element
    {0xbfc0f400, 0x2f80e000},  // UDOT
    {0xbf00f400, 0x0f00f000},  // SUDOT, USDOT, BFDOT by element
    {0x9f20dc00, 0x0e208000},  // SMLAL, SMLSL, UMLAL, UMLSL
    {0x9f00b400, 0x0f002000},  // by element
    {0xbf20fc00, 0x0e209400},  // MLA
    {0xbf00f400, 0x2f000000},  // by element
    {0xbf3ffc00, 0x0e206800},  // SADALP
    {0xff208000, 0x65200000},  // SVE FMLA, FMLS
    {0xff20f000, 0x64200000},  // by element
    {0xff20e000, 0x64206000},
    {0xff20e000, 0x6420e000},  // FMMLA, BFMMLA
    {0xff20f800, 0x44000000},  // SDOT, UDOT
    {0xffa0f800, 0x44a00000},  // by element
    {0xff20f800, 0x45009800},  // SMMLA, UMMLA
    {0xfe000000, 0x80000000},  // SME outer products
    {0xfe000000, 0xa0000000},
};

Class load_or_store(uint32_t word) {
    const bool vector = word >> 26 & 1;
    const uint32_t kind = word >> 27 & 7, opcode = word >> 22 & 3;
    if (kind == 7) {
        if (!vector && word >> 30 == 3 && opcode == 2) return kPrefetch;  // PRFM
        if (vector) return opcode & 1 ? kLoad : kStore;
        return opcode ? kLoad : kStore;
    }
    if (kind == 3) return word >> 30 == 3 && !vector ? kPrefetch : kLoad;  // from a literal
    return opcode & 1 ? kLoad : kStore;  // pairs, structures, exclusive
}

Class classify(uint32_t word) {
    if (matches(word, kMultiplyAdds, sizeof(kMultiplyAdds) / sizeof(kMultiplyAdds[0])))
        return kMultiplyAdd;
    const uint32_t group = word >> 25 & 15;
    if ((group & 5) == 4) return load_or_store(word);
    if (group == 7 || group == 15) return kVector;
    if (group == 2) {  // SVE
        const uint32_t top = word >> 29;
        return top == 4 || top == 5 || top == 6 ? kLoad : top == 7 ? kStore : kVector;
    }
    if (word >> 25 == 0x70) return word >> 21 & 1 ? kStore : kLoad;  // SME
    return kScalar;
}

// Of 32 bits, by its name: what a word means depends on whether the processor is in Thumb state,
// which the interface does not tell.
Class classify_name(const char* name) {
    struct {
        const char* start;
        Class is;
    } const names[] = {{"vmla", kMultiplyAdd}, {"vmls", kMultiplyAdd},   {"vfma", kMultiplyAdd},
                       {"vfms", kMultiplyAdd}, {"vpadal", kMultiplyAdd}, {"vld", kLoad},
                       {"vpop", kLoad},        {"vst", kStore},          {"vpush", kStore},
                       {"v", kVector},         {"ldr", kLoad},           {"ldm", kLoad},
                       {"pop", kLoad},         {"str", kStore},          {"stm", kStore},
                       {"push", kStore},       {"pld", kPrefetch}};
    for (const auto& row : names)
        if (strncmp(name, row.start, strlen(row.start)) == 0) return row.is;
    return kScalar;
}

std::string g_target;

Class classify(qemu_plugin_insn* instruction) {
    if (g_target == "arm") {
        char* const name = qemu_plugin_insn_disas(instruction);
        const Class is = classify_name(name ? name : "");
        free(name);
        return is;
    }
    if (g_target != "aarch64") return kScalar;  // may be shorter than a word
    uint32_t word;
    memcpy(&word, qemu_plugin_insn_data(instruction), sizeof(word));
    return classify(word);
}

// A translated block: how often it ran, and what it has.
struct Block {
    uint64_t runs;
    const char* symbol;
    uint32_t counts[kClasses];
};

std::mutex g_lock;
std::deque<Block> g_blocks;  // their places do not change
std::string g_file;

void translated(uint64_t, qemu_plugin_tb* tb) {
    const size_t count = qemu_plugin_tb_n_insns(tb);
    if (count == 0) return;
    Block block = {};
    block.symbol = qemu_plugin_insn_symbol(qemu_plugin_tb_get_insn(tb, 0));
    for (size_t i = 0; i < count; i++) block.counts[classify(qemu_plugin_tb_get_insn(tb, i))]++;
    std::lock_guard<std::mutex> lock(g_lock);
    g_blocks.push_back(block);
    qemu_plugin_register_vcpu_tb_exec_inline(tb, kInlineAdd, &g_blocks.back().runs, 1);
}

void finished(uint64_t, void*) {
    std::lock_guard<std::mutex> lock(g_lock);
    std::map<std::string, uint64_t[kClasses]> functions;
    for (const Block& block : g_blocks) {
        uint64_t* sums = functions[block.symbol && block.symbol[0] ? block.symbol : "?"];
        for (int i = 0; i < kClasses; i++) sums[i] += block.runs * block.counts[i];
    }
    FILE* file = fopen(g_file.c_str(), "w");
    if (!file) return perror(g_file.c_str());
    for (const auto& function : functions) {
        fputs(function.first.c_str(), file);
        for (int i = 0; i < kClasses; i++)
            fprintf(file, "\t%llu", (unsigned long long)function.second[i]);
        fputc('\n', file);
    }
    fclose(file);
}

}  // namespace

int qemu_plugin_install(uint64_t id, const qemu_info_t* info, int argc, char** argv) {
    g_target = info->target_name;
    for (int i = 0; i < argc; i++)
        if (strncmp(argv[i], "out=", 4) == 0) g_file = argv[i] + 4;
    if (g_file.empty()) {
        fputs("count_instructions: expected out=FILE\n", stderr);
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, finished, nullptr);
    return 0;
}
