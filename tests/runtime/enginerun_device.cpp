// enginerun with all layers on a Vulkan device that can run there (unconditional_backend.cpp).
//
//   enginerun_device OPTIONS...    as enginerun
//   enginerun_device --serve       one run for each line of standard input, a JSON array: the files
//                                  for what the run prints and for its messages, then enginerun's
//                                  options. Answers with its exit code.
//
// Many small nets spend their time on opening the device: half a second each, one process after
// the other.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

// tools/run/enginerun.cpp, whose main() is called so here.
int enginerun_main(int argc, char** argv);

namespace {

// Lets `stream` write to a file; false if there is no such file.
bool redirect(FILE* stream, const std::string& path) {
    fflush(stream);
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0) return false;
    const bool done = dup2(file, fileno(stream)) >= 0;
    close(file);
    return done;
}

int run(const nlohmann::json& request) {
    std::vector<std::string> words = request.get<std::vector<std::string>>();
    if (words.size() < 2 || !redirect(stdout, words[0]) || !redirect(stderr, words[1])) return -1;
    words.erase(words.begin());
    words[0] = "enginerun";
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(&word[0]);
    argv.push_back(nullptr);
    const int code = enginerun_main((int)words.size(), argv.data());
    fflush(stdout);
    fflush(stderr);
    return code;
}

int serve() {
    FILE* const answers = fdopen(dup(STDOUT_FILENO), "w");
    std::string line;
    while (answers && std::getline(std::cin, line)) {
        const nlohmann::json request = nlohmann::json::parse(line, nullptr, false);
        if (!request.is_array()) return 2;
        fprintf(answers, "%d\n", run(request));
        fflush(answers);
    }
    return answers ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    return argc == 2 && std::string(argv[1]) == "--serve" ? serve() : enginerun_main(argc, argv);
}
