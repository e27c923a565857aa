#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <exception>
#include <new>

#include <CLI/CLI.hpp>

#include "common/progress.h"
#include "quoll/log.h"

namespace quoll {

static std::string program_name;

// What was printed has to have arrived: a full disk is an error of any program.
static void check_stdout() {
    if (fflush(stdout) == 0 && !ferror(stdout)) return;
    fprintf(stderr, "%s: stdout cannot be written: %s\n", program_name.c_str(), strerror(errno));
    _exit(1);
}

CommandOption& CommandOption::required() {
    option_->required();
    return *this;
}

CommandOption& CommandOption::between(int low, int high) {
    option_->check(CLI::Range(low, high));
    return *this;
}

CommandOption& CommandOption::between(double low, double high) {
    option_->check(CLI::Range(low, high));
    return *this;
}

CommandOption& CommandOption::one_of(std::initializer_list<const char*> words) {
    option_->check(CLI::IsMember(std::vector<std::string>(words.begin(), words.end())));
    return *this;
}

CommandOption& CommandOption::one_of(std::initializer_list<int> numbers) {
    option_->check(CLI::IsMember(numbers));
    return *this;
}

CommandOption& CommandOption::check(std::string (*refusal)(const std::string& word)) {
    option_->check(refusal);
    return *this;
}

CommandOption& CommandOption::one_at_a_time() {
    option_->allow_extra_args(false);
    return *this;
}

CommandOption& CommandOption::takes(int least, int most) {
    option_->expected(least, most);
    return *this;
}

CommandOption& CommandOption::separated_by(char ch) {
    option_->delimiter(ch);
    return *this;
}

CommandOption& CommandOption::excludes(const CommandOption& other) {
    option_->excludes(other.option_);
    return *this;
}

CommandOption& CommandOption::hidden() {
    option_->group("");
    return *this;
}

CommandLine::CommandLine(const std::string& description, const std::string& program)
    : app_(new CLI::App(description, program)) {}

CommandLine::~CommandLine() = default;

template <typename T>
CommandOption CommandLine::option(const std::string& name, T& value, const std::string& help) {
    CLI::Option* const option = app_->add_option(name, value, help);
    // --help shows what holds without it.
    if (!(value == T())) option->capture_default_str();
    return CommandOption(option);
}

#define QUOLL_OPTION_OF(type) \
    template CommandOption CommandLine::option(const std::string&, type&, const std::string&);
QUOLL_OPTION_OF(std::string)
QUOLL_OPTION_OF(int)
QUOLL_OPTION_OF(unsigned)
QUOLL_OPTION_OF(float)
QUOLL_OPTION_OF(double)
QUOLL_OPTION_OF(std::vector<std::string>)
QUOLL_OPTION_OF(std::vector<float>)
QUOLL_OPTION_OF(std::vector<double>)
#undef QUOLL_OPTION_OF

CommandOption CommandLine::flag(const std::string& name, bool& value, const std::string& help) {
    return CommandOption(app_->add_flag(name, value, help));
}

void CommandLine::footer(const std::string& text) { app_->footer(text); }

bool CommandLine::parse(int argc, char** argv, int* exit_code) {
    program_name = app_->get_name();
    atexit(check_stdout);
    // A file that may not grow any more is a failed write, not the end of the program.
    signal(SIGXFSZ, SIG_IGN);
    app_->set_version_flag("--version", "quoll " QUOLL_VERSION_TEXT);
    try {
        app_->parse(argc, argv);
        return true;
    } catch (const CLI::Success& e) {
        *exit_code = app_->exit(e);
    } catch (const CLI::ParseError& e) {
        fprintf(stderr, "%s: %s (--help lists the options)\n", program_name.c_str(), e.what());
        *exit_code = 2;
    }
    return false;
}

// Bytes of the UTF-8 sequence at this place; 0 if there is none. (RFC 3629, but that surrogates and
// overlong forms of three and four bytes pass.)
static size_t sequence_at(const std::string& text, size_t at) {
    const unsigned char first = (unsigned char)text[at];
    const size_t size = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
    if (at + size > text.size()) return 0;
    for (size_t i = 1; i < size; i++)
        if (((unsigned char)text[at + i] & 0xc0) != 0x80) return 0;
    return size;
}

std::string printable(std::string text) {
    for (size_t i = 0, size; i < text.size(); i += size ? size : 1) {
        size = sequence_at(text, i);
        const unsigned char ch = (unsigned char)text[i];
        if (size == 0 || ch == 0x7f || (ch < 0x20 && ch != '\n' && ch != '\t')) text[i] = '?';
    }
    return text;
}

static void collect(LogLevel level, const char* message, void* user) {
    const std::string text = printable(message);
    Progress::hide();
    if (level == kLogError)
        static_cast<std::vector<std::string>*>(user)->push_back(text);
    else
        fprintf(stderr, "%s: %s\n", log_level_name(level), text.c_str());
}

MessageLog::MessageLog() {
    if (get_log_level() == kLogOff) set_log_level(kLogError);
    set_log_sink(collect, &errors_);
}

MessageLog::~MessageLog() { set_log_sink(nullptr, nullptr); }

std::string MessageLog::reason() const {
    // The first message is the cause, the second says on whose behalf; the others repeat it.
    std::string text;
    for (size_t i = 0; i < errors_.size() && i < 2; i++) text += (i ? "; " : "") + errors_[i];
    for (char& ch : text)
        if (ch == '\n' || ch == '\r') ch = ' ';
    return text;
}

std::vector<std::string> MessageLog::take() {
    std::vector<std::string> taken;
    taken.swap(errors_);
    return taken;
}

int MessageLog::fail(const std::string& program, const std::string& what) {
    for (size_t i = 2; i < errors_.size(); i++)
        fprintf(stderr, "%s: ... %s\n", program.c_str(), errors_[i].c_str());
    const std::string why = reason(), colon = what.empty() || why.empty() ? "" : ": ";
    fprintf(stderr, "%s: %s\n", program.c_str(), printable(what + colon + why).c_str());
    errors_.clear();
    return 1;
}

int without_exceptions(const char* program, const std::function<int()>& run) {
    try {
        return run();
    } catch (const std::bad_alloc&) {
        fprintf(stderr, "%s: this needs more memory than there is\n", program);
    } catch (const std::exception& e) {
        fprintf(stderr, "%s: %s\n", program, e.what());
    }
    return 1;
}

}  // namespace quoll
