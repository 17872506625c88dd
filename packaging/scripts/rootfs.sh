#!/bin/sh
# Writes the file system of the image with PostgreSQL: Debian packages, and the user of the server.
#
#   rootfs.sh OUT.tar ARCHITECTURE
#
# DEBIAN_MIRROR is another mirror than the default.
set -eu
out=${1:?usage: rootfs.sh OUT.tar ARCHITECTURE}
arch=${2:?usage: rootfs.sh OUT.tar ARCHITECTURE}

# PostgreSQL runs without LLVM, which is a third of the size and compiles only long queries.
# shellcheck disable=SC2016 # $1 is for the hooks
mmdebstrap --quiet --variant=minbase --architectures="$arch" --include=ca-certificates,tzdata,postgresql \
	--aptopt='Acquire::Languages "none"' --aptopt='Acquire::Retries "5"' \
	--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
	--dpkgopt='path-exclude=/usr/share/locale/*' \
	--dpkgopt='path-exclude=/usr/lib/*/libLLVM*' --dpkgopt='path-exclude=/usr/lib/*/libz3*' \
	--dpkgopt='path-exclude=/usr/lib/llvm-*' --dpkgopt='path-exclude=/usr/lib/postgresql/*/lib/llvmjit*' \
	--dpkgopt='path-exclude=/usr/lib/postgresql/*/lib/bitcode/*' \
	--essential-hook='mkdir -p "$1/etc/postgresql-common"' \
	--essential-hook='echo "create_main_cluster = false" >"$1/etc/postgresql-common/createcluster.conf"' \
	--customize-hook='echo "deviceaccess:x:65532:65532::/var/lib/deviceaccess:/usr/sbin/nologin" >>"$1/etc/passwd"' \
	--customize-hook='echo "deviceaccess:x:65532:" >>"$1/etc/group"' \
	--customize-hook='rm -f "$1/etc/resolv.conf" "$1/etc/hostname" "$1/etc/ssl/private/ssl-cert-snakeoil.key"' \
	--customize-hook='rm -rf "$1"/var/log/* "$1"/usr/share/man/* "$1"/usr/share/postgresql/*/man' \
	bookworm "$out" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"}
