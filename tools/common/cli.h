// What the programs share around CLI11.
#ifndef QUOLL_TOOLS_CLI_H
#define QUOLL_TOOLS_CLI_H

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace quoll {

// Parses the command line. When it returns false the program ends with *exit_code: 0 after --help
// and --version, 2 after a message whose last line says what is wrong. When the program ends and
// stdout could not be written, its exit code is 1, after a message.
bool parse_command_line(CLI::App& app, int argc, char** argv, int* exit_code);

// The text for a terminal: control characters, and bytes that are no UTF-8, become '?'.
std::string printable(std::string text);

// Collects the library's messages, so that a program can end with the reason of a failure as the
// last line of stderr. Warnings go to stderr at once.
class MessageLog {
public:
    MessageLog();
    ~MessageLog();
    // What the library said was wrong since the last fail(), in one line.
    std::string reason() const;
    // Forgets them: the program went on without what failed.
    void clear() { errors_.clear(); }
    // Prints "PROGRAM: what: reason" and returns 1, the exit code of a failed run.
    int fail(const std::string& program, const std::string& what);

private:
    std::vector<std::string> errors_;
};

}  // namespace quoll

#endif
