// Replays a corpus through a fuzz target without libFuzzer: every file, every prefix of the small
// ones, simple mutations of each, then for some seconds what fuzz::Mutator makes of them. A crash,
// a sanitizer's report or an input that takes longer than 20 seconds is the failure; the input is
// then left in fuzz-failure.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "mutate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using fuzz::Bytes;

const unsigned kMostSeconds = 20;

Bytes read_file(const std::string& path) {
    Bytes bytes;
    if (FILE* fp = fopen(path.c_str(), "rb")) {
        uint8_t buffer[4096];
        for (size_t got; (got = fread(buffer, 1, sizeof(buffer), fp)) > 0;)
            bytes.insert(bytes.end(), buffer, buffer + got);
        fclose(fp);
    }
    return bytes;
}

const Bytes* g_input = nullptr;

void keep_input(int signal_number) {
    const int fd = open("fuzz-failure", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0 && g_input) {
        const ssize_t written = write(fd, g_input->data(), g_input->size());
        static const char kSaid[] = "the input is in fuzz-failure\n";
        if (written >= 0 && write(2, kSaid, sizeof(kSaid) - 1) < 0) _exit(2);
    }
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void try_input(const Bytes& bytes) {
    g_input = &bytes;
    alarm(kMostSeconds);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    alarm(0);
}

// Files of the folder in the order of their names.
std::vector<Bytes> read_corpus(const char* folder) {
    std::vector<std::string> paths;
    if (DIR* dir = opendir(folder)) {
        while (const dirent* entry = readdir(dir))
            if (entry->d_name[0] != '.') paths.push_back(std::string(folder) + "/" + entry->d_name);
        closedir(dir);
    }
    std::sort(paths.begin(), paths.end());
    std::vector<Bytes> corpus;
    for (const std::string& path : paths) corpus.push_back(read_file(path));
    return corpus;
}

// Returns how many inputs it tried.
size_t try_variations(const Bytes& bytes, std::mt19937* rng) {
    size_t inputs = 1;
    try_input(bytes);
    const size_t step = std::max<size_t>(1, bytes.size() / 64);
    for (size_t n = 0; n < bytes.size(); n += step, inputs++)
        try_input(Bytes(bytes.begin(), bytes.begin() + (ptrdiff_t)n));
    for (int i = 0; i < 64 && !bytes.empty(); i++, inputs++) {
        Bytes changed = bytes;
        changed[(*rng)() % changed.size()] =
            (uint8_t)((*rng)() % 2 ? (*rng)() : "0123456789-=, \n."[(*rng)() % 16]);
        try_input(changed);
    }
    return inputs;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2 || argc > 4)
        return fprintf(stderr, "usage: %s CORPUS_FOLDER [SECONDS [SEED]]\n", argv[0]), 2;
    const std::vector<Bytes> corpus = read_corpus(argv[1]);
    if (corpus.empty()) return fprintf(stderr, "no files in %s\n", argv[1]), 2;
    for (int s : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGALRM}) signal(s, keep_input);
    std::mt19937 rng(20);
    size_t inputs = 0, mutants = 0;
    for (const Bytes& bytes : corpus) inputs += try_variations(bytes, &rng);
    fuzz::Mutator mutator(corpus, argc > 3 ? (unsigned)atoi(argv[3]) : 1);
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::seconds(argc > 2 ? atoi(argv[2]) : 0);
    for (; std::chrono::steady_clock::now() < end; mutants++) try_input(mutator.next());
    printf("%zu files, %zu variations of them, %zu mutants\n", corpus.size(), inputs, mutants);
    return 0;
}
