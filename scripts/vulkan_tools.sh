#!/usr/bin/env bash
# Builds glslang 15.1, which knows GL_KHR_cooperative_matrix, from the sources of Debian 13, and takes Vulkan 1.4 headers from
# there: Debian 12's are of 2022. Prints the folder (bin/glslangValidator, include/vulkan). Does nothing when it is there.
# As an ordinary user; about a minute and a half on two cores.
set -euo pipefail

version=15.1.0
folder=${QUOLL_VULKAN_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/quoll/vulkan-tools-$version}
if [ ! -x "$folder/bin/glslangValidator" ] || [ ! -f "$folder/include/vulkan/vulkan.h" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    {
        mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
        for kind in deb deb-src; do
            echo "$kind [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main"
        done >"$work/sources.list"
        apt=(apt-get -q "-oDir::Etc::SourceList=$work/sources.list" -oDir::Etc::SourceParts=/dev/null
            "-oDir::State::Lists=$work/lists" "-oDir::Cache=$work/cache" -oAPT::Sandbox::User=)
        cd "$work"
        "${apt[@]}" update
        "${apt[@]}" source --download-only glslang
        "${apt[@]}" download libvulkan-dev
        mkdir source headers
        tar -xf glslang_*.orig.tar.gz -C source --strip-components 1
        dpkg-deb -x libvulkan-dev_*.deb headers
        launcher=()
        if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
        cmake -S source -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DENABLE_OPT=OFF \
            -DGLSLANG_TESTS=OFF -DENABLE_HLSL=OFF -DBUILD_SHARED_LIBS=OFF ${launcher[@]+"${launcher[@]}"}
        ninja -C build glslang-standalone
        mkdir -p "$folder/bin" "$folder/include"
        cp -r headers/usr/include/vulkan headers/usr/include/vk_video "$folder/include/"
        cp build/StandAlone/glslang "$folder/bin/glslangValidator.new"
        mv "$folder/bin/glslangValidator.new" "$folder/bin/glslangValidator"
    } >&2
fi
echo "$folder"
