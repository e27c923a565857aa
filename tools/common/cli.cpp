#include "cli.h"

#include <stdio.h>

#include "log.h"

namespace quoll {

bool parse_command_line(CLI::App& app, int argc, char** argv, int* exit_code) {
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

static void collect(LogLevel level, const char* message, void* user) {
    if (level == kLogError)
        static_cast<std::vector<std::string>*>(user)->push_back(message);
    else
        fprintf(stderr, "%s: %s\n", log_level_name(level), message);
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
    fprintf(stderr, "%s: %s\n", program.c_str(), (what + colon + why).c_str());
    errors_.clear();
    return 1;
}

}  // namespace quoll
