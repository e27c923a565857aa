// The command line of the small examples.
#ifndef QUOLL_EXAMPLES_USAGE_H
#define QUOLL_EXAMPLES_USAGE_H

#include <quoll/net.h>
#include <stdio.h>
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

#endif
