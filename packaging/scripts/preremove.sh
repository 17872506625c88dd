#!/bin/sh
# Runs before the removal: "remove" from dpkg, 0 from rpm. On an upgrade, the server runs until the new one is installed.
set -e
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl disable --now deviceaccess-server-backup.timer deviceaccess-server.service || true
fi
