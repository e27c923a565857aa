#!/usr/bin/env bash
# Compiles the shaders that need GL_KHR_cooperative_matrix, which Debian 12's glslang lacks, into src/layer/vulkan/shader/spirv:
# to be run after a change of them. Builds glslang 15.1 from the sources of Debian 13 into a cache folder first, when it is not
# there: as an ordinary user, about a minute and a half on two cores. docs/vulkan.md says why the result is kept in the tree.
set -euo pipefail

cd "$(dirname "$0")/.."
version=15.1.0
folder=${XDG_CACHE_HOME:-$HOME/.cache}/quoll/glslang-$version
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build_glslang() {
    local apt=(apt-get -q "-oDir::Etc::SourceList=$work/sources.list" -oDir::Etc::SourceParts=/dev/null
        "-oDir::State::Lists=$work/lists" "-oDir::Cache=$work/cache" -oAPT::Sandbox::User=)
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/source"
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main" >"$work/sources.list"
    "${apt[@]}" update
    (cd "$work" && "${apt[@]}" source --download-only glslang)
    tar -xf "$work"/glslang_*.orig.tar.gz -C "$work/source" --strip-components 1
    cmake -S "$work/source" -B "$work/glslang" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DENABLE_OPT=OFF \
        -DGLSLANG_TESTS=OFF -DENABLE_HLSL=OFF -DBUILD_SHARED_LIBS=OFF
    ninja -C "$work/glslang" glslang-standalone
    mkdir -p "$folder"
    cp "$work/glslang/StandAlone/glslang" "$folder/glslangValidator.new"
    mv "$folder/glslangValidator.new" "$folder/glslangValidator"
}

[ -x "$folder/glslangValidator" ] || build_glslang
cmake -S . -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DQUOLL_GLSLANG=$folder/glslangValidator" >/dev/null
ninja -C "$work/build" update_spirv
