// Mutations of inputs that know the structure of text, protobuf messages and bytes.
#ifndef QUOLL_TESTS_FUZZ_MUTATE_H
#define QUOLL_TESTS_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

#include <random>
#include <vector>

namespace fuzz {

typedef std::vector<uint8_t> Bytes;

class Mutator {
public:
    // corpus: what inputs are made of; not empty.
    Mutator(const std::vector<Bytes>& corpus, unsigned seed) : corpus_(corpus), rng_(seed) {}
    Bytes next();

private:
    size_t number(size_t below) { return below ? rng_() % below : 0; }
    const Bytes& any() { return corpus_[number(corpus_.size())]; }
    uint64_t odd_number();
    Bytes odd_text();
    void change_bytes(Bytes* x);
    void change_text(Bytes* x);
    void change_lines(Bytes* x);
    bool change_message(Bytes* x, int depth);

    const std::vector<Bytes>& corpus_;
    std::mt19937 rng_;
};

}  // namespace fuzz

#endif
