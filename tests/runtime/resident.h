#ifndef QUOLL_TESTS_RESIDENT_H
#define QUOLL_TESTS_RESIDENT_H

#include <stdio.h>
#include <unistd.h>

// Resident memory of this process in bytes; 0 where the system does not tell.
inline size_t resident_bytes() {
    long pages = 0, total = 0;
    FILE* fp = fopen("/proc/self/statm", "r");
    if (!fp) return 0;
    if (fscanf(fp, "%ld %ld", &total, &pages) != 2) pages = 0;
    fclose(fp);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

#endif
