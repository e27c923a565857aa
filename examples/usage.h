// The command line of the small examples.
#ifndef QUOLL_EXAMPLES_USAGE_H
#define QUOLL_EXAMPLES_USAGE_H

#include <quoll/gpu.h>
#include <quoll/net.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// True when the program has nothing else to do but to return *code: after --help (0) and --version
// (0), or when `right` is false (2).
inline bool usage(int argc, char** argv, bool right, const char* text, int* code) {
    const bool help = argc == 2 && strcmp(argv[1], "--help") == 0;
    const bool version = argc == 2 && strcmp(argv[1], "--version") == 0;
    if (version)
        printf("quoll %s\n", QUOLL_VERSION_STRING);
    else if (help || !right)
        fputs(text, help ? stdout : stderr);
    *code = help || version ? 0 : 2;
    return help || version || !right;
}

// What follows `name` on the command line, of which both are taken away; `otherwise` without it.
inline const char* take_option(const char* name, int* argc, char** argv,
                               const char* otherwise = nullptr) {
    for (int i = 1; i + 1 < *argc; i++) {
        if (strcmp(argv[i], name) != 0) continue;
        const char* value = argv[i + 1];
        for (*argc -= 2; i < *argc; i++) argv[i] = argv[i + 2];
        return value;
    }
    return otherwise;
}

// Lets the net, which is not loaded yet, run on a Vulkan device; `gpu` is its number as text, or
// null for the CPU. False after a message.
inline bool use_gpu(const char* gpu, quoll::Net* net) {
    if (!gpu) return true;
    const int count = quoll::get_gpu_count(), device = atoi(gpu);
    if (device < 0 || device >= count) {
        if (count)
            fprintf(stderr, "--gpu %s: the last Vulkan device here is %d\n", gpu, count - 1);
        else
            fprintf(stderr, "--gpu %s: no Vulkan device here\n", gpu);
        return false;
    }
    net->opt.use_vulkan_compute = true;
    net->set_vulkan_device(device);
    return true;
}

#endif
