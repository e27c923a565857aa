// Common to the programs: their command lines and their messages.
#ifndef QUOLL_TOOLS_CLI_H
#define QUOLL_TOOLS_CLI_H

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

// CLI11 is a large header: cli.cpp alone includes it.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace quoll {

// An option of a CommandLine, to say more of it: line.option(...).required().between(1, 8).
class CommandOption {
public:
    CommandOption& required();
    // A number's range, ends included.
    CommandOption& between(int low, int high);
    CommandOption& between(double low, double high);
    CommandOption& one_of(std::initializer_list<const char*> words);
    CommandOption& one_of(std::initializer_list<int> numbers);
    // `refusal` returns why it does not take a word, "" if it does.
    CommandOption& check(std::string (*refusal)(const std::string& word));
    // Lists: each occurrence of the option adds one word, and what follows is another argument.
    CommandOption& one_at_a_time();
    // Lists: how many words follow the option.
    CommandOption& takes(int least, int most);
    // Lists: one word is several values with this character between them.
    CommandOption& separated_by(char ch);
    CommandOption& excludes(const CommandOption& other);
    // --help does not show it.
    CommandOption& hidden();

private:
    friend class CommandLine;
    explicit CommandOption(CLI::Option* option) : option_(option) {}
    CLI::Option* option_;  // of the CommandLine
};

// A program's command line; --help and --version are in every one.
class CommandLine {
public:
    CommandLine(const std::string& description, const std::string& program);
    ~CommandLine();

    // "-i,--input", or a positional argument, which has no dashes. The value keeps what it has when
    // the option is not given. T: std::string, int, unsigned, float, double, or a std::vector of
    // std::string, float or double.
    template <typename T>
    CommandOption option(const std::string& name, T& value, const std::string& help = "");
    CommandOption flag(const std::string& name, bool& value, const std::string& help);
    // What --help ends with.
    void footer(const std::string& text);

    // When it returns false the program ends with *exit_code: 0 after --help and --version, 2 after
    // a message whose last line says what is wrong. When the program ends and stdout could not be
    // written, its exit code is 1, after a message.
    bool parse(int argc, char** argv, int* exit_code);

private:
    std::unique_ptr<CLI::App> app_;
};

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
    // All of them, which are then forgotten.
    std::vector<std::string> take();
    // Forgets them: the program went on without what failed.
    void clear() { errors_.clear(); }
    // Prints "PROGRAM: what: reason" and returns 1, the exit code of a failed run.
    int fail(const std::string& program, const std::string& what);

private:
    std::vector<std::string> errors_;
};

// What run() returns; 1 after a message when it throws, as when memory ends.
int without_exceptions(const char* program, const std::function<int()>& run);

}  // namespace quoll

#endif
