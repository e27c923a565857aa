// Random numbers for generated cases: the same for a seed on all machines.
#ifndef QUOLL_TESTS_FUZZ_RANDOM_H
#define QUOLL_TESTS_FUZZ_RANDOM_H

#include <random>

class Random {
public:
    explicit Random(unsigned seed) : engine_(seed) { new_sizes(); }
    int number(int low, int high) { return low + (int)(engine_() % ((unsigned)(high - low) + 1)); }
    bool one_in(int n) { return number(1, n) == 1; }
    float real(float low, float high) {
        return low + (high - low) * ((float)(engine_() >> 8) / (float)(1 << 24));
    }
    // The size of an axis, or of what describes one in params: a few sizes are frequent, so that
    // sizes often agree.
    int size(int most) {
        const int usual = sizes_[number(0, 2)];
        return usual <= most && !one_in(3) ? usual : number(1, most);
    }
    void new_sizes() {
        for (int& s : sizes_) s = number(1, 9);
    }

private:
    int sizes_[3];
    std::mt19937 engine_;
};

#endif
