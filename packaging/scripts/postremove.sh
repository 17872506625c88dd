#!/bin/sh
# Runs after the removal: "remove" or "purge" from dpkg, 0 from rpm. Only purge deletes data. rpm has no purge.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
case "$1" in
purge)
	rm -rf /var/lib/deviceaccess /etc/deviceaccess
	# dpkg keeps the user, so that no other user gets files under its number.
	if [ -n "$(ls -A /var/backups/deviceaccess 2>/dev/null)" ]; then
		echo "deviceaccess-server: kept the backups in /var/backups/deviceaccess; they need a copy of the master key."
	else
		rm -rf /var/backups/deviceaccess
	fi
	;;
remove | 0)
	echo "deviceaccess-server: kept the data in /var/lib/deviceaccess and the master key in /etc/deviceaccess."
	;;
esac
