// Files that a program writes whole or not at all.
#ifndef QUOLL_TOOLS_OUTPUT_FILES_H
#define QUOLL_TOOLS_OUTPUT_FILES_H

#include <string>
#include <vector>

namespace quoll {

// Content goes to temporary files (".quoll-part-...") in the folders of the final ones; commit()
// gives them their names, in the order of add(), when all are complete. What is not committed is
// removed, at the next add() in the folder if the program was killed. A kill between two names
// leaves new files beside old ones: a model's param says which weights are its own
// (Model::number_weights), if it comes first. A target that exists and is no regular file (a
// pipe, /dev/stdout) is written directly. Failures leave a message in the log.
//
//   OutputFiles files({"in.param"});
//   const std::string path = files.add("out.param");
//   if (path.empty() || write(path) || files.commit()) return 1;
class OutputFiles {
public:
    // `inputs`: files that no output may overwrite.
    explicit OutputFiles(const std::vector<std::string>& inputs = {}) : inputs_(inputs) {}
    ~OutputFiles();
    OutputFiles(const OutputFiles&) = delete;
    OutputFiles& operator=(const OutputFiles&) = delete;

    // Where to write what `target` shall become; the file exists, and is empty, already. "" when it
    // cannot be created, is an input, or was added before.
    std::string add(const std::string& target);
    // 0, or -1: then no target was touched that could be left alone.
    int commit();

private:
    struct File {
        std::string target;     // symbolic links resolved
        std::string temporary;  // empty when the target is written directly
        int fd = -1;            // of the temporary file, locked
    };
    const std::vector<std::string> inputs_;
    std::vector<File> files_;
};

}  // namespace quoll

#endif
