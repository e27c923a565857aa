// Replays a corpus through a fuzz target without libFuzzer: every file, every prefix of the small
// ones, and simple mutations of each. A crash, or a sanitizer's report, is the failure.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::vector<uint8_t> read_file(const std::string& path) {
    std::vector<uint8_t> bytes;
    if (FILE* fp = fopen(path.c_str(), "rb")) {
        uint8_t buffer[4096];
        for (size_t got; (got = fread(buffer, 1, sizeof(buffer), fp)) > 0;)
            bytes.insert(bytes.end(), buffer, buffer + got);
        fclose(fp);
    }
    return bytes;
}

void try_input(const std::vector<uint8_t>& bytes) {
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]), 2;
    DIR* dir = opendir(argv[1]);
    if (!dir) return fprintf(stderr, "cannot open %s\n", argv[1]), 2;
    std::vector<std::string> paths;
    while (const dirent* entry = readdir(dir))
        if (entry->d_name[0] != '.') paths.push_back(std::string(argv[1]) + "/" + entry->d_name);
    closedir(dir);
    std::sort(paths.begin(), paths.end());
    std::mt19937 rng(20);
    size_t inputs = 0;
    for (const std::string& path : paths) {
        std::vector<uint8_t> bytes = read_file(path);
        try_input(bytes);
        const size_t step = std::max<size_t>(1, bytes.size() / 64);
        for (size_t n = 0; n < bytes.size(); n += step, inputs++)
            try_input(std::vector<uint8_t>(bytes.begin(), bytes.begin() + n));
        for (int i = 0; i < 64 && !bytes.empty(); i++, inputs++) {
            std::vector<uint8_t> changed = bytes;
            changed[rng() % changed.size()] =
                (uint8_t)(rng() % 2 ? rng() : "0123456789-=, \n."[rng() % 16]);
            try_input(changed);
        }
    }
    printf("%zu files, %zu variations of them\n", paths.size(), inputs);
    return paths.empty();
}
