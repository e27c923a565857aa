#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/progress.h"
#include "log.h"

namespace quoll {

static std::string program_name;

// What was printed has to have arrived: a full disk is an error of any program.
static void check_stdout() {
    if (fflush(stdout) == 0 && !ferror(stdout)) return;
    fprintf(stderr, "%s: stdout cannot be written: %s\n", program_name.c_str(), strerror(errno));
    _exit(1);
}

bool parse_command_line(CLI::App& app, int argc, char** argv, int* exit_code) {
    program_name = app.get_name();
    atexit(check_stdout);
    // A file that may not grow any more is a failed write, not the end of the program.
    signal(SIGXFSZ, SIG_IGN);
    app.set_version_flag("--version", "quoll " QUOLL_VERSION_TEXT);
    try {
        app.parse(argc, argv);
        return true;
    } catch (const CLI::Success& e) {
        *exit_code = app.exit(e);
    } catch (const CLI::ParseError& e) {
        fprintf(stderr, "%s: %s (--help lists the options)\n", app.get_name().c_str(), e.what());
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

int MessageLog::fail(const std::string& program, const std::string& what) {
    for (size_t i = 2; i < errors_.size(); i++)
        fprintf(stderr, "%s: ... %s\n", program.c_str(), errors_[i].c_str());
    const std::string why = reason(), colon = what.empty() || why.empty() ? "" : ": ";
    fprintf(stderr, "%s: %s\n", program.c_str(), printable(what + colon + why).c_str());
    errors_.clear();
    return 1;
}

}  // namespace quoll
