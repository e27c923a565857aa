// Other programs.
#ifndef QUOLL_TOOLS_PROCESS_H
#define QUOLL_TOOLS_PROCESS_H

#include <string>
#include <vector>

namespace quoll {

// Runs a program, found in PATH unless its name has a '/', to its end. What it prints goes to the
// files `out` and `errors`, or, where these are "", to where ours goes; it reads nothing. Its exit
// code, 128 and more for a signal, or -1 after a message when it cannot be started.
int run_process(const std::vector<std::string>& words, const std::string& out,
                const std::string& errors);

// The last line of a text file that is not empty; "" if there is none.
std::string last_line(const std::string& path);

}  // namespace quoll

#endif
