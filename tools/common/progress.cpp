#include "common/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace quoll {

bool on_terminal(int stream) {
    const char* kind = getenv("TERM");
    return isatty(stream) && kind && strcmp(kind, "dumb") != 0;
}

bool coloured(int stream) {
    const char* no = getenv("NO_COLOR");
    return on_terminal(stream) && !(no && *no);
}

// There is one terminal.
static Progress* shown_bar = nullptr;

void Progress::hide() {
    // Back to the first column, and the line erased.
    if (shown_bar && shown_bar->drawn_) fputs("\r\033[K", stderr);
    if (shown_bar) shown_bar->drawn_ = false;
}

Progress::Progress(const std::string& title, long long total)
    : title_(title), total_(total > 0 ? total : 1), shown_(on_terminal(2)), next_(Clock::now()) {
    shown_bar = this;
}

Progress::~Progress() {
    hide();
    shown_bar = nullptr;
}

void Progress::update(long long done, const std::string& what) {
    if (!shown_ || (done < total_ && Clock::now() < next_)) return;
    next_ = Clock::now() + std::chrono::milliseconds(100);
    struct winsize size;
    const size_t columns = ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    const int kBar = 24;
    const int parts = (int)(done >= total_ ? kBar : done <= 0 ? 0 : done * kBar / total_);
    char percent[16];
    snprintf(percent, sizeof(percent), "] %3d%% ",
             done >= total_ ? 100 : (int)(done * 100 / total_));
    std::string line =
        title_ + " [" + std::string(parts, '#') + std::string(kBar - parts, ' ') + percent + what;
    if (line.size() >= columns) line.resize(columns - 1);
    for (char& ch : line)
        if ((unsigned char)ch < 0x20 || ch == 0x7f) ch = '?';
    fprintf(stderr, "\r%s\033[K", line.c_str());
    fflush(stderr);
    drawn_ = true;
}

}  // namespace quoll
