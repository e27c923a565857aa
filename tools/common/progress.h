// A bar on a terminal while something takes long.
#ifndef QUOLL_TOOLS_PROGRESS_H
#define QUOLL_TOOLS_PROGRESS_H

#include <chrono>
#include <string>

namespace quoll {

// Drawn on stderr, if that is a terminal (TERM is not "dumb"), ten times per second at most; gone
// when the object goes. Elsewhere nothing is written.
class Progress {
public:
    Progress(const std::string& title, long long total);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    // So much is done; `what` is being done now.
    void update(long long done, const std::string& what = "");
    // Erases the bar that is drawn, if there is one: something is about to be printed.
    static void hide();

private:
    typedef std::chrono::steady_clock Clock;
    const std::string title_;
    const long long total_;
    const bool shown_;
    Clock::time_point next_;
    bool drawn_ = false;
};

// Is this stream (1 or 2) a terminal that takes control sequences?
bool on_terminal(int stream);
// The same, and colours are wanted: NO_COLOR (https://no-color.org) is not set.
bool coloured(int stream);

}  // namespace quoll

#endif
